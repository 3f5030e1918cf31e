//! Rings, cursors and states for tests of the continuation store, and a look behind it.

#![expect(
    dead_code,
    reason = "each test binary uses the helpers it needs and no others"
)]

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_domain::search::Cursor;
use cairn_store::continuations::{Continuations, Loaded};
use cairn_store::cursor_keys::KeyRing;
use cairn_store::test_util::shared_redis_url;
use chrono::{DateTime, TimeDelta, Utc};
use redis::{Client, Cmd, Connection, FromRedisValue};

/// A ring of the keys with these names.
pub fn ring(kids: &[&str]) -> KeyRing {
    let entries: Vec<String> = kids
        .iter()
        .map(|kid| format!("{kid}:{}", STANDARD.encode(format!("{kid:-<40}"))))
        .collect();
    KeyRing::parse(&entries.join(",")).expect("a ring")
}

/// A prefix that no other test uses.
pub fn prefix() -> String {
    format!("test:{}:", uuid::Uuid::now_v7())
}

/// A store in the shared Redis.
pub fn replica(prefix: &str, kids: &[&str]) -> Continuations {
    Continuations::connect_with_prefix(&shared_redis_url(), ring(kids), prefix).expect("an address")
}

/// Stores on both arms that see nothing of other tests.
pub fn both_arms() -> [(&'static str, Continuations); 2] {
    [
        ("redis", replica(&prefix(), &["k1"])),
        ("memory", Continuations::memory(ring(&["k1"]))),
    ]
}

/// An instant so many minutes from now, and now.
pub fn in_minutes(minutes: i64) -> (DateTime<Utc>, DateTime<Utc>) {
    let now = Utc::now();
    (now + TimeDelta::minutes(minutes), now)
}

/// A cursor never seen before.
pub fn fresh() -> Cursor {
    Cursor::from_random(rand::random())
}

/// Keeps a state in a scope for 15 minutes.
pub async fn save_in(store: &Continuations, scope: &str, state: &[u8]) -> Cursor {
    let (expires_at, now) = in_minutes(15);
    let cursor = fresh();
    let saved = store.save(scope, &cursor, state, expires_at, now).await;
    saved.expect("saved");
    cursor
}

/// Whether a cursor leads to a state in a scope; it must not be expired.
pub async fn is_kept(store: &Continuations, scope: &str, cursor: &Cursor) -> bool {
    match store
        .load(scope, cursor, Utc::now())
        .await
        .expect("answers")
    {
        Loaded::State(_) => true,
        Loaded::Unknown => false,
        Loaded::Expired => panic!("an expired cursor"),
    }
}

/// Another way into a Redis, for looking at what it holds.
pub struct Behind {
    connection: Connection,
    prefix: String,
}

impl Behind {
    /// A look at the keys with a prefix, in the Redis at an address.
    pub fn new(url: &str, prefix: &str) -> Self {
        let client = Client::open(url).expect("an address");
        Self {
            connection: client.get_connection().expect("a connection"),
            prefix: prefix.to_owned(),
        }
    }

    pub fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> T {
        command.query(&mut self.connection).expect("an answer")
    }

    /// All keys, in order.
    pub fn keys(&mut self) -> Vec<String> {
        let pattern = format!("{}*", self.prefix);
        let mut keys: Vec<String> = self.ask(redis::cmd("KEYS").arg(pattern));
        keys.sort();
        keys
    }

    /// The keys of states, in order.
    pub fn states(&mut self) -> Vec<String> {
        let mut keys = self.keys();
        keys.retain(|key| key.ends_with('}'));
        keys
    }

    /// The two keys of the only tenant's index: its entries and their sums.
    pub fn index(&mut self) -> [String; 2] {
        let mut keys = self.keys();
        let is_index = |key: &String| !key.ends_with('}') && !key.ends_with(":expired");
        keys.retain(is_index);
        keys.try_into().expect("index and sums of one tenant")
    }

    /// Checks that an index says what is there: three texts a state, and sums of sealed bytes.
    pub fn check_index(&mut self) {
        let states = self.states();
        let [index, sums] = self.index();
        let texts: usize = self.ask(redis::cmd("ZCARD").arg(&index));
        assert_eq!(texts, 3 * states.len());
        let bytes = states
            .iter()
            .map(|state| self.ask::<i64>(redis::cmd("STRLEN").arg(state)));
        let total: i64 = bytes.collect::<Vec<_>>().iter().sum();
        let mut said: HashMap<String, i64> = self.ask(redis::cmd("HGETALL").arg(sums));
        assert!(said.remove("turn") >= Some(1) && said.remove("end").is_some());
        assert_eq!(said.remove("all"), Some(total));
        assert_eq!(said.values().sum::<i64>(), total, "by member");
        assert!(said.values().all(|bytes| *bytes > 0), "{said:?}");
    }
}
