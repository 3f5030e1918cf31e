//! Finding: one walk from trigger to trigger, and what it found brought into order.

use super::folded::Folded;
use super::runs::Runs;
use super::triggers::{TRIGGERS, Trigger};
use super::{Secret, address, assigned, curl, extra, header, pem, tokens};

/// The secrets of a text, in order and apart.
pub(super) fn secrets(text: &str) -> Vec<Secret> {
    let mut found = match Folded::of(text) {
        None => in_plain(text),
        Some(folded) => {
            let mut found = in_plain(&folded.text);
            for secret in &mut found {
                secret.span = folded.span(&secret.span);
            }
            found
        }
    };
    extra::find(text, &mut found);
    in_order(found)
}

fn in_plain(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    let triggers = &*TRIGGERS;
    let mut walk = Walk {
        runs: Runs::of(text),
        pem: pem::Ends::default(),
        assigned: assigned::Seen::default(),
        curl: curl::Seen::default(),
    };
    let mut covered = 0..0;
    for hit in triggers.automaton.find_overlapping_iter(text) {
        let trigger = triggers.all[hit.pattern().as_usize()];
        // Inside what goes as a whole no name and no block is looked for once more.
        let is_wide = matches!(trigger, Trigger::Name | Trigger::Pem | Trigger::Cookie);
        if is_wide && covered.contains(&hit.start()) {
            continue;
        }
        let before = found.len();
        walk.look(trigger, hit.range(), &mut found);
        if is_wide && let Some(secret) = found.get(before) {
            covered = secret.span.clone();
        }
    }
    tokens::discord(text, &mut found);
    found
}

/// Whether a text holds a secret, or a name that could make one of what stands elsewhere.
pub(super) fn may_hold_any(text: &str) -> bool {
    let triggers = &*TRIGGERS;
    let names = |hit: aho_corasick::Match| {
        matches!(
            triggers.all[hit.pattern().as_usize()],
            Trigger::Name | Trigger::Authorization | Trigger::Cookie | Trigger::Pem
        )
    };
    Folded::of(text).is_some()
        || triggers.automaton.find_overlapping_iter(text).any(names)
        || !secrets(text).is_empty()
}

struct Walk<'a> {
    runs: Runs<'a>,
    pem: pem::Ends,
    assigned: assigned::Seen,
    curl: curl::Seen,
}

impl Walk<'_> {
    fn look(&mut self, trigger: Trigger, hit: std::ops::Range<usize>, found: &mut Vec<Secret>) {
        let runs = &mut self.runs;
        match trigger {
            Trigger::Shape(shape) => found.extend(tokens::shaped(runs, hit.start, shape)),
            Trigger::Name => found.extend(self.assigned.find(runs, hit)),
            Trigger::Authorization => found.extend(header::authorization(runs, hit)),
            Trigger::Cookie => found.extend(header::cookie(runs, hit)),
            Trigger::Bearer => found.extend(header::bearer(runs, hit)),
            Trigger::Address => found.extend(address::password(runs, hit)),
            Trigger::Signature => found.extend(address::signature(runs, hit)),
            Trigger::Webhook => found.extend(address::webhook(runs, hit)),
            Trigger::Pem => found.extend(self.pem.block(runs.text, hit.start)),
            Trigger::Putty => found.extend(pem::putty(runs.text, hit.end)),
            Trigger::Jwt => found.extend(tokens::jwt(runs, hit.start)),
            Trigger::Sk => found.extend(tokens::sk(runs, hit.start)),
            Trigger::Cairn => found.extend(tokens::cairn(runs, hit.start)),
            Trigger::Twilio => found.extend(tokens::twilio(runs, hit.start)),
            Trigger::Telegram => found.extend(tokens::telegram(runs, hit.start)),
            Trigger::Mailchimp => found.extend(tokens::mailchimp(runs, hit.start)),
            Trigger::Azure => found.extend(tokens::azure(runs, hit.start)),
            Trigger::Airtable => found.extend(tokens::airtable(runs, hit.start)),
            Trigger::Terraform => found.extend(tokens::terraform(runs, hit.start)),
            Trigger::Curl => self.curl.find(runs.text, hit.end, found),
        }
    }
}

/// Sorts what was found; what overlaps becomes one, named by its most particular reading.
fn in_order(mut found: Vec<Secret>) -> Vec<Secret> {
    found.sort_by_key(|secret| (secret.span.start, usize::MAX - secret.span.end, secret.rank));
    let mut apart: Vec<Secret> = Vec::with_capacity(found.len());
    for secret in found {
        match apart.last_mut() {
            Some(last) if secret.span.start < last.span.end => {
                last.span.end = last.span.end.max(secret.span.end);
            }
            _ => apart.push(secret),
        }
    }
    apart
}
