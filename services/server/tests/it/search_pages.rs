//! Pages of `/v1/search`: whatever is stored between two of them, what was there at the first is
//! shown once.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Caller, TestApp, forged, item};

type Question<'a> = Vec<(&'a str, String)>;

async fn page(caller: &Caller, question: &Question<'_>) -> Value {
    let question: Vec<_> = question.iter().map(|(n, v)| (*n, v.as_str())).collect();
    caller.search(&question).await.ok()
}

fn ids(answer: &Value) -> Vec<String> {
    let items = answer["items"].as_array().expect("items").iter();
    let id = |item: &Value| item["id"].as_str().expect("an id").to_owned();
    items.map(id).collect()
}

/// The question with where the page before ended.
fn next<'a>(question: &Question<'a>, answer: &Value) -> Option<Question<'a>> {
    let cursor = answer["next_cursor"].as_str()?.to_owned();
    let mut next = question.clone();
    next.push(("cursor", cursor));
    Some(next)
}

/// All pages of a question.
async fn walk(caller: &Caller, question: Question<'_>) -> Vec<String> {
    let mut seen = Vec::new();
    let mut turn = Some(question.clone());
    while let Some(asked) = turn {
        let answer = page(caller, &asked).await;
        seen.extend(ids(&answer));
        turn = next(&question, &answer);
    }
    seen
}

/// Observations of one batch, all at one instant.
async fn remember(caller: &Caller, count: usize) {
    let mut items = Vec::new();
    for n in 0..count {
        let mut one = item("observation", json!({"title": format!("walnut {}", n % 7)}));
        one["at"] = json!("2026-10-10T08:45:00.120Z");
        items.push(one);
    }
    caller.events(items).await.ok();
}

#[rstest]
#[case("relevance")]
#[case("date_desc")]
#[case("date_asc")]
#[tokio::test]
async fn c039_a_walk_over_all_pages_repeats_and_skips_nothing(#[case] order: &str) {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    remember(&owner, 25).await;
    for by_words in [true, false] {
        let before = page(&owner, &vec![("kind", "observation".to_owned())]).await["total"].clone();
        let before = usize::try_from(before.as_u64().expect("a number")).expect("few");
        let mut question = vec![("orderBy", order.to_owned()), ("limit", "10".to_owned())];
        question.push(match by_words {
            true => ("query", "walnut 3".to_owned()),
            false => ("kind", "observation".to_owned()),
        });
        let mut seen = Vec::new();
        let mut turn = Some(question.clone());
        while let Some(asked) = turn {
            let answer = page(&owner, &asked).await;
            if seen.is_empty() {
                remember(&owner, 10).await;
            }
            seen.extend(ids(&answer));
            turn = next(&question, &answer);
        }
        let distinct: BTreeSet<&String> = seen.iter().collect();
        assert_eq!(distinct.len(), seen.len(), "none twice: {seen:?}");
        if !by_words {
            let all = (1..=before).map(|n| n.to_string());
            assert!(
                all.into_iter().all(|id| distinct.contains(&id)),
                "none missing: {seen:?}"
            );
            if order != "date_asc" {
                assert_eq!(seen.len(), before, "nothing newer");
            }
        }
    }
}

#[tokio::test]
async fn what_is_not_ranked_follows_the_best_newest_first() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    // More than are ranked; the one that answers best is the oldest.
    let mut items = vec![item("observation", json!({"title": "walnut walnut tree"}))];
    items[0]["at"] = json!("2026-10-10T00:00:00Z");
    for n in 1..450 {
        let mut one = item(
            "observation",
            json!({"title": "walnut", "narrative": "x ".repeat(n % 5)}),
        );
        one["at"] = json!(format!("2026-10-11T{:02}:{:02}:00Z", n / 60, n % 60));
        items.push(one);
    }
    owner.events(items).await.ok();
    let by =
        |query: &str, limit: u32| vec![("query", query.to_owned()), ("limit", limit.to_string())];
    let question = by("walnut", 150);
    let first = page(&owner, &question).await;
    assert_eq!((ids(&first).len(), &first["total"]), (150, &json!(450)));
    let second = page(&owner, &next(&question, &first).expect("more")).await;
    let scored = |answer: &Value| {
        let items = answer["items"].as_array().expect("items").iter();
        items.filter(|item| item["score"].is_number()).count()
    };
    assert_eq!((scored(&first), scored(&second)), (150, 50));
    let third = page(&owner, &next(&question, &second).expect("more")).await;
    assert_eq!(
        (ids(&third).len(), &third["next_cursor"]),
        (150, &Value::Null)
    );
    let tail: Vec<String> = [&ids(&second)[50..], &ids(&third)].concat();
    let numbers: Vec<u32> = tail
        .iter()
        .map(|id| id.parse().expect("a number"))
        .collect();
    assert!(
        numbers.is_sorted_by(|newer, older| newer > older),
        "{numbers:?}"
    );
    let all = walk(&owner, by("walnut", 200)).await;
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 450);
    // However long its pages are, and by offset, it is the same sequence.
    assert_eq!(walk(&owner, by("walnut", 90)).await, all);
    for (offset, limit) in [
        (0, 5),
        (3, 7),
        (198, 4),
        (200, 10),
        (210, 20),
        (445, 20),
        (450, 1),
        (9_999, 1),
    ] {
        let mut question = by("walnut", limit);
        question.push(("offset", offset.to_string()));
        let answer = page(&owner, &question).await;
        let end = all.len().min(offset + limit as usize);
        let wanted = all.get(offset..end).unwrap_or_default();
        assert_eq!(ids(&answer), wanted, "{offset}");
        assert_eq!(
            answer["next_cursor"].is_null(),
            end == all.len(),
            "{offset}"
        );
        if let Some(next) = next(&by("walnut", 3), &answer) {
            assert_eq!(
                ids(&page(&owner, &next).await),
                all[end..all.len().min(end + 3)],
                "{offset}"
            );
        }
    }
    // Two words that no record holds together: either is enough.
    let any = walk(&owner, by("walnut quince", 200)).await;
    assert_eq!(any.len(), 450);
}

