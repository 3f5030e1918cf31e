//! Operations: what a client asks of the service, as data that can be sent again and again.

use uuid::Uuid;

/// One call.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The key of the caller.
    pub key: String,
    /// The current project's key.
    pub project: String,
    /// What is asked.
    pub call: Call,
}

/// What is asked.
#[derive(Clone, Debug)]
pub enum Call {
    /// A GET of this path.
    Get(String),
    /// The same, of what no cache may answer.
    GetAnew(String),
    /// A POST of this body to this path.
    Post(&'static str, String),
    /// A batch of events: of each item, what follows its event id. Ids are new in each call.
    Batch(Vec<String>),
}

impl Operation {
    /// The current project as the header carries it: percent-encoded.
    #[must_use]
    pub fn encoded_project(&self) -> String {
        let mut encoded = String::with_capacity(self.project.len() + 2);
        for byte in self.project.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                encoded.push_str(&format!("%{byte:02X}"));
            }
        }
        encoded
    }

    /// A batch as a request's body, and its event ids.
    #[must_use]
    pub fn batch_body(project: &str, items: &[String]) -> (String, Vec<Uuid>) {
        let ids: Vec<Uuid> = items.iter().map(|_| Uuid::now_v7()).collect();
        let size: usize = items.iter().map(|item| item.len() + 60).sum();
        let mut body = String::with_capacity(size + 200);
        body.push_str("{\"project\":{\"key\":\"");
        body.push_str(project);
        body.push_str("\"},\"items\":[");
        for (index, (id, rest)) in ids.iter().zip(items).enumerate() {
            body.push_str(if index == 0 {
                "{\"event_id\":\""
            } else {
                ",{\"event_id\":\""
            });
            body.push_str(&id.to_string());
            body.push_str("\",");
            body.push_str(rest);
        }
        body.push_str("]}");
        (body, ids)
    }
}

/// An item without its opening and event id, for [`Call::Batch`].
#[must_use]
pub fn item_rest(kind: &str, at: Option<&str>, body: &serde_json::Value) -> String {
    let at = at.map(|at| format!("\"at\":\"{at}\",")).unwrap_or_default();
    format!("{at}\"kind\":\"{kind}\",\"body\":{body}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_encoded_for_its_header() {
        let operation = Operation {
            key: String::new(),
            project: "name:a b/é-1".to_owned(),
            call: Call::Get(String::new()),
        };
        assert_eq!(operation.encoded_project(), "name%3Aa%20b%2F%C3%A9-1");
    }

    #[test]
    fn a_batch_is_what_the_wire_takes() {
        let body = serde_json::json!({"title": "t"});
        let items = [
            item_rest("observation", None, &body),
            item_rest("observation", Some("2026-01-01T00:00:00Z"), &body),
        ];
        let (text, ids) = Operation::batch_body("name:p", &items);
        let batch: cairn_wire::events::Batch = serde_json::from_str(&text).expect("a batch");
        let item: cairn_wire::events::Item =
            serde_json::from_str(batch.items[1].get()).expect("an item");
        assert_eq!((item.event_id, batch.items.len()), (ids[1], 2));
        assert!(item.at.is_some());
        let (_, others) = Operation::batch_body("name:p", &items);
        assert_ne!(ids, others);
    }
}
