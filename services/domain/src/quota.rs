//! Quota: how much one tenant may have, as its settings say. What is not set is not bounded; what
//! is set and cannot be read lets nothing more in.

use serde_json::Value;

/// What is bounded (contract 14.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quota {
    /// Bytes of the texts of records, tool uses and work entries, as they are kept.
    StoredBytes,
    /// Events that are stored on one day of UTC.
    EventsADay,
    /// Members who were not removed.
    Members,
    /// Bytes of the blobs of skills.
    BlobBytes,
    /// Tokens that observers with a model spend in one month of UTC.
    ObserverTokensAMonth,
}

impl Quota {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 5] = [
        Self::StoredBytes,
        Self::EventsADay,
        Self::ObserverTokensAMonth,
        Self::Members,
        Self::BlobBytes,
    ];

    /// The word in settings and problems.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StoredBytes => "stored_bytes",
            Self::EventsADay => "events_a_day",
            Self::Members => "members",
            Self::BlobBytes => "blob_bytes",
            Self::ObserverTokensAMonth => "observer_tokens_a_month",
        }
    }

    /// The quota of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quota| quota.name() == name)
    }

    /// What a tenant's setting `quotas` says of it.
    #[must_use]
    pub fn limit(self, quotas: Option<&Value>) -> Limit {
        let set = match quotas {
            None | Some(Value::Null) => return Limit::None,
            Some(Value::Object(set)) => set.get(self.name()),
            Some(_) => return Limit::Unreadable,
        };
        match set {
            None | Some(Value::Null) => Limit::None,
            Some(number) => match number.as_i64() {
                Some(most) if most >= 0 => Limit::AtMost(most),
                _ => Limit::Unreadable,
            },
        }
    }
}

/// What is set of each quota; none is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas([Option<u64>; Quota::ALL.len()]);

impl Quotas {
    /// What a tenant's setting `quotas` says, where it can be read: what is shown. What holds is
    /// [`Quota::limit`].
    #[must_use]
    pub fn of(setting: Option<&Value>) -> Self {
        let set = setting.and_then(Value::as_object);
        let mut quotas = Self::default();
        for quota in Quota::ALL {
            let most = set.and_then(|set| set.get(quota.name()));
            quotas.0[quota as usize] = most.and_then(Value::as_u64);
        }
        quotas
    }

    /// The most of one.
    #[must_use]
    pub const fn get(&self, quota: Quota) -> Option<u64> {
        self.0[quota as usize]
    }
}

/// How much a quota allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Any amount.
    None,
    /// So much.
    AtMost(i64),
    /// Nobody can tell: nothing more.
    Unreadable,
}

impl Limit {
    /// Refuses what is more than it allows.
    ///
    /// # Errors
    /// The limit, none if it cannot be read.
    pub const fn admit(self, total: i64) -> Result<(), Option<i64>> {
        match self {
            Self::None => Ok(()),
            Self::AtMost(most) if total <= most => Ok(()),
            Self::AtMost(most) => Err(Some(most)),
            Self::Unreadable => Err(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_set_is_not_bounded() {
        for quotas in [json!(null), json!({}), json!({"events_a_day": null})] {
            assert_eq!(Quota::EventsADay.limit(Some(&quotas)), Limit::None);
        }
        assert_eq!(Quota::Members.limit(None), Limit::None);
    }

    #[test]
    fn what_cannot_be_read_lets_nothing_in() {
        for quotas in [
            json!("none"),
            json!([1]),
            json!({"members": "many"}),
            json!({"members": -1}),
            json!({"members": 1.5}),
        ] {
            let limit = Quota::Members.limit(Some(&quotas));
            assert_eq!(limit.admit(0), Err(None), "{quotas}");
        }
    }

    #[test]
    fn a_limit_includes_itself() {
        let quotas = json!({"stored_bytes": 10});
        let limit = Quota::StoredBytes.limit(Some(&quotas));
        assert_eq!((limit.admit(10), limit.admit(11)), (Ok(()), Err(Some(10))));
    }

    #[test]
    fn names_read_back() {
        for quota in Quota::ALL {
            assert_eq!(Quota::from_name(quota.name()), Some(quota));
        }
    }

    #[test]
    fn each_quota_is_found_under_its_own_name() {
        for quota in Quota::ALL {
            let set = Quotas::of(Some(&json!({ quota.name(): 7 })));
            for other in Quota::ALL {
                assert_eq!(set.get(other), (other == quota).then_some(7), "{quota:?}");
            }
        }
        assert_eq!(Quotas::of(Some(&json!(["members"]))), Quotas::default());
    }
}
