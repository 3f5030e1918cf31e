//! Claims: who works on a task, for a limited time (contract 5.2). Decided here, made to last in
//! the transaction that appends the entry.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::Action;

/// A claim as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its holder, as printed: `lin#7c1e`.
    pub holder: String,
    /// When the lease ends, by the service's clock.
    pub until: DateTime<Utc>,
}

/// A claim on a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who holds it.
    pub holder: Holder,
    /// When the lease ends, by the service's clock.
    pub until: DateTime<Utc>,
    /// The length of the lease, in minutes: a write of the holder begins it anew.
    pub minutes: u32,
}

impl Claim {
    /// The claim as others see it.
    #[must_use]
    pub fn held(&self) -> Held {
        Held {
            holder: self.holder.name.clone(),
            until: self.until,
        }
    }
}

/// Who can hold a claim: a principal in a session. Two sessions of one member are two holders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The principal's number inside the database.
    pub principal: i32,
    /// SHA-256 of the session's key in hexadecimal; empty for a caller without a session.
    pub session: String,
    /// As it is printed: `lin#7c1e`.
    pub name: String,
}

impl Holder {
    /// A holder; `session` is the digest of the session's key in hexadecimal, or empty.
    #[must_use]
    pub fn new(principal: i32, handle: &str, session: String) -> Self {
        let name = match session.get(..4) {
            Some(head) => format!("{handle}#{head}"),
            None => handle.to_owned(),
        };
        Self {
            principal,
            session,
            name,
        }
    }

    fn is(&self, other: &Self) -> bool {
        self.principal == other.principal && self.session == other.session
    }
}

/// What a write of `me` makes of the claim on its task: the claim from then on. `held` is the
/// claim as it stands; one whose time is over, or of a closed task, is none. An admin may release
/// for anybody.
///
/// # Errors
/// The claim of somebody else that forbids it: then nothing is written. A plain write never is
/// forbidden.
pub fn decide(
    held: Option<Claim>,
    me: &Holder,
    action: Option<Action>,
    is_admin: bool,
    now: DateTime<Utc>,
) -> Result<Option<Claim>, Claim> {
    let held = held.filter(|claim| now < claim.until);
    let is_mine = held.as_ref().is_some_and(|claim| claim.holder.is(me));
    match (action, held) {
        (Some(Action::Claim { .. }), Some(claim)) if !is_mine => Err(claim),
        (Some(Action::Claim { minutes }), _) => Ok(Some(lease(me, minutes, now))),
        (Some(Action::Release), Some(claim)) if !is_mine && !is_admin => Err(claim),
        (Some(Action::Release), _) => Ok(None),
        (None, Some(claim)) if is_mine => Ok(Some(lease(me, claim.minutes, now))),
        (None, held) => Ok(held),
    }
}

/// A lease from now on, to the millisecond: so it reads the same wherever it is told.
fn lease(holder: &Holder, minutes: u32, now: DateTime<Utc>) -> Claim {
    Claim {
        holder: holder.clone(),
        until: now.trunc_subsecs(3) + TimeDelta::minutes(i64::from(minutes)),
        minutes,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holder(number: i32) -> Holder {
        // Two sessions of each of two members.
        let session = ["7c1e00", "", "7c1e00", "0a"][usize::try_from(number).expect("small")];
        Holder::new(number / 2, "lin", session.to_owned())
    }

    #[test]
    fn a_holder_is_printed_with_the_head_of_its_session() {
        assert_eq!(holder(0).name, "lin#7c1e");
        assert_eq!(holder(1).name, "lin");
    }

    fn actions() -> impl Strategy<Value = Option<Action>> {
        prop_oneof![
            (1..=1_440_u32).prop_map(|minutes| Some(Action::Claim { minutes })),
            Just(Some(Action::Release)),
            Just(None),
        ]
    }

    proptest! {
        /// Any order of calls of any holders with any time between them: a claim is lost exactly
        /// while somebody else's lease runs, a plain write never is, and only its holder or an
        /// admin ends a lease before its time.
        #[test]
        fn a_task_has_at_most_one_holder(
            calls in prop::collection::vec(
                (0..4_i32, actions(), any::<bool>(), 0..200_i64), 1..60),
        ) {
            let mut now = DateTime::UNIX_EPOCH;
            let mut held: Option<Claim> = None;
            for (number, action, is_admin, minutes) in calls {
                now += TimeDelta::minutes(minutes);
                let me = holder(number);
                let live = held.clone().filter(|claim| now < claim.until);
                let is_mine = live.as_ref().is_some_and(|claim| claim.holder == me);
                let others = live.is_some() && !is_mine;
                match (decide(held.clone(), &me, action, is_admin, now), action) {
                    (Err(claim), Some(action)) => {
                        prop_assert!(others);
                        prop_assert!(action != Action::Release || !is_admin);
                        prop_assert_eq!(Some(claim), live);
                    }
                    (Err(_), None) => prop_assert!(false, "a plain write was refused"),
                    (Ok(after), Some(Action::Claim { minutes })) => {
                        prop_assert!(!others);
                        let after = after.expect("a claim");
                        prop_assert_eq!(after.until, now + TimeDelta::minutes(minutes.into()));
                        prop_assert_eq!(&after.holder, &me);
                        held = Some(after);
                    }
                    (Ok(after), Some(Action::Release)) => {
                        prop_assert!(!others || is_admin);
                        prop_assert_eq!(after, None);
                        held = None;
                    }
                    (Ok(after), None) => {
                        if is_mine {
                            let after = after.as_ref().expect("still held");
                            prop_assert_eq!(&after.holder, &me);
                            prop_assert!(after.until > now);
                        } else {
                            prop_assert_eq!(&after, &live);
                        }
                        held = after;
                    }
                }
            }
        }
    }
}
