//! Names: which of them say that their value is a secret.

use std::borrow::Cow;

/// What makes a name one of a secret, and what the secret is then called. Between the words of one
/// may stand `-`, `_` or nothing.
pub(super) const WORDS: &[(&str, &str)] = &[
    ("private_key", "private-key"),
    ("private-key", "private-key"),
    ("privatekey", "private-key"),
    ("access_key", "access-key"),
    ("access-key", "access-key"),
    ("accesskey", "access-key"),
    ("account_key", "access-key"),
    ("accountkey", "access-key"),
    ("api_key", "api-key"),
    ("api-key", "api-key"),
    ("apikey", "api-key"),
    ("passphrase", "password"),
    ("password", "password"),
    ("passwd", "password"),
    ("credential", "credential"),
    ("secret", "secret"),
    ("token", "token"),
];

/// How words go on that only begin like one of these.
const OTHERS: &[&str] = &["iz", "is", "less", "ary", "ari", "ive", "omic", "ed", "ing"];

/// A name's last word after which the value only describes a secret.
const ABOUT: &[&str] = &[
    "name",
    "names",
    "ref",
    "refs",
    "file",
    "files",
    "filename",
    "path",
    "paths",
    "dir",
    "url",
    "urls",
    "uri",
    "endpoint",
    "type",
    "types",
    "kind",
    "count",
    "counts",
    "length",
    "len",
    "size",
    "limit",
    "limits",
    "budget",
    "usage",
    "index",
    "idx",
    "expires",
    "expiry",
    "expiration",
    "ttl",
    "age",
    "at",
    "in",
    "policy",
    "manager",
    "store",
    "provider",
    "field",
    "fields",
    "label",
    "header",
    "prefix",
    "suffix",
    "format",
    "pattern",
    "regex",
    "method",
    "mode",
    "status",
    "enabled",
    "required",
    "version",
    "algorithm",
    "alg",
    "id",
    "ids",
    "scope",
    "scopes",
    "rotation",
    "engine",
    "backend",
    "class",
    "env",
    "var",
    "schema",
    "description",
    "hint",
    "title",
    "placeholder",
    "error",
    "message",
    "input",
    "form",
    "reset",
    "change",
    "link",
    "issuer",
    "audience",
    "server",
    "host",
    "port",
    "user",
    "username",
    "email",
    "source",
    "location",
    "lifetime",
    "timeout",
    "validity",
    "stdin",
    "generator",
    "validator",
    "service",
    "handler",
    "repository",
    "controller",
    "middleware",
    "factory",
    "builder",
    "key_ref",
    "utils",
    "utilities",
    "rules",
    "strength",
    "encoder",
    "parser",
    "scanner",
    "detector",
];

/// Bytes of the longest name of a header field that is looked for.
const LONGEST_FIELD: usize = 32;

/// A name that says its value is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) kind: &'static str,
    /// Whether its value rather says something about the secret.
    pub(super) is_about: bool,
}

impl Name {
    /// What a name says; `None` for a name of no secret. Only letters, digits, `.`, `_` and `-` of
    /// ASCII count; others are passed over, so that nothing invisible can come between.
    pub(super) fn of(name: &str) -> Option<Self> {
        let plain = folded(name);
        let lower = plain.to_ascii_lowercase();
        for (word, kind) in WORDS {
            let mut from = 0;
            while let Some(at) = lower[from..].find(word) {
                let end = from + at + word.len();
                let rest = &lower[end..];
                if !OTHERS.iter().any(|other| rest.starts_with(other)) {
                    return Some(Self {
                        kind,
                        is_about: is_about(&plain[end..]),
                    });
                }
                from = end;
            }
        }
        None
    }
}

/// A name without what nobody sees.
fn folded(name: &str) -> Cow<'_, str> {
    if name.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().filter_map(super::folded::plain).collect())
}

/// Whether what follows the word ends in one that is about the secret.
fn is_about(rest: &str) -> bool {
    let rest = rest.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    if rest.is_empty() {
        return false;
    }
    let last = rest
        .rfind(['_', '-', '.'])
        .map_or(rest, |at| &rest[at + 1..]);
    let camel = last
        .char_indices()
        .rev()
        .find(|(_, c)| c.is_ascii_uppercase())
        .map_or(0, |(at, _)| at);
    let words = [
        last.to_ascii_lowercase(),
        last[camel..].to_ascii_lowercase(),
    ];
    words.iter().any(|word| ABOUT.contains(&word.as_str()))
}

/// Header fields whose whole value is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Authorization,
    Cookie,
}

impl Field {
    /// The field of this name.
    pub(super) fn of(name: &str) -> Option<Self> {
        let plain = folded(name);
        let plain = plain.trim();
        if plain.len() > LONGEST_FIELD {
            return None;
        }
        let name = plain.to_ascii_lowercase().replace('_', "-");
        match name.strip_prefix("http-").unwrap_or(&name) {
            "authorization" | "proxy-authorization" | "x-authorization" => {
                Some(Self::Authorization)
            }
            "cookie" | "set-cookie" | "cookies" | "set-cookie2" => Some(Self::Cookie),
            _ => None,
        }
    }
}