#[tokio::test]
async fn more_than_a_thousand_are_not_counted() {
    let app = TestApp::start().await;
    let owner = app.owner().await;
    for count in [500, 500] {
        remember(&owner, count).await;
    }
    let totals = |owner: Caller| async move {
        let mut totals = Vec::new();
        for order in ["relevance", "date_asc"] {
            for given in [("query", "walnut"), ("author", "me")] {
                let order = ("orderBy", order.to_owned());
                let asked = vec![
                    (given.0, given.1.to_owned()),
                    order,
                    ("limit", "1".to_owned()),
                ];
                let first = page(&owner, &asked).await;
                let second = page(&owner, &next(&asked, &first).expect("more")).await;
                assert_eq!(first["total"], second["total"]);
                totals.push(first["total"].clone());
            }
        }
        totals
    };
    assert_eq!(totals(owner.clone()).await, vec![json!(1_000); 4]);
    remember(&owner, 1).await;
    assert_eq!(totals(owner.clone()).await, vec![json!("1000+"); 4]);
    let far = vec![("author", "me".to_owned()), ("offset", "1000".to_owned())];
    assert_eq!(ids(&page(&owner, &far).await), ["1"]);
    let far = vec![
        ("author", "me".to_owned()),
        ("offset", "999".to_owned()),
        ("orderBy", "date_asc".to_owned()),
    ];
    assert_eq!(ids(&page(&owner, &far).await), ["1000", "1001"]);
}

#[tokio::test]
async fn a_cursor_is_good_for_its_own_search_alone() {
    let app = TestApp::start().await;
    let (owner, member) = (app.owner().await, app.member().await);
    let stranger = app.stranger().await;
    for caller in [&owner, &stranger] {
        remember(caller, 3).await;
    }
    for order in ["relevance", "date_desc"] {
        let with = |more: &[(&'static str, &str)]| {
            let more = more
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()));
            let mut question = vec![
                ("query", "walnut".to_owned()),
                ("orderBy", order.to_owned()),
            ];
            question.extend(more);
            question
        };
        let first = page(&owner, &with(&[("limit", "1")])).await;
        let cursor = first["next_cursor"].as_str().expect("another page");
        // Said in other words, it is the same search; how long a page is does not matter.
        let same = with(&[("project", "alpha-app"), ("cursor", cursor)]);
        let elsewhere = owner.clone().in_project("name:other");
        for caller in [&owner, &elsewhere] {
            assert_eq!(ids(&page(caller, &same).await).len(), 2);
        }
        let body = json!({"query": " walnut ", "orderBy": order, "cursor": cursor});
        let posted = owner.post("/v1/search", body).await.ok();
        assert_eq!(ids(&posted).len(), 2);
        let forged = forged(cursor);
        let other_order = if order == "relevance" {
            "date_asc"
        } else {
            "relevance"
        };
        for (caller, question) in [
            (&owner, with(&[("type", "discovery"), ("cursor", cursor)])),
            (&owner, with(&[("author", "me"), ("cursor", cursor)])),
            (&owner, with(&[("project", "*"), ("cursor", cursor)])),
            (
                &owner,
                vec![
                    ("query", "walnut".to_owned()),
                    ("orderBy", other_order.to_owned()),
                    ("cursor", cursor.to_owned()),
                ],
            ),
            (
                &owner,
                vec![
                    ("query", "walnuts".to_owned()),
                    ("orderBy", order.to_owned()),
                    ("cursor", cursor.to_owned()),
                ],
            ),
            (&owner, with(&[("cursor", &forged)])),
            (&owner, with(&[("cursor", &format!("{cursor}x"))])),
            (&owner, with(&[("cursor", &"A".repeat(5_000))])),
            (&owner, with(&[("cursor", "ms_Z6ywyNBJzkw_XuCLsD6p9-xZ")])),
            (&member, with(&[("cursor", cursor)])),
            (&stranger, with(&[("cursor", cursor)])),
        ] {
            let question: Vec<_> = question.iter().map(|(n, v)| (*n, v.as_str())).collect();
            let refused = caller.search(&question).await;
            assert_eq!(
                (refused.status.as_u16(), refused.code().as_str()),
                (422, "invalid_cursor")
            );
        }
    }
}

