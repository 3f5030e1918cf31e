//! How much the continuation store keeps: caps of members and tenants, in a real Redis.

#![expect(
    clippy::disallowed_methods,
    reason = "tests of real time, with real servers whose addresses the environment names"
)]

#[path = "support/cursors.rs"]
mod cursors;

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use cairn_domain::limits;
use cairn_domain::search::Cursor;
use cairn_store::continuations::{Caps, Continuations, Loaded};
use cairn_store::test_util::{PrivateRedis, shared_redis_url};
use chrono::{TimeDelta, Utc};

use cursors::{Behind, fresh, in_minutes, is_kept, prefix, replica, ring, save_in};

const ADA: &str = "acme/ada/*";
const BEN: &str = "acme/ben/*";
const STRANGER: &str = "umbra/ada/*";

/// What sealing adds to a state.
const SEAL: usize = 29;

/// Caps that few small cursors reach.
fn caps(member_cursors: usize, tenant_states: usize) -> Caps {
    Caps {
        member_cursors,
        tenant_bytes: (tenant_states * (STATE.len() + SEAL)) as u64,
        ..Caps::default()
    }
}

const STATE: &[u8] = b"a small state";

async fn save_many(store: &Continuations, scope: &str, count: usize) -> Vec<Cursor> {
    let mut cursors = Vec::new();
    for _ in 0..count {
        cursors.push(save_in(store, scope, STATE).await);
    }
    cursors
}

/// How many of the oldest are gone; panics if any younger one is.
async fn oldest_gone(store: &Continuations, scope: &str, cursors: &[Cursor]) -> usize {
    let mut kept = Vec::new();
    for cursor in cursors {
        kept.push(is_kept(store, scope, cursor).await);
    }
    let gone = kept.iter().take_while(|kept| !**kept).count();
    assert!(kept[gone..].iter().all(|kept| *kept), "{kept:?}");
    gone
}

#[tokio::test]
async fn a_member_keeps_1024_cursors_over_all_projects() {
    let store = replica(&prefix(), &["k1"]);
    let others = [
        (BEN, save_in(&store, BEN, STATE).await),
        (STRANGER, save_in(&store, STRANGER, STATE).await),
    ];
    let one = save_many(&store, ADA, 600).await;
    let two = save_many(&store, "acme/ada/project", 434).await;
    assert_eq!(oldest_gone(&store, ADA, &one).await, 10);
    assert_eq!(oldest_gone(&store, "acme/ada/project", &two).await, 0);
    for (scope, cursor) in &others {
        assert!(is_kept(&store, scope, cursor).await, "{scope}");
    }
}

#[tokio::test]
async fn a_member_keeps_8_mib_of_sealed_bytes() {
    let store = replica(&prefix(), &["k1"]);
    let other = save_in(&store, BEN, STATE).await;
    let whole = vec![7; limits::STATE_BYTES];
    let fit = limits::MEMBER_CURSOR_BYTES / (whole.len() + SEAL);
    let mut cursors = Vec::new();
    for _ in 0..fit + 3 {
        cursors.push(save_in(&store, ADA, &whole).await);
    }
    assert_eq!(oldest_gone(&store, ADA, &cursors).await, 3);
    assert!(is_kept(&store, BEN, &other).await);
}

#[tokio::test]
async fn in_a_full_tenant_the_oldest_of_the_member_goes_else_of_the_tenant() {
    let prefix = prefix();
    let store = replica(&prefix, &["k1"]).with_caps(caps(100, 6));
    let stranger = save_many(&store, STRANGER, 6).await;
    let ben = save_many(&store, BEN, 4).await;
    let ada = save_many(&store, ADA, 2).await;
    // The tenant is full. Whoever has cursors makes room with the oldest of them...
    let more = save_many(&store, ADA, 1).await;
    assert_eq!(oldest_gone(&store, ADA, &ada).await, 1);
    assert_eq!(oldest_gone(&store, BEN, &ben).await, 0);
    // ...and who has none with the oldest of all.
    let cleo = save_many(&store, "acme/cleo/*", 1).await;
    assert_eq!(oldest_gone(&store, BEN, &ben).await, 1);
    let large = vec![7; 3 * (STATE.len() + SEAL) - SEAL];
    let large = save_in(&store, "acme/cleo/*", &large).await;
    // Its own one was not enough: the two oldest of the others went as well.
    assert_eq!(oldest_gone(&store, "acme/cleo/*", &cleo).await, 1);
    assert_eq!(oldest_gone(&store, BEN, &ben).await, 3);
    assert!(is_kept(&store, "acme/cleo/*", &large).await);
    assert_eq!(oldest_gone(&store, ADA, &more).await, 0);
    assert_eq!(oldest_gone(&store, STRANGER, &stranger).await, 0);
}

