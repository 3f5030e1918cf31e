//! What a store of continuations may do, as a plain list: the model that real stores are held
//! against, whatever the order of steps, replicas, callers and rings.

use cairn_domain::limits;
use cairn_domain::search::scope::owner;
use cairn_domain::search::{Cursor, Stored};
use cairn_store::continuations::{Caps, Loaded};
use chrono::{DateTime, Utc};

/// What sealing adds to a state.
const SEAL: usize = 29;

/// The rules by which a store makes room and lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// By member and tenant. Its own clock stands as good as still during a test.
    Shared(Caps),
    /// All owners together, by the caller's clock.
    Memory(Caps),
}

/// A cursor that was given out.
#[derive(Clone, Debug)]
pub struct Given {
    pub cursor: Cursor,
    pub kid: &'static str,
    pub stored: Stored,
    size: usize,
    /// Nothing was left of its time when it was saved.
    was_late: bool,
    /// It, or what reminds of it, had to make room.
    is_gone: bool,
}

/// All cursors that were given out, in order.
pub struct Model {
    rules: Rules,
    pub given: Vec<Given>,
}

impl Model {
    pub fn new(rules: Rules) -> Self {
        let given = Vec::new();
        Self { rules, given }
    }

    /// A state was saved.
    pub fn save(&mut self, cursor: Cursor, kid: &'static str, stored: Stored, now: DateTime<Utc>) {
        let new = Given {
            size: stored.to_json().len() + SEAL,
            was_late: stored.expires_at <= now,
            is_gone: false,
            cursor,
            kid,
            stored,
        };
        match self.rules {
            Rules::Shared(caps) if !new.was_late => {
                self.make_room(&new, caps);
                self.given.push(new);
            }
            Rules::Shared(_) => self.given.push(new),
            Rules::Memory(caps) => {
                self.given.push(new);
                self.make_room_in_memory(caps, now);
            }
        }
    }

    /// What a cursor must lead to in a scope, for who has the keys of a ring.
    pub fn load(&self, given: &Given, scope: &str, ring: &[&str], now: DateTime<Utc>) -> Loaded {
        let age = now - given.stored.expires_at;
        let is_over = match self.rules {
            Rules::Shared(_) => given.was_late,
            Rules::Memory(_) => age >= chrono::TimeDelta::zero(),
        };
        let is_forgotten =
            self.is_by_the_clock() && age.to_std().is_ok_and(|a| a >= limits::EXPIRED_TTL);
        if given.is_gone
            || is_forgotten
            || given.stored.scope != scope
            || !ring.contains(&given.kid)
        {
            Loaded::Unknown
        } else if is_over {
            Loaded::Expired
        } else {
            Loaded::State(given.stored.to_json())
        }
    }

    fn is_by_the_clock(&self) -> bool {
        matches!(self.rules, Rules::Memory(_))
    }

    fn make_room(&mut self, new: &Given, caps: Caps) {
        let (tenant, member) = owner(&new.stored.scope);
        let mut kept: Vec<&mut Given> = self
            .given
            .iter_mut()
            .filter(|given| !given.is_gone && !given.was_late)
            .filter(|given| owner(&given.stored.scope).0 == tenant)
            .collect();
        loop {
            let all: usize = kept.iter().map(|given| given.size).sum();
            let is_own = |given: &&mut Given| owner(&given.stored.scope).1 == member;
            let (count, held) = kept
                .iter()
                .filter(|given| is_own(given))
                .fold((0, 0), |(count, held), given| {
                    (count + 1, held + given.size)
                });
            let is_member_full =
                count >= caps.member_cursors || held + new.size > caps.member_bytes;
            let is_tenant_full = (all + new.size) as u64 > caps.tenant_bytes;
            if !(count > 0 && is_member_full || all > 0 && is_tenant_full) {
                return;
            }
            let oldest = kept.iter().position(is_own).unwrap_or(0);
            kept.remove(oldest).is_gone = true;
        }
    }

    fn make_room_in_memory(&mut self, caps: Caps, now: DateTime<Utc>) {
        let there = |given: &&mut Given| !given.is_gone;
        let (mut markers, mut states): (Vec<_>, Vec<_>) = self
            .given
            .iter_mut()
            .filter(there)
            .partition(|given| given.stored.expires_at <= now);
        while states.len() > 1
            && (states.len() > caps.member_cursors
                || states.iter().map(|given| given.size).sum::<usize>() > caps.member_bytes)
        {
            states.remove(0).is_gone = true;
        }
        markers.retain(|given| given.stored.expires_at + limits::EXPIRED_TTL > now);
        while markers.len() > caps.member_cursors {
            markers.remove(0).is_gone = true;
        }
    }
}