/// One walk of a kind that nobody thought of: pages of any length, in any order, while records are
/// stored, kept private, shared and deleted between them.
#[tokio::test]
async fn whatever_happens_between_pages_nothing_is_repeated_or_skipped() {
    let app = TestApp::start().await;
    for seed in 0..24 {
        let mut chance = StdRng::seed_from_u64(seed);
        let owner = app.owner().await.in_project(&format!("name:walk-{seed}"));
        let count = *[3, 40, 340].choose(&mut chance).expect("one");
        store(&owner, &mut chance, count).await;
        let order = ["relevance", "date_desc", "date_asc"]
            .choose(&mut chance)
            .expect("one");
        let mut question = vec![("orderBy", (*order).to_owned())];
        match chance.random_range(0..3) {
            0 => question.push(("kind", "observation,prompt".to_owned())),
            1 => question.push(("query", "walnut".to_owned())),
            _ => question.push(("query", "walnut apple pear".to_owned())),
        }
        let whole = [&question[..], &[("limit", "200".to_owned())]].concat();
        let there: BTreeSet<String> = walk(&owner, whole).await.into_iter().collect();
        let (mut seen, mut gone) = (Vec::new(), BTreeSet::new());
        let mut turn = Some(question.clone());
        while let Some(mut asked) = turn {
            let limit = chance.random_range(1..=60.min(2 + count));
            asked.push(("limit", limit.to_string()));
            let answer = page(&owner, &asked).await;
            seen.extend(ids(&answer));
            turn = next(&question, &answer);
            // Not for ever: from old to new a walk also sees what is stored behind it.
            if seen.len() < 2 * count {
                let more = chance.random_range(0..20);
                store(&owner, &mut chance, more).await;
            }
            if let Some(id) = there.iter().collect::<Vec<_>>().choose(&mut chance) {
                let noun = if id.starts_with('P') {
                    "prompts"
                } else {
                    "observations"
                };
                if chance.random_bool(0.5) {
                    owner.delete(&format!("/v1/{noun}/{id}")).await;
                    gone.insert((*id).clone());
                } else if noun == "observations" {
                    let patch = json!({"visibility": "team"});
                    let request =
                        owner.request(reqwest::Method::PATCH, &format!("/v1/{noun}/{id}"));
                    owner.send(request.json(&patch)).await;
                }
            }
        }
        let distinct: BTreeSet<String> = seen.iter().cloned().collect();
        assert_eq!(distinct.len(), seen.len(), "{seed}: none twice");
        let missing: Vec<_> = there
            .difference(&distinct)
            .filter(|id| !gone.contains(*id))
            .collect();
        assert!(
            missing.is_empty(),
            "{seed} {question:?}: none missing: {missing:?}"
        );
    }
}

/// Records of a few words at a few instants, some of them their author's alone.
async fn store(caller: &Caller, chance: &mut StdRng, count: usize) {
    let mut items = Vec::new();
    for _ in 0..count {
        let mut words = vec!["walnut"];
        words.extend((0..chance.random_range(0..4)).map(|_| {
            *["apple", "pear", "tree", "walnut"]
                .choose(chance)
                .expect("a word")
        }));
        let text = words.join(" ");
        let mut one = match chance.random_range(0..6) {
            0 => item("prompt", json!({ "text": text })),
            _ => item("observation", json!({ "title": text })),
        };
        let minute = chance.random_range(0..12);
        one["at"] = json!(format!("2026-10-10T08:{minute:02}:00Z"));
        if chance.random_bool(0.3) {
            one["visibility"] = json!("private");
        }
        items.push(one);
    }
    if !items.is_empty() {
        caller.events(items).await.ok();
    }
}
