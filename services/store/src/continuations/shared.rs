//! Sealed states in Redis, shared by all replicas and bounded by member and by tenant.
//!
//! Keeping, counting and making room are one script, `put.lua`, whose keys are all declared and
//! lie in one slot of a cluster.

use std::time::Duration;

use cairn_domain::hex::hex;
use cairn_domain::limits;
use cairn_domain::search::scope::owner;
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind};
use sha2::{Digest, Sha256};

use super::{Caps, ContinuationError, Found};
use crate::redis_link::RedisLink;

const PUT: &str = include_str!("put.lua");
/// What Redis calls the script, so that it need not be sent with each put. Were it wrong, every
/// put would send the script.
const PUT_SHA1: &str = "531431c64628edb85d2bd8b4aa7970bea559faa1";

/// How many entries beyond those in the way a put asks for once others have taken the room that it
/// was about to make.
const SPARE: usize = 16;
/// Attempts of one put. In each round of puts that come at once, as many find room as their owner
/// may have cursors, so more than two are rare.
const ATTEMPTS: usize = 100;

/// A shelf in Redis. Cheap to clone.
#[derive(Clone)]
pub(super) struct SharedShelf {
    link: RedisLink,
    prefix: String,
    pub(super) caps: Caps,
}

impl SharedShelf {
    /// A shelf whose keys begin with `prefix`.
    pub(super) fn new(link: RedisLink, prefix: &str) -> Self {
        let (prefix, caps) = (prefix.to_owned(), Caps::default());
        Self { link, prefix, caps }
    }

    /// Keeps a sealed state for as long as is left to it; the oldest of its owner make room.
    pub(super) async fn put(
        &self,
        scope: &str,
        name: &str,
        sealed: &[u8],
        left: Duration,
    ) -> Result<(), ContinuationError> {
        let mut put = Put {
            keys: Keys::of(&self.prefix, scope),
            name,
            sealed,
            left,
            may_go: Vec::new(),
            spare: 0,
        };
        for _ in 0..ATTEMPTS {
            let in_the_way = self.attempt(&put).await.map_err(unavailable)?;
            if in_the_way.is_empty() {
                return Ok(());
            }
            put.may_go = in_the_way;
            put.spare = SPARE;
        }
        let crowded = "others took the room that was made".to_owned();
        Err(ContinuationError::Unavailable(crowded))
    }

    /// What stands under each name.
    pub(super) async fn get(
        &self,
        scope: &str,
        names: &[String],
    ) -> Result<Vec<Found>, ContinuationError> {
        let keys = Keys::of(&self.prefix, scope);
        let mut get = redis::cmd("MGET");
        for name in names {
            get.arg(keys.state(name)).arg(keys.marker(name));
        }
        let values: Vec<Option<Vec<u8>>> =
            self.link.ask(&keys.tag, &get).await.map_err(unavailable)?;
        let (values, _) = values.as_chunks::<2>();
        let found = values
            .iter()
            .map(|[sealed, marker]| match (sealed, marker) {
                (Some(sealed), _) => Found::Sealed(sealed.clone()),
                (None, Some(_)) => Found::Marker,
                (None, None) => Found::Nothing,
            });
        Ok(found.collect())
    }

    /// Whether Redis answers.
    pub(super) async fn ping(&self) -> Result<(), ContinuationError> {
        self.link.ping().await.map_err(unavailable)
    }

    /// Runs the script, which a Redis that has not seen it is sent.
    async fn attempt(&self, put: &Put<'_>) -> RedisResult<Vec<String>> {
        let tag = &put.keys.tag;
        let known = put.command("EVALSHA", PUT_SHA1, self.caps);
        match self.link.ask(tag, &known).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let whole = put.command("EVAL", PUT, self.caps);
                self.link.ask(tag, &whole).await
            }
            answer => answer,
        }
    }
}

/// What the script is told.
struct Put<'a> {
    keys: Keys,
    name: &'a str,
    sealed: &'a [u8],
    left: Duration,
    /// Entries of the index that may have to go.
    may_go: Vec<String>,
    spare: usize,
}

impl Put<'_> {
    fn command(&self, verb: &str, script: &str, caps: Caps) -> Cmd {
        let keys = &self.keys;
        let mut declared = vec![keys.state(self.name), keys.marker(self.name)];
        declared.extend(keys.index());
        for name in self.may_go.iter().map(|entry| name_of(entry)) {
            declared.extend([keys.state(name), keys.marker(name)]);
        }
        let mut put = redis::cmd(verb);
        put.arg(script).arg(declared.len()).arg(declared);
        put.arg(self.sealed).arg(milliseconds(self.left));
        put.arg(milliseconds(self.left + limits::EXPIRED_TTL));
        put.arg(self.name).arg(&keys.member);
        put.arg(caps.member_cursors).arg(caps.member_bytes);
        put.arg(caps.tenant_bytes).arg(self.spare).arg(&self.may_go);
        put
    }
}

/// How the continuations of one owner are called in Redis.
///
/// A put touches keys of one tenant, and a cluster runs a script only over keys of one slot. So
/// each key carries the tenant's tag in braces, by which alone a cluster chooses the slot; it
/// stands behind the form of the contract, `cairn:ms:<kid>:<state key>`. The tag is a digest of
/// the tenant's id, so that no id can be read from it. It is not keyed by the ring: a tenant's
/// cursors must be found and counted together while the ring changes.
struct Keys {
    prefix: String,
    tag: String,
    member: String,
}

impl Keys {
    fn of(prefix: &str, scope: &str) -> Self {
        let (tenant, member) = owner(scope);
        Self {
            prefix: prefix.to_owned(),
            tag: digest(&["cairn:ms:tenant", tenant], 16),
            member: digest(&["cairn:ms:member", tenant, member], 8),
        }
    }

    fn state(&self, name: &str) -> String {
        format!("{}cairn:ms:{name}:{{{}}}", self.prefix, self.tag)
    }

    /// Where the empty marker of a state stands; its name says no more than the state's.
    fn marker(&self, name: &str) -> String {
        format!("{}:expired", self.state(name))
    }

    /// The tenant's index and its sums. No kid has braces, so no state is called like them.
    fn index(&self) -> [String; 2] {
        ["index", "sums"].map(|part| format!("{}cairn:ms:{{{}}}:{part}", self.prefix, self.tag))
    }
}

/// So many bytes, in hex, of a digest over some texts.
fn digest(texts: &[&str], bytes: usize) -> String {
    hex(&Sha256::digest(texts.join("\0"))[..bytes])
}

/// The name in an entry of the index, which is `a:<turn>:<member>:<end>:<bytes>:<name>`.
fn name_of(entry: &str) -> &str {
    entry.splitn(6, ':').nth(5).unwrap_or_default()
}

/// Whole milliseconds.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn unavailable(error: redis::RedisError) -> ContinuationError {
    ContinuationError::Unavailable(error.to_string())
}
