//! Continuations in a real Redis Cluster of three nodes, reached through any one of them.

#![expect(
    clippy::disallowed_methods,
    reason = "tests of real time, with real servers whose addresses the environment names"
)]

#[path = "support/cursors.rs"]
mod cursors;

use std::collections::{BTreeMap, BTreeSet};

use cairn_domain::search::Cursor;
use cairn_store::continuations::{Caps, ContinuationError, Continuations};
use cairn_store::test_util::PrivateCluster;
use chrono::Utc;

use cursors::{is_kept, ring, save_in};

fn through(cluster: &PrivateCluster, node: usize) -> Continuations {
    Continuations::connect(&cluster.url(node), ring(&["k1"])).expect("an address")
}

fn scope(tenant: usize) -> String {
    format!("tenant-{tenant}/ada/*")
}

/// One cursor of each of so many tenants.
async fn save_one_each(store: &Continuations, tenants: usize) -> Vec<(String, Cursor)> {
    let mut saved = Vec::new();
    for scope in (0..tenants).map(scope) {
        let cursor = save_in(store, &scope, b"state").await;
        saved.push((scope, cursor));
    }
    saved
}

fn keys(cluster: &PrivateCluster, node: usize) -> Vec<String> {
    cluster.ask(node, redis::cmd("KEYS").arg("*"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_a_tenant_lie_in_one_slot_and_any_node_leads_there() {
    let cluster = PrivateCluster::start();
    let store = through(&cluster, 0);
    let saved = save_one_each(&store, 30).await;
    for node in cluster.nodes() {
        let other = through(&cluster, node);
        for (scope, cursor) in &saved {
            assert!(
                is_kept(&other, scope, cursor).await,
                "{scope} through {node}"
            );
        }
        assert!(
            !keys(&cluster, node).is_empty(),
            "node {node} has its share"
        );
    }
    let mut slots: BTreeMap<String, BTreeSet<u16>> = BTreeMap::new();
    let mut forms = 0;
    for key in cluster.nodes().flat_map(|node| keys(&cluster, node)) {
        let (before, tag) = key.split_once('{').expect("a tag");
        let (tag, _) = tag.split_once('}').expect("a tag");
        let state_key = before.strip_prefix("cairn:ms:k1:").unwrap_or_default();
        forms += usize::from(state_key.trim_end_matches(':').len() == 64);
        assert!(before.starts_with("cairn:ms:"), "{key}");
        slots
            .entry(tag.to_owned())
            .or_default()
            .insert(cluster.slot(&key));
    }
    assert_eq!(slots.len(), 30, "a tag each");
    assert!(slots.values().all(|slots| slots.len() == 1), "{slots:?}");
    assert_eq!(
        forms, 60,
        "a state and a marker each, in the contract's form"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn caps_hold_on_every_node() {
    let cluster = PrivateCluster::start();
    let caps = Caps {
        member_cursors: 2,
        ..Caps::default()
    };
    let store = through(&cluster, 1).with_caps(caps);
    let mut saved = Vec::new();
    for _ in 0..3 {
        saved.extend(save_one_each(&store, 12).await);
    }
    let (gone, kept) = saved.split_at(12);
    for (scope, cursor) in gone {
        assert!(!is_kept(&store, scope, cursor).await, "{scope}");
    }
    for (scope, cursor) in kept {
        assert!(is_kept(&store, scope, cursor).await, "{scope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_is_followed_by_the_first_call() {
    let cluster = PrivateCluster::start();
    let store = through(&cluster, 0);
    let (scope, cursor) = save_one_each(&store, 1).await.remove(0);
    let home = cluster
        .nodes()
        .find(|node| !keys(&cluster, *node).is_empty());
    let home = home.expect("somewhere");
    let slot = cluster.slot(&keys(&cluster, home)[0]);
    let () = cluster.ask(home, &redis::cmd("FLUSHALL"));
    cluster.move_slot(slot, (home + 1) % 3);
    assert!(
        !is_kept(&store, &scope, &cursor).await,
        "lost, as Redis may lose all"
    );
    let next = save_in(&store, &scope, b"state").await;
    assert!(is_kept(&store, &scope, &next).await);
    assert!(keys(&cluster, home).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_on_other_nodes_outlives_a_node() {
    let mut cluster = PrivateCluster::start();
    let store = through(&cluster, 0);
    let saved = save_one_each(&store, 20).await;
    let lost = keys(&cluster, 2);
    cluster.kill(2);
    let mut away = 0;
    for (scope, cursor) in &saved {
        match store.load(scope, cursor, Utc::now()).await {
            Ok(_) => assert!(is_kept(&store, scope, cursor).await, "{scope}"),
            Err(ContinuationError::Unavailable(_)) => away += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let states = lost.iter().filter(|key| key.ends_with('}')).count();
    assert_eq!(away, states);
}

#[tokio::test(flavor = "multi_thread")]
async fn c041_a_node_that_hangs_holds_up_its_own_tenants_only_and_not_once_it_is_back() {
    let cluster = PrivateCluster::start();
    let store = through(&cluster, 0);
    let saved = save_one_each(&store, 12).await;
    let hung = keys(&cluster, 1)
        .iter()
        .filter(|key| key.ends_with('}'))
        .count();
    assert!(0 < hung && hung < 12, "{hung}");
    cluster.pause(1);
    let mut loads = tokio::task::JoinSet::new();
    for (scope, cursor) in saved.clone() {
        let store = store.clone();
        loads.spawn(async move { store.load(&scope, &cursor, Utc::now()).await.is_err() });
    }
    let mut away = 0;
    while let Some(is_away) = loads.join_next().await {
        away += usize::from(is_away.expect("no panic"));
    }
    assert_eq!(away, hung);
    cluster.resume(1);
    for (scope, cursor) in &saved {
        assert!(is_kept(&store, scope, cursor).await, "{scope}");
    }
}
