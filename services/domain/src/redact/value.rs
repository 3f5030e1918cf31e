//! Values: whether what a secret's name is given is the secret, or a word, a number, a path, a
//! type, code that fetches it, or a place kept free for it.

use super::MARK;
use super::names::Name;

/// Characters of a secret, at least (contract 4.5).
const LEAST: usize = 8;
/// Letters that stand together in no word.
const LONGEST_WORD: usize = 24;
/// What a value that is only about a secret has, if it is one after all.
const LEAST_ABOUT: usize = 20;

/// How a value stands with its name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Form {
    /// Between quotes.
    pub(super) quoted: bool,
    /// Behind a `=` without spaces, or a flag: data rather than code.
    pub(super) tight: bool,
    /// The argument of a call, or one of several.
    pub(super) call: bool,
}

/// Whether a value is a secret of its name.
pub(super) fn is_secret(value: &str, name: Name, form: Form) -> bool {
    let value = value.trim();
    if value.chars().take(LEAST).count() < LEAST || is_place(value) {
        return false;
    }
    if value.contains(char::is_whitespace) {
        // Prose, unless one of its words could be nothing else.
        let mut words = value.split_whitespace();
        return words.any(|word| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            word.len() >= LEAST && !is_place(word) && is_mixed(word) && !is_plain(word, form)
        });
    }
    if is_plain(value, form) || is_code(value, form) {
        return false;
    }
    let letters = value.chars().all(|c| c.is_alphabetic() || is_joint(c));
    let is_description =
        || value.len() < LEAST_ABOUT || !is_mixed(value) || value.contains([':', '/', '(']);
    if name.is_about && (letters || is_description()) {
        return false;
    }
    if letters {
        return is_secret_of_letters(value, name, form);
    }
    true
}

/// Whether a text that no name speaks for can only be a secret: long, of letters and digits.
pub(super) fn is_random(value: &str, least: usize) -> bool {
    let form = Form {
        quoted: true,
        ..Form::default()
    };
    value.len() >= least && !is_place(value) && is_mixed(value) && !is_plain(value, form)
}

/// Letters alone are a word, a name of code or, joined by dashes, whatever people make up.
fn is_secret_of_letters(value: &str, name: Name, form: Form) -> bool {
    if !value.contains(is_joint) {
        return value.len() >= LONGEST_WORD && (form.quoted || form.tight) && is_jumble(value);
    }
    let is_joined_by_dashes = value.chars().all(|c| c.is_alphabetic() || c == '-');
    is_joined_by_dashes && (form.quoted || form.tight) && !form.call && !name.is_about
}

/// Letters that make no words: of one case, or changing it all the time.
fn is_jumble(value: &str) -> bool {
    let capitals = value.chars().filter(|c| c.is_uppercase()).count();
    let all = value.chars().count();
    capitals == 0 || capitals == all || all < 3 * capitals
}

const fn is_joint(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | ':' | '/')
}

/// A letter and a digit, or a sign that names do not have.
fn is_mixed(value: &str) -> bool {
    let has = |is: fn(char) -> bool| value.chars().any(is);
    let letter = has(char::is_alphabetic);
    letter && has(|c| c.is_ascii_digit()) || has(|c| !c.is_alphanumeric() && !is_joint(c))
}

