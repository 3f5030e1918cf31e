//! Tests of the fold: against the rule itself, for any order of arrival and any snapshot.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// An entry at a moment; its event id is as unique as the moment and the number.
fn entry(list: &str, ms: i64, number: u128, fields: Value) -> WorkEntry {
    let Value::Object(fields) = fields else {
        unreachable!("tests give objects")
    };
    let task = match fields.get("task") {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        _ => None,
    };
    WorkEntry {
        list: list.to_owned(),
        task,
        fields,
        place: Place {
            hlc: Hlc { ms, counter: 0 },
            event: Uuid::from_u128(number),
        },
        author: format!("member-{}", number % 3),
    }
}

fn fold<'a>(entries: impl IntoIterator<Item = &'a WorkEntry>) -> WorkState {
    let mut state = WorkState::default();
    entries.into_iter().for_each(|entry| state.add(entry));
    state
}

/// An item as the tests compare it: its task, its keys with their values, its last writer.
type Told = (Option<String>, String, String);
/// An item while it is folded.
type Folded = (Option<String>, Map<String, Value>, String);

/// What the contract says: the entries in their order, each merged over what stood before; keys,
/// tasks as they first appear.
fn by_the_rule(entries: &[WorkEntry]) -> Vec<(String, Vec<Told>)> {
    let mut sorted: Vec<&WorkEntry> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.place);
    let mut lists: Vec<(String, Place, Vec<Folded>)> = Vec::new();
    for entry in sorted {
        let at = lists.iter().position(|list| list.0 == entry.list);
        let at = at.unwrap_or_else(|| {
            lists.push((entry.list.clone(), entry.place, Vec::new()));
            lists.len() - 1
        });
        let (_, newest, items) = &mut lists[at];
        *newest = entry.place;
        let item = items.iter().position(|item| item.0 == entry.task);
        let item = item.unwrap_or_else(|| {
            items.push((entry.task.clone(), Map::new(), String::new()));
            items.len() - 1
        });
        items[item].1.extend(entry.fields.clone());
        items[item].2.clone_from(&entry.author);
    }
    lists.sort_by_key(|list| std::cmp::Reverse(list.1));
    let shown = |(task, keys, author): Folded| {
        let keys = keys
            .into_iter()
            .filter(|(key, value)| key != "task" && !value.is_null());
        (
            task,
            keys.map(|(k, v)| format!("{k}={v}"))
                .collect::<Vec<_>>()
                .join(","),
            author,
        )
    };
    let list = |(name, _, items): (String, Place, Vec<_>)| {
        let mut items: Vec<_> = items.into_iter().map(shown).collect();
        // The state stands apart from the tasks.
        items.sort_by_key(|item| item.0.is_some());
        (name, items)
    };
    lists.into_iter().map(list).collect()
}

/// The same of a folded state.
fn told(state: &WorkState) -> Vec<(String, Vec<Told>)> {
    let item = |item: &Item| {
        let keys = item
            .keys
            .iter()
            .filter(|key| key.name != "task" && !key.value.is_null());
        let keys = keys.map(|key| format!("{}={}", key.name, key.value));
        (
            item.task.clone(),
            keys.collect::<Vec<_>>().join(","),
            item.author.clone(),
        )
    };
    let list = |list: &List| {
        let items = list.state.iter().chain(&list.tasks);
        (list.name.clone(), items.map(item).collect())
    };
    state.lists.iter().map(list).collect()
}

fn entries() -> impl Strategy<Value = Vec<WorkEntry>> {
    let value = prop_oneof![
        Just(Value::Null),
        (0..4_i32).prop_map(|n| json!(n)),
        "(todo|doing|done|Dropped)".prop_map(Value::from),
    ];
    let fields = prop::collection::vec(("(a|b|status|task|__proto__)", value), 1..4);
    let one = ("(l|m)", 0..6_i64, fields, prop::option::of("(x|y|z)"));
    prop::collection::vec(one, 1..24).prop_map(|all| {
        let numbered = (1..).zip(all);
        let one =
            |(number, (list, ms, fields, task)): (u128, (String, i64, Vec<_>, Option<String>))| {
                let mut fields: Map<String, Value> = fields.into_iter().collect();
                match task {
                    Some(task) => fields.insert("task".to_owned(), task.into()),
                    None => fields.insert("task".to_owned(), Value::Null),
                };
                entry(&list, ms, number, Value::Object(fields))
            };
        numbered.map(one).collect()
    })
}

proptest! {
    #[test]
    fn any_order_of_arrival_gives_what_the_rule_says(
        (entries, arrival) in entries().prop_flat_map(|entries| {
            let order = Just(entries.clone()).prop_shuffle();
            (Just(entries), order)
        }),
    ) {
        prop_assert_eq!(told(&fold(&arrival)), by_the_rule(&entries));
        // A repeat changes nothing.
        prop_assert_eq!(fold(arrival.iter().chain(&arrival)), fold(&arrival));
    }

    #[test]
    fn a_snapshot_at_any_point_changes_no_answer(
        arrival in entries().prop_shuffle(),
        cut in any::<prop::sample::Index>(),
    ) {
        let cut = cut.index(arrival.len());
        let snapshot = serde_json::to_string(&fold(&arrival[..cut])).expect("serialises");
        let mut state: WorkState = serde_json::from_str(&snapshot).expect("reads");
        arrival[cut..].iter().for_each(|entry| state.add(entry));
        prop_assert_eq!(state, fold(&arrival));
    }

    #[test]
    fn an_item_kept_beside_the_log_is_the_item(arrival in entries()) {
        for item in fold(&arrival).lists.iter().flat_map(|list| &list.tasks) {
            let kept = Item::from_stored(
                item.task.clone(), item.first, item.last, item.author.clone(), &item.stored_keys());
            prop_assert_eq!(&kept.expect("reads"), item);
        }
    }
}

#[test]
fn a_late_replay_never_reopens() {
    let done = entry("l", 1_100, 1, json!({"task": "t", "status": "done"}));
    let late = entry(
        "l",
        1_000,
        2,
        json!({"task": "t", "status": "doing", "note": "n"}),
    );
    let state = fold([&done, &late]);
    let task = &state.lists[0].tasks[0];
    assert!(task.is_closed());
    assert_eq!(task.value("note").as_deref(), Some("n"));
}

#[test]
fn only_done_and_dropped_close() {
    for (status, closed) in [
        (json!("DONE"), true),
        (json!("Dropped"), true),
        (json!("cancelled"), false),
        (json!(null), false),
        (json!(true), false),
        (json!(" done"), false),
    ] {
        let state = fold([&entry("l", 1, 1, json!({"task": "t", "status": status}))]);
        assert_eq!(state.lists[0].tasks[0].is_closed(), closed, "{status}");
    }
}
