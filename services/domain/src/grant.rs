//! Grant: how long what a member has let in lasts, and what a refresh token gets that is shown
//! (contract 14.2). A token is used once; one that comes again has been copied.

use chrono::{DateTime, Utc};

use crate::limits;

/// A refresh token of a grant, as its row tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It was never used.
    Fresh,
    /// It was used before.
    Used(DateTime<Utc>),
    /// The grant has no such token.
    Unknown,
}

/// What becomes of a refresh token that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is used up, and a successor is made.
    Rotate,
    /// It gets the successor that it got a moment ago: the answer may have been lost.
    Repeat,
    /// Two hold it: the grant ends.
    Revoke,
    /// It is worth nothing.
    Refuse,
}

/// How long a grant lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// When its refresh token was used last, or it was made.
    pub last_used_at: DateTime<Utc>,
    /// When it ends, however it is used.
    pub expires_at: DateTime<Utc>,
    /// Whether it was ended.
    pub revoked: bool,
}

impl Life {
    /// A grant that is made now.
    #[must_use]
    pub fn begin(now: DateTime<Utc>) -> Self {
        Self {
            last_used_at: now,
            expires_at: now + limits::GRANT_TIME,
            revoked: false,
        }
    }

    /// When it ends if it is not used any more.
    #[must_use]
    pub fn ends_at(&self) -> DateTime<Utc> {
        self.expires_at.min(self.last_used_at + limits::GRANT_IDLE)
    }

    /// What a refresh token of it gets.
    #[must_use]
    pub fn turn(&self, shown: Shown, now: DateTime<Utc>) -> Turn {
        if self.revoked || self.ends_at() <= now {
            return Turn::Refuse;
        }
        match shown {
            Shown::Fresh => Turn::Rotate,
            Shown::Used(at) if now <= at + limits::REFRESH_GRACE => Turn::Repeat,
            Shown::Used(_) => Turn::Revoke,
            Shown::Unknown => Turn::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_791_618_300 + seconds, 0).expect("an instant")
    }

    const DAY: i64 = 24 * 3600;

    #[test]
    fn a_token_is_used_once_but_for_a_lost_answer() {
        let life = Life::begin(at(0));
        for (shown, now, turn) in [
            (Shown::Fresh, 0, Turn::Rotate),
            (Shown::Fresh, 30 * DAY - 1, Turn::Rotate),
            (Shown::Fresh, 30 * DAY, Turn::Refuse),
            (Shown::Used(at(0)), 30, Turn::Repeat),
            (Shown::Used(at(0)), 31, Turn::Revoke),
            (Shown::Used(at(40)), 31, Turn::Repeat),
            (Shown::Unknown, 1, Turn::Refuse),
        ] {
            assert_eq!(life.turn(shown, at(now)), turn, "{shown:?} at {now}");
        }
        let ended = Life {
            revoked: true,
            ..life
        };
        assert_eq!(ended.turn(Shown::Fresh, at(1)), Turn::Refuse);
    }

    #[test]
    fn use_does_not_prolong_a_grant_for_ever() {
        let life = Life {
            last_used_at: at(179 * DAY),
            ..Life::begin(at(0))
        };
        assert_eq!(life.ends_at(), at(180 * DAY));
        assert_eq!(life.turn(Shown::Fresh, at(180 * DAY)), Turn::Refuse);
    }

    /// A grant as the store keeps it: its tokens, each with when it was used.
    struct Grant {
        life: Life,
        tokens: Vec<Option<DateTime<Utc>>>,
    }

    impl Grant {
        /// Shows the token of this place, and does what its turn says.
        fn show(&mut self, token: usize, now: DateTime<Utc>) -> Turn {
            let shown = match self.tokens.get(token) {
                None => Shown::Unknown,
                Some(None) => Shown::Fresh,
                Some(Some(at)) => Shown::Used(*at),
            };
            let turn = self.life.turn(shown, now);
            match turn {
                Turn::Rotate => {
                    self.tokens[token] = Some(now);
                    self.tokens.push(None);
                    self.life.last_used_at = now;
                }
                Turn::Revoke => self.life.revoked = true,
                Turn::Repeat | Turn::Refuse => {}
            }
            turn
        }
    }

    proptest! {
        /// Whatever is shown in whatever order: at most one token is fresh, a copy that is shown
        /// late ends everything, and what has ended stays so.
        #[test]
        fn whatever_is_shown_one_token_is_fresh_and_a_late_copy_ends_it(
            steps in prop::collection::vec((0_usize..6, 0_i64..40 * DAY), 1..40),
        ) {
            let mut grant = Grant { life: Life::begin(at(0)), tokens: vec![None] };
            let mut now = at(0);
            for (back, pause) in steps {
                now += TimeDelta::seconds(if back % 2 == 0 { pause % 60 } else { pause });
                let newest = grant.tokens.len() - 1;
                let token = newest.saturating_sub(back);
                let used = grant.tokens[token];
                let was_over = grant.life.revoked || grant.life.ends_at() <= now;
                let turn = grant.show(token, now);
                let fresh = grant.tokens.iter().filter(|used| used.is_none()).count();
                prop_assert_eq!(fresh, 1);
                prop_assert!(grant.life.ends_at() <= at(180 * DAY));
                match turn {
                    Turn::Rotate => prop_assert!(used.is_none() && !was_over),
                    Turn::Repeat => {
                        prop_assert!(now <= used.expect("used") + limits::REFRESH_GRACE);
                    }
                    Turn::Revoke => {
                        prop_assert!(grant.life.revoked);
                        let next = grant.tokens.len() - 1;
                        prop_assert_eq!(grant.show(next, now), Turn::Refuse);
                    }
                    Turn::Refuse => prop_assert!(was_over),
                }
            }
        }
    }
}
