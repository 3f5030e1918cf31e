//! A text with what nobody sees taken out: zero-width and control characters, colours of a
//! terminal, and full-width letters in their plain form. Secrets are looked for in it, and cut
//! out of the text itself.

use std::ops::Range;

/// A text in its plain form, and where each byte of it comes from.
pub(super) struct Folded {
    pub(super) text: String,
    /// For each byte of the text, and for its end, where it stood.
    places: Vec<usize>,
}

impl Folded {
    /// The plain form; `None` for a text that is plain already.
    pub(super) fn of(text: &str) -> Option<Self> {
        if !text.bytes().any(may_be_odd) || !text.chars().any(|c| plain(c) != Some(c)) {
            return None;
        }
        let mut folded = Self {
            text: String::with_capacity(text.len()),
            places: Vec::with_capacity(text.len() + 1),
        };
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if c == '\u{1b}' && chars.peek().is_some_and(|(_, c)| *c == '[') {
                // A colour: up to its letter.
                chars.next();
                let is_inside = |(_, c): &(usize, char)| !c.is_ascii_alphabetic() && *c != '\n';
                while chars.next_if(is_inside).is_some() {}
                chars.next_if(|(_, c)| c.is_ascii_alphabetic());
                continue;
            }
            if let Some(c) = plain(c) {
                folded.text.push(c);
                folded.places.resize(folded.text.len(), at);
            }
        }
        folded.places.push(text.len());
        Some(folded)
    }

    /// Where a span of the plain form stands in the text.
    pub(super) fn span(&self, span: &Range<usize>) -> Range<usize> {
        self.places[span.start]..self.places[span.end]
    }
}

/// Whether a byte may belong to a character that is not plain.
const fn may_be_odd(b: u8) -> bool {
    matches!(b, 0..=8 | 0xb | 0xc | 0xe..=0x1f | 0x7f | 0xc2 | 0xcd | 0xd8 | 0xe1 | 0xe2 | 0xef | 0xf3)
}

/// A character in its plain form; `None` for one that nobody sees.
pub(super) fn plain(c: char) -> Option<char> {
    match c {
        '\t' | '\n' | '\r' => Some(c),
        '\0'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}' => None,
        '\u{ff01}'..='\u{ff5e}' => {
            let offset = u32::from(c) - 0xff01;
            char::from_u32(u32::from('!') + offset)
        }
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' => Some(' '),
        '\u{201c}' | '\u{201d}' => Some('"'),
        '\u{2018}' | '\u{2019}' => Some('\''),
        '\u{2010}'..='\u{2012}' => Some('-'),
        c => Some(c),
    }
}