#[tokio::test]
async fn a_state_larger_than_a_tenants_cap_stands_alone() {
    let prefix = prefix();
    let store = replica(&prefix, &["k1"]).with_caps(caps(100, 2));
    let small = save_many(&store, ADA, 2).await;
    let large = save_in(&store, BEN, &[7; 1_000]).await;
    assert!(is_kept(&store, BEN, &large).await);
    assert_eq!(oldest_gone(&store, ADA, &small).await, 2);
    let next = save_in(&store, ADA, STATE).await;
    assert!(is_kept(&store, ADA, &next).await && !is_kept(&store, BEN, &large).await);
}

#[tokio::test]
async fn caps_that_were_lowered_are_reached_by_and_by() {
    let prefix = prefix();
    let store = replica(&prefix, &["k1"]);
    let before = save_many(&store, ADA, 400).await;
    let store = store.with_caps(caps(10, 5));
    let next = save_in(&store, BEN, STATE).await;
    assert_eq!(oldest_gone(&store, ADA, &before).await, 256);
    let last = save_in(&store, BEN, STATE).await;
    assert_eq!(oldest_gone(&store, ADA, &before).await, 396);
    assert!(!is_kept(&store, BEN, &next).await && is_kept(&store, BEN, &last).await);
    Behind::new(&shared_redis_url(), &prefix).check_index();
}

#[tokio::test]
async fn caps_count_together_whichever_key_seals() {
    let prefix = prefix();
    let before = replica(&prefix, &["k1"]).with_caps(caps(3, 100));
    let after = replica(&prefix, &["k2", "k1"]).with_caps(caps(3, 100));
    let old = save_many(&before, ADA, 3).await;
    let new = save_many(&after, ADA, 2).await;
    assert_eq!(oldest_gone(&after, ADA, &old).await, 2);
    assert_eq!(oldest_gone(&after, ADA, &new).await, 0);
}

#[tokio::test]
async fn a_repeated_put_counts_once() {
    let prefix = prefix();
    let store = replica(&prefix, &["k1"]).with_caps(caps(2, 100));
    let (expires_at, now) = in_minutes(15);
    let first = save_in(&store, ADA, STATE).await;
    let cursor = fresh();
    for _ in 0..3 {
        let saved = store.save(ADA, &cursor, STATE, expires_at, now).await;
        saved.expect("saved");
    }
    assert!(is_kept(&store, ADA, &first).await && is_kept(&store, ADA, &cursor).await);
    let mut behind = Behind::new(&shared_redis_url(), &prefix);
    assert_eq!(behind.states().len(), 2);
    behind.check_index();
}

#[tokio::test(flavor = "multi_thread")]
async fn puts_of_many_replicas_at_once_keep_the_caps() {
    let prefix = prefix();
    let mut puts = tokio::task::JoinSet::new();
    for n in 0..120 {
        let store = replica(&prefix, &["k1"]).with_caps(caps(8, 12));
        let scope = [ADA, BEN][n % 2];
        puts.spawn(async move { save_in(&store, scope, STATE).await });
    }
    while let Some(put) = puts.join_next().await {
        put.expect("saved");
    }
    let mut behind = Behind::new(&shared_redis_url(), &prefix);
    assert_eq!(behind.states().len(), 12);
    behind.check_index();
    // Each state has its marker, and nothing else is left.
    assert_eq!(behind.keys().len(), 12 * 2 + 2);
}

#[tokio::test]
async fn expired_cursors_make_room_before_living_ones() {
    let prefix = prefix();
    let store = replica(&prefix, &["k1"]).with_caps(caps(2, 100));
    let living = save_in(&store, ADA, STATE).await;
    let short = fresh();
    let now = Utc::now();
    let soon = now + TimeDelta::milliseconds(50);
    let saved = store.save(ADA, &short, STATE, soon, now).await;
    saved.expect("saved");
    while store.load(ADA, &short, Utc::now()).await.expect("answers") != Loaded::Expired {
        tokio::task::yield_now().await;
    }
    let next = save_in(&store, ADA, STATE).await;
    assert!(is_kept(&store, ADA, &living).await && is_kept(&store, ADA, &next).await);
    let mut behind = Behind::new(&shared_redis_url(), &prefix);
    behind.check_index();
    // Its marker stays, as the answer is still that it expired.
    let loaded = store.load(ADA, &short, Utc::now()).await;
    assert_eq!(loaded.expect("answers"), Loaded::Expired);
}

