//! Parameters by the names that callers of an older service know, brought to ours.

use cairn_wire::query::Pairs;
use serde_json::{Map, Value};

/// Names of parameters and of members of bodies, and what they are called here.
const NAMES: &[(&str, &str)] = &[
    ("obs_type", "type"),
    ("concepts", "concept"),
    ("files", "file"),
    ("filePath", "file"),
    ("dateStart", "from"),
    ("date_from", "from"),
    ("dateEnd", "to"),
    ("date_to", "to"),
    ("orderBy", "order"),
    ("depthBefore", "depth_before"),
    ("depthAfter", "depth_after"),
    ("includeClosed", "include_closed"),
    ("leaseMinutes", "lease_minutes"),
];

/// What `type` may mean beside the type of an observation: the kind of a record.
const KINDS: &[(&str, &str)] = &[
    ("observations", "observation"),
    ("sessions", "summary"),
    ("prompts", "prompt"),
];

/// Parameters by our names. `projects` is left to [`projects`].
pub fn ours(pairs: Pairs) -> Pairs {
    let named = pairs.0.into_iter().map(|(name, value)| {
        let kind = KINDS.iter().find(|(theirs, _)| *theirs == value.trim());
        match (name.as_str(), kind) {
            ("type", Some((_, kind))) => ("kind".to_owned(), (*kind).to_owned()),
            _ => (our_name(&name).to_owned(), value),
        }
    });
    Pairs(named.collect())
}

/// The members of a body by our names, if it is an object; a member that has our name already
/// counts.
pub fn our_body(body: Value) -> Value {
    let Value::Object(theirs) = body else {
        return body;
    };
    let mut ours = Map::new();
    let (known, others): (Vec<_>, Vec<_>) = theirs
        .into_iter()
        .partition(|(name, _)| our_name(name) == name);
    ours.extend(known);
    for (name, value) in others {
        ours.entry(our_name(&name)).or_insert(value);
    }
    Value::Object(ours)
}

/// The projects that are named: one, or several for a worktree and the repository it belongs to.
pub fn projects(pairs: &Pairs) -> Vec<&str> {
    match pairs.text("project") {
        Some(project) => vec![project],
        None => pairs.list("projects").collect(),
    }
}

fn our_name(name: &str) -> &str {
    let known = NAMES.iter().find(|(theirs, _)| *theirs == name);
    known.map_or(name, |(_, ours)| ours)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pairs(given: &[(&str, &str)]) -> Pairs {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Pairs(given.iter().map(owned).collect())
    }

    #[test]
    fn parameters_are_known_by_both_names() {
        let theirs = [
            ("type", "sessions"),
            ("obs_type", "bugfix"),
            ("filePath", "a.rs"),
            ("dateStart", "2026-10-10"),
            ("date_to", "2026-10-11"),
            ("orderBy", "date_asc"),
            ("limit", "5"),
        ];
        let wanted = [
            ("kind", "summary"),
            ("type", "bugfix"),
            ("file", "a.rs"),
            ("from", "2026-10-10"),
            ("to", "2026-10-11"),
            ("order", "date_asc"),
            ("limit", "5"),
        ];
        assert_eq!(ours(pairs(&theirs)), pairs(&wanted));
        let kept = [("type", "bugfix"), ("type", "decision")];
        assert_eq!(ours(pairs(&kept)), pairs(&kept));
    }

    #[test]
    fn projects_come_one_by_one_or_between_commas() {
        let several = pairs(&[("projects", "parent, tree"), ("projects", "last")]);
        assert_eq!(projects(&several), ["parent", "tree", "last"]);
        let one = pairs(&[("projects", "parent"), ("project", "a,b")]);
        assert_eq!(projects(&one), ["a,b"]);
        assert!(projects(&pairs(&[])).is_empty());
    }

    #[test]
    fn our_own_name_counts_in_a_body() {
        let body = json!({"leaseMinutes": 5, "list": "l", "order": "a", "orderBy": "b"});
        let wanted = json!({"list": "l", "order": "a", "lease_minutes": 5});
        assert_eq!(our_body(body), wanted);
        assert_eq!(our_body(json!([1])), json!([1]));
    }
}
