//! Runs: how far characters of one class go on. Each is measured once, however often it is asked
//! for, so that all looking ahead together takes linear time.

#[cfg(test)]
thread_local! {
    /// Bytes that were looked at beside the one walk, for tests of how they grow.
    pub(super) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Notes that so many bytes were looked at ahead or behind.
pub(super) fn count(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps);
    #[cfg(not(test))]
    let _ = steps;
}

/// A class of ASCII characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Letters and digits.
    Alnum,
    /// Letters, digits and `_`.
    Word,
    /// Base64 for addresses: letters, digits, `-` and `_`.
    Url,
    /// The same with `.` and `=`.
    Dotted,
    /// All that base64 is written with.
    Base64,
    /// Hexadecimal digits.
    Hex,
    /// Capitals and digits.
    Upper,
    /// Digits.
    Digit,
    /// What an address goes on with: no white space, quote or angle bracket.
    Address,
}

const CLASSES: usize = 9;

impl Class {
    pub(super) const fn holds(self, b: u8) -> bool {
        match self {
            Self::Alnum => b.is_ascii_alphanumeric(),
            Self::Word => b.is_ascii_alphanumeric() || b == b'_',
            Self::Url => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
            Self::Dotted => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'='),
            Self::Base64 => {
                b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'/' | b'=')
            }
            Self::Hex => b.is_ascii_hexdigit(),
            Self::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Self::Digit => b.is_ascii_digit(),
            Self::Address => !matches!(
                b,
                b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\'
            ),
        }
    }
}

/// The runs of one text.
pub(super) struct Runs<'a> {
    pub(super) text: &'a str,
    bytes: &'a [u8],
    /// For each class the last run that was measured.
    known: [(usize, usize); CLASSES],
}

impl<'a> Runs<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            known: [(usize::MAX, 0); CLASSES],
        }
    }

    /// Where the run of a class that begins at `at` ends.
    pub(super) fn end(&mut self, class: Class, at: usize) -> usize {
        let known = &mut self.known[class as usize];
        if (known.0..known.1).contains(&at) {
            return known.1;
        }
        let rest = self.bytes.get(at..).unwrap_or_default();
        let length = rest.iter().take_while(|b| class.holds(**b)).count();
        count(length);
        *known = (at, at + length);
        at + length
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// Whether the text at `at` begins with `word`.
    pub(super) fn has(&self, at: usize, word: &str) -> bool {
        let there = self.bytes.get(at..at + word.len());
        there == Some(word.as_bytes())
    }

    /// Whether something new begins at `at`: before it stands no letter, digit or `_`, or just an
    /// escape such as `\n` or `%3D`.
    pub(super) fn is_border(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).and_then(|at| self.byte(at));
        let Some(last) = before(1) else { return true };
        if !Class::Word.holds(last) {
            return true;
        }
        let is_escape = matches!(last, b'n' | b'r' | b't') && before(2) == Some(b'\\');
        let is_encoded = last.is_ascii_hexdigit()
            && before(2).is_some_and(|b| b.is_ascii_hexdigit())
            && before(3) == Some(b'%');
        let is_code = (1..=4).all(|back| before(back).is_some_and(|b| b.is_ascii_hexdigit()))
            && before(5) == Some(b'u')
            && before(6) == Some(b'\\');
        is_escape || is_encoded || is_code
    }
}
