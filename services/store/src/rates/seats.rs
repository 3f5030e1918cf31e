//! Seats: how much of what goes on for long a caller has at once, over all replicas. One that is
//! not kept is over after a while, so that a replica that was killed holds none for ever.

use std::time::Duration;

use cairn_domain::ids::{PrincipalId, TenantId};
use redis::Cmd;
use uuid::Uuid;

use super::shared::Script;
use super::{Buckets, Rates, digest};

const SEAT: Script = Script {
    text: include_str!("seat.lua"),
    sha1: "a9e1032f990076bc007f0a2a521efa138a60539e",
};
/// Stands for a number of seats where one is kept.
const KEEP: i64 = 0;
/// Stands for a number of seats where one is left.
const LEAVE: i64 = -1;

/// Whose seats, and of what.
pub type Sitter = (TenantId, PrincipalId, &'static str);

/// What became of an attempt to take a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seated {
    /// It is taken.
    Yes,
    /// Others have all there are.
    Full,
    /// Redis does not answer: nobody can tell.
    Unknown,
    /// Nobody counts for several replicas.
    Alone,
}

impl Rates {
    /// Takes a seat among so many of a caller, for a while; one that the caller has already stays
    /// theirs.
    pub async fn take_seat(
        &self,
        sitter: Sitter,
        seat: Uuid,
        most: usize,
        lasts: Duration,
    ) -> Seated {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.sit(sitter, seat, most, lasts).await
    }

    /// Keeps a seat for a while longer, also one that nobody could count when it was taken.
    pub async fn keep_seat(&self, sitter: Sitter, seat: Uuid, lasts: Duration) -> Seated {
        self.sit(sitter, seat, KEEP, lasts).await
    }

    /// Leaves a seat.
    pub async fn leave_seat(&self, sitter: Sitter, seat: Uuid) {
        self.sit(sitter, seat, LEAVE, Duration::ZERO).await;
    }

    async fn sit(&self, sitter: Sitter, seat: Uuid, most: i64, lasts: Duration) -> Seated {
        let Buckets::Shared(shared, _) = &self.buckets else {
            return Seated::Alone;
        };
        let (tenant, principal, room) = sitter;
        let tag = digest(&tenant.uuid().to_string());
        let key = format!("cairn:rate:{{{tag}}}:seats:{room}:{}", principal.key);
        let lasts = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
        let fill = |command: &mut Cmd| {
            command.arg(1).arg(shared.key(&key));
            command.arg(seat.to_string()).arg(lasts).arg(most);
        };
        match shared.run::<i64>(&tag, &SEAT, fill).await {
            Some(1) => Seated::Yes,
            Some(_) => Seated::Full,
            None => Seated::Unknown,
        }
    }
}