/// A place kept free for a secret, or the name under which it is fetched.
fn is_place(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
    let holds = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let bytes = value.as_bytes();
    let first = bytes.first().copied().unwrap_or_default();
    let is_variable = match first {
        b'$' => {
            let rest = value[1..].trim_start_matches(['{', '(']);
            rest.len() + 1 < value.len()
                || rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                || rest.split(['/', ':', '.', '-']).next().is_some_and(|head| {
                    head.len() > 1 && head.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
                })
        }
        b'{' | b'<' | b'[' => true,
        b'%' => !value[1..].bytes().all(|b| b.is_ascii_alphanumeric()) || value.len() < 4,
        b'#' => value.starts_with("#{"),
        b'@' | b':' | b'&' | b'*' => {
            let rest = value[1..].trim_end_matches(['@', ':', '*']);
            rest.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
        }
        _ => false,
    };
    let same = value.chars().next();
    is_variable
        || lower.contains(MARK)
        || lower.contains("[withheld]")
        || value.contains("${")
        || value.contains("{{")
        || value.chars().all(|c| Some(c) == same)
        || !value.chars().any(char::is_alphanumeric)
        || begins(&[
            "process.env",
            "os.environ",
            "os.getenv",
            "env.",
            "env[",
            "env:",
            "env(",
            "system.getenv",
            "import.meta",
            "std::env",
            "deno.env",
            "vault:",
            "ssm:",
            "arn:",
            "ref+",
            "op://",
            "secrets.",
            "secretsmanager:",
            "keychain:",
            "file:",
            "your-",
            "your_",
            "yourapi",
            "yourtoken",
            "yoursecret",
            "yourpass",
            "my-api-",
            "changeme",
            "change-me",
            "change_me",
            "replace",
            "placeholder",
            "insert-",
            "insert_",
            "enter-",
            "enter_",
            "xxxx",
            "****",
            "....",
            "none",
            "null",
            "undefined",
            "not-set",
            "not_set",
            "unset",
            "redacted",
            "<redacted",
            "same-origin",
            "workspace:",
            "npm:",
            "catalog:",
            "(?",
            "^",
            "example-",
            "example_",
            "dummy-",
            "dummy_",
            "!ref",
            "!secret",
            "!sub",
        ]) && !has_tail(value)
        || holds(&[
            "-here",
            "_here",
            "goes-here",
            "goes_here",
            "your-token",
            "your_token",
            "your-api",
            "your_api",
            "your-secret",
            "your_secret",
            "your-password",
            "your_password",
        ])
}

/// Whether a word that seems to keep a place free goes on like a secret.
fn has_tail(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    digits >= 3 && !value.contains(['(', '[', '.', '/', ':'])
}

/// A number, a date, a version, an address, a path, a mail address: no secret by its form.
fn is_plain(value: &str, form: Form) -> bool {
    is_number(value)
        || value.contains("://")
        || is_path(value)
        || is_mail(value)
        || is_words(value, form)
}

fn is_number(value: &str) -> bool {
    let bare = value.trim_start_matches(['^', '~', '>', '<', '=', 'v', '+', '-']);
    let signs = |b: u8| {
        matches!(
            b,
            b'.' | b',' | b':' | b'_' | b'-' | b'/' | b'%' | b'+' | b'T' | b'Z' | b'x'
        )
    };
    let digits = bare.bytes().filter(u8::is_ascii_digit).count();
    let units = bare.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = bare.len() - units.len();
    digits > 0 && unit <= 3 && units.bytes().all(|b| b.is_ascii_digit() || signs(b))
}

fn is_path(value: &str) -> bool {
    let rooted = value.starts_with(['/', '~'])
        || value.starts_with("./")
        || value.starts_with("../")
        || value.as_bytes().get(1..3) == Some(b":\\")
        || value.starts_with("\\\\");
    let segments: Vec<&str> = value
        .split(['/', '\\'])
        .filter(|part| !part.is_empty())
        .collect();
    let is_name = |part: &&str| {
        part.bytes().all(|b| {
            b.is_ascii_alphanumeric()
                || matches!(b, b'.' | b'_' | b'-' | b'@' | b'*' | b':')
                || b >= 0x80
        })
    };
    // Base64 has slashes too, but its pieces are no names.
    let is_jumbled = |part: &&str| {
        let case = part.bytes().any(|b| b.is_ascii_uppercase())
            && part.bytes().any(|b| b.is_ascii_lowercase());
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        !part.contains('.') && part.len() >= 12 && (case && digits > 0 || digits > 4)
    };
    let names = !segments.is_empty() && segments.iter().all(is_name);
    if rooted {
        return names && !segments.iter().any(is_jumbled);
    }
    let last = segments.last().copied().unwrap_or_default();
    let has_ending = last.rsplit_once('.').is_some_and(|(stem, end)| {
        let known = [
            "rs",
            "ts",
            "js",
            "tsx",
            "jsx",
            "py",
            "go",
            "java",
            "rb",
            "php",
            "c",
            "h",
            "cpp",
            "cs",
            "kt",
            "swift",
            "md",
            "txt",
            "json",
            "yml",
            "yaml",
            "toml",
            "pem",
            "key",
            "crt",
            "env",
            "sh",
            "sql",
            "html",
            "css",
            "vue",
            "xml",
            "ini",
            "cfg",
            "conf",
            "lock",
            "properties",
        ];
        !stem.is_empty() && known.contains(&end)
    });
    let plain = |part: &&&str| {
        part.bytes()
            .all(|b| b.is_ascii_lowercase() || matches!(b, b'-' | b'_' | b'.'))
    };
    segments.len() > 1 && names && (has_ending || segments.iter().all(|part| plain(&part)))
        || segments.len() == 1 && has_ending && names
}

