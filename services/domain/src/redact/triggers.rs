//! Triggers: the substrings at which something is looked for, and the one automaton that finds
//! them all.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::names::WORDS;
use super::shapes::{SHAPES, Shape};

/// What is looked for at a trigger.
#[derive(Clone, Copy)]
pub(super) enum Trigger {
    /// A key of this shape.
    Shape(&'static Shape),
    /// A name of a secret.
    Name,
    /// A header field.
    Authorization,
    Cookie,
    /// A scheme of authorization without its field.
    Bearer,
    /// The user's part of an address.
    Address,
    /// A block of a private key.
    Pem,
    /// The private part of a key in PuTTY's form.
    Putty,
    /// A signed token.
    Jwt,
    /// A key of the plain `sk-` form.
    Sk,
    /// A key of ours.
    Cairn,
    /// `SK` and 32 hexadecimal digits.
    Twilio,
    /// A bot's token, by what follows its number.
    Telegram,
    /// 32 hexadecimal digits before it.
    Mailchimp,
    /// A client secret of Azure.
    Azure,
    /// A signature of an address.
    Signature,
    /// The secret path of a hook's address.
    Webhook,
    /// `pat`, 14 letters, a dot and 64 hexadecimal digits.
    Airtable,
    /// 14 letters before it.
    Terraform,
    /// A command with a password among its arguments.
    Curl,
}

/// All but names and shapes.
const OTHERS: &[(&str, Trigger)] = &[
    ("authorization", Trigger::Authorization),
    ("cookie", Trigger::Cookie),
    ("bearer ", Trigger::Bearer),
    ("://", Trigger::Address),
    ("-----begin", Trigger::Pem),
    ("---- begin", Trigger::Pem),
    ("private-lines:", Trigger::Putty),
    ("eyj", Trigger::Jwt),
    ("sk-", Trigger::Sk),
    ("cairn_", Trigger::Cairn),
    ("sk", Trigger::Twilio),
    (":aa", Trigger::Telegram),
    ("-us", Trigger::Mailchimp),
    ("8q~", Trigger::Azure),
    ("7q~", Trigger::Azure),
    ("sig=", Trigger::Signature),
    ("hooks.slack.com/", Trigger::Webhook),
    ("/api/webhooks/", Trigger::Webhook),
    ("webhook.office.com/", Trigger::Webhook),
    ("pat", Trigger::Airtable),
    (".atlasv1.", Trigger::Terraform),
    ("curl ", Trigger::Curl),
];

/// The automaton, and what each of its patterns stands for.
pub(super) struct Triggers {
    pub(super) automaton: AhoCorasick,
    pub(super) all: Vec<Trigger>,
}

pub(super) static TRIGGERS: LazyLock<Triggers> = LazyLock::new(|| {
    let names = WORDS.iter().map(|(word, _)| (*word, Trigger::Name));
    let shapes = SHAPES
        .iter()
        .map(|shape| (shape.prefix, Trigger::Shape(shape)));
    let all = names.chain(shapes).chain(OTHERS.iter().copied());
    let (words, all): (Vec<&str>, Vec<Trigger>) = all.unzip();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(words)
        .expect("a few hundred short patterns");
    Triggers { automaton, all }
});