/// A state ends with its search, its marker a quarter of an hour later, and the index with the
/// last state: Redis reads its clock more than once in a script, so within a second.
#[tokio::test]
async fn everything_ends_when_its_time_is_over() {
    let prefix = prefix();
    let store = replica(&prefix, &["k1"]);
    let mut behind = Behind::new(&shared_redis_url(), &prefix);
    let mut due = Vec::new();
    for minutes in [1, 5, 15, 2] {
        let (expires_at, now) = in_minutes(minutes);
        let saved = store.save(ADA, &fresh(), STATE, expires_at, now).await;
        saved.expect("saved");
        due.push(expires_at.timestamp_millis());
    }
    let end =
        |behind: &mut Behind, key: &str| -> i64 { behind.ask(redis::cmd("PEXPIRETIME").arg(key)) };
    let is_near = |one: i64, other: i64| (one - other).abs() < 1_000;
    let mut ends = Vec::new();
    for state in behind.states() {
        let marker = end(&mut behind, &format!("{state}:expired"));
        let state = end(&mut behind, &state);
        let grace = i64::try_from(limits::EXPIRED_TTL.as_millis()).expect("minutes fit");
        assert!(is_near(marker - state, grace));
        ends.push(state);
    }
    due.sort_unstable();
    ends.sort_unstable();
    // A busy machine takes its time between reckoning what is left and Redis hearing of it.
    let late = ends.iter().zip(&due).map(|(end, due)| end - due);
    assert!(
        late.clone().all(|late| (-10..30_000).contains(&late)),
        "{late:?}"
    );
    for key in behind.index() {
        assert!(is_near(end(&mut behind, &key), ends[3]), "{key}");
    }
}

#[tokio::test]
async fn an_index_that_lost_a_part_is_begun_anew() {
    let prefix = prefix();
    let store = replica(&prefix, &["k1"]).with_caps(caps(2, 100));
    let mut behind = Behind::new(&shared_redis_url(), &prefix);
    for part in 0..2 {
        save_many(&store, ADA, 2).await;
        let key = behind.index()[part].clone();
        let () = behind.ask(redis::cmd("DEL").arg(key));
        for key in behind.states() {
            let () = behind.ask(redis::cmd("DEL").arg(key));
        }
        let cursors = save_many(&store, ADA, 3).await;
        assert_eq!(oldest_gone(&store, ADA, &cursors).await, 1, "part {part}");
        behind.check_index();
    }
}

#[tokio::test]
async fn a_redis_that_has_not_seen_the_script_is_sent_it_once() {
    let redis = PrivateRedis::start();
    let store = Continuations::connect(&redis.url(), ring(&["k1"])).expect("an address");
    let mut behind = Behind::new(&redis.url(), "");
    let mut calls = |verb: &str| -> u64 {
        let stats: String = behind.ask(redis::cmd("INFO").arg("commandstats"));
        let line = stats.lines().find_map(|line| {
            let line = line.strip_prefix(&format!("cmdstat_{verb}:calls="))?;
            line.split_once(',')?.0.parse().ok()
        });
        line.unwrap_or_default()
    };
    save_many(&store, ADA, 5).await;
    assert_eq!((calls("evalsha"), calls("eval")), (5, 1));
    let mut flush = Behind::new(&redis.url(), "");
    let () = flush.ask(redis::cmd("SCRIPT").arg("FLUSH"));
    save_many(&store, ADA, 5).await;
    assert_eq!((calls("evalsha"), calls("eval")), (10, 2));
}

/// Redis says which keys a script touches; each must be among those that the call declared.
#[tokio::test]
async fn a_put_touches_nothing_that_it_did_not_declare() {
    let redis = PrivateRedis::start();
    let store = Continuations::connect(&redis.url(), ring(&["k1"])).expect("an address");
    let store = store.with_caps(caps(3, 4));
    let url = redis.url();
    let socket = url.strip_prefix("redis+unix://").expect("a socket");
    let mut monitor = UnixStream::connect(socket).expect("a connection");
    monitor.write_all(b"MONITOR\r\n").expect("sent");
    let mut lines = BufReader::new(monitor)
        .lines()
        .map(|line| line.expect("a line"));
    assert_eq!(lines.next().as_deref(), Some("+OK"));
    for scope in [ADA, BEN, ADA, ADA, ADA, "acme/cleo/*", "acme/cleo/*"] {
        save_in(&store, scope, STATE).await;
    }
    store.ping().await.expect("answers");
    let (mut declared, mut touched, mut evicted) = (HashSet::new(), 0, 0);
    for line in lines {
        let words: Vec<&str> = line
            .split(" \"")
            .map(|word| word.trim_end_matches('"'))
            .collect();
        match words[1].to_uppercase().as_str() {
            "PING" => break,
            "EVALSHA" | "EVAL" => {
                let count: usize = words[3].parse().expect("a number of keys");
                declared = words[4..4 + count]
                    .iter()
                    .map(|key| (*key).to_owned())
                    .collect();
            }
            "TIME" => {}
            command if words[0].ends_with("lua]") => {
                let keys = if command == "UNLINK" {
                    &words[2..]
                } else {
                    &words[2..3]
                };
                touched += keys.len();
                evicted += usize::from(command == "UNLINK");
                for key in keys {
                    assert!(declared.contains(*key), "{line}");
                }
            }
            _ => {}
        }
    }
    assert!(touched > 50 && evicted >= 3, "{touched} {evicted}");
}