fn is_mail(value: &str) -> bool {
    let Some((name, host)) = value.split_once('@') else {
        return false;
    };
    let is_word = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'))
    };
    let ending = host.rsplit('.').next().unwrap_or_default();
    is_word(name)
        && is_word(host)
        && host.contains('.')
        && ending.len() >= 2
        && ending.bytes().all(|b| b.is_ascii_lowercase())
        && name.bytes().filter(u8::is_ascii_digit).count() <= 2
}

/// Words joined as in names of code: a few digits may end a word, none stands within one.
fn is_words(value: &str, form: Form) -> bool {
    if !value.contains(|c: char| c.is_ascii_digit()) {
        // Letters alone are judged by what stands between them.
        return value
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ':'))
            && value.contains(['_', '.', ':']);
    }
    if !value
        .chars()
        .all(|c| c.is_alphanumeric() || is_joint(c) || c == '@')
    {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let parts = value.split(|c: char| is_joint(c) || c == '@');
    let mut several = 0;
    for part in parts.filter(|part| !part.is_empty()) {
        several += 1;
        if !is_word(part) {
            return false;
        }
    }
    digits <= 4 && (several > 1 || !form.quoted && !form.tight && digits <= 3)
}

/// Letters, then at most two digits at the end of each of its words: `v1`, `Uint8Array`, `sha256`.
fn is_word(part: &str) -> bool {
    if part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit()) {
        return true;
    }
    let bytes = part.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let letters = bytes[at..]
            .iter()
            .take_while(|b| !b.is_ascii_digit())
            .count();
        let digits = bytes[at + letters..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        let after = bytes.get(at + letters + digits);
        if letters == 0 && at == 0 || digits > 3 {
            return false;
        }
        if digits > 0 && after.is_some_and(|b| !b.is_ascii_uppercase()) {
            return false;
        }
        if at > 0 && letters < 3 {
            return false;
        }
        at += letters + digits;
    }
    part.len() < LONGEST_WORD
}

/// An expression of a program: a call, a type, an index, a path of names.
fn is_code(value: &str, form: Form) -> bool {
    if form.quoted {
        return false;
    }
    let is_name = |text: &str| {
        let head = text.trim_start_matches(['&', '*', '!', '-', '@']);
        head.bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
            && head.bytes().all(|b| {
                b.is_ascii_alphanumeric()
                    || matches!(
                        b,
                        b'_' | b'.' | b':' | b'>' | b'-' | b'?' | b'!' | b'$' | b'\''
                    )
            })
    };
    let opens = value.find(['(', '[', '<', '{']);
    if let Some(at) = opens
        && is_name(&value[..at])
        && value[at + 1..]
            .bytes()
            .next()
            .is_none_or(|b| !b.is_ascii_digit() || value.ends_with([']', ')']))
    {
        return !form.tight || value.contains('(');
    }
    value.contains("::")
        || value.contains("->")
        || value.contains("=>")
        || !form.tight && value.starts_with(['&', '*', '(', '[', '{', '<', '|', '!', '@', '?'])
}
