//! Answer: what a service of any version says about a batch, as far as a flush must know it.
//!
//! Words and fields that this client does not know are no reason to lose the rest of an answer.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What became of a batch.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Answer {
    /// One outcome an item, as far as they can be read.
    #[serde(deserialize_with = "readable")]
    pub items: Vec<ItemAnswer>,
}

/// What became of one item.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ItemAnswer {
    /// The item's event id as it was sent.
    pub event_id: String,
    /// The outcome's word.
    pub status: String,
    /// Why it was refused.
    #[serde(default)]
    pub code: Option<String>,
    /// The field at fault.
    #[serde(default)]
    pub pointer: Option<String>,
    /// What is allowed.
    #[serde(default)]
    pub detail: Option<String>,
    /// Whether sending the same item again may help.
    #[serde(default)]
    pub retry: Option<bool>,
}

/// What an outcome asks of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// The service has it, or had it.
    Taken,
    /// The service will never take it as it is.
    Refused,
    /// The service may take it later.
    Later,
    /// A word of a later version.
    Unknown,
}

impl ItemAnswer {
    /// What the outcome asks of the client.
    #[must_use]
    pub fn outlook(&self) -> Outlook {
        match self.status.as_str() {
            "stored" | "duplicate" | "deleted" => Outlook::Taken,
            "refused" if self.retry == Some(true) => Outlook::Later,
            "refused" => Outlook::Refused,
            _ => Outlook::Unknown,
        }
    }
}

fn readable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ItemAnswer>, D::Error> {
    let items = Vec::<Value>::deserialize(deserializer)?;
    let read = items.into_iter().map(serde_json::from_value);
    Ok(read.filter_map(Result::ok).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_spoils_nothing_else() {
        let json = r#"{"items":[{"event_id":"e1","status":"stored"},{"event_id":7,"status":"x"},
            {"event_id":"e2","status":"refused","code":"too_purple","hue":[1]},
            {"event_id":"e3","status":"pondered"},
            {"event_id":"e4","status":"refused","code":"rate_limited","retry":true}],"new":1}"#;
        let answer: Answer = serde_json::from_str(json).expect("reads");
        let outlooks: Vec<Outlook> = answer.items.iter().map(ItemAnswer::outlook).collect();
        let want = [
            Outlook::Taken,
            Outlook::Refused,
            Outlook::Unknown,
            Outlook::Later,
        ];
        assert_eq!(outlooks, want);
    }
}
