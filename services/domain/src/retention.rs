//! Retention: for how many days after its arrival each kind of record is kept, as a tenant set it
//! (contract 19.3). What is over its time is removed for good.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::kind::Kind;
use crate::limits;

/// Days that each kind is kept; 0 is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Tool uses.
    pub tool_uses: u32,
    /// Prompts.
    pub prompts: u32,
    /// Observations.
    pub observations: u32,
    /// Summaries.
    pub summaries: u32,
    /// Entries of work lists.
    pub work_entries: u32,
    /// Lines of the audit log: kept for [`limits::LEAST_AUDIT_DAYS`] at least.
    pub audit: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            tool_uses: 30,
            prompts: 180,
            observations: 0,
            summaries: 0,
            work_entries: 0,
            audit: 400,
        }
    }
}

impl Retention {
    /// Reads the tenant's setting `retention_days`, a JSON object. A kind that is not named in it,
    /// or by no whole number of days, is kept for its default: a slip of a pen expires nothing.
    #[must_use]
    pub fn of(setting: Option<&Value>) -> Self {
        let mut kept = Self::default();
        let Some(Value::Object(days)) = setting else {
            return kept;
        };
        let places = [
            ("tool_uses", &mut kept.tool_uses),
            ("prompts", &mut kept.prompts),
            ("observations", &mut kept.observations),
            ("summaries", &mut kept.summaries),
            ("work_entries", &mut kept.work_entries),
            ("audit", &mut kept.audit),
        ];
        for (name, place) in places {
            let given = days.get(name).and_then(Value::as_u64);
            let given = given.and_then(|days| u32::try_from(days).ok());
            if let Some(days) = given.filter(|days| *days <= limits::MAX_RETENTION_DAYS) {
                *place = days;
            }
        }
        kept
    }

    /// Days that a kind is kept; 0 is for ever.
    #[must_use]
    pub const fn days(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Observation => self.observations,
            Kind::Summary => self.summaries,
            Kind::Prompt => self.prompts,
            Kind::ToolUse => self.tool_uses,
            Kind::WorkEntry => self.work_entries,
        }
    }

    /// The moment before which what arrived is over its time; `None` if it is kept for ever.
    #[must_use]
    pub fn cutoff(&self, kind: Kind, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let days = Some(self.days(kind)).filter(|days| *days > 0)?;
        now.checked_sub_signed(TimeDelta::days(i64::from(days)))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read(setting: Option<&str>) -> Retention {
        let setting = setting.and_then(|text| serde_json::from_str(text).ok());
        Retention::of(setting.as_ref())
    }

    #[test]
    fn what_is_set_counts_and_the_rest_stays_as_it_is() {
        let kept = read(Some(
            r#"{"tool_uses": 7, "prompts": 0, "observations": 365}"#,
        ));
        let wanted = Retention {
            tool_uses: 7,
            prompts: 0,
            observations: 365,
            ..Retention::default()
        };
        assert_eq!(kept, wanted);
    }

    #[rstest]
    #[case(None)]
    #[case(Some(""))]
    #[case(Some("7"))]
    #[case(Some(r#"{"tool_uses": -1}"#))]
    #[case(Some(r#"{"tool_uses": "7"}"#))]
    #[case(Some(r#"{"tool_uses": 0.5}"#))]
    #[case(Some(r#"{"tool_uses": 99999999}"#))]
    fn a_setting_of_no_meaning_expires_nothing(#[case] setting: Option<&str>) {
        assert_eq!(read(setting), Retention::default());
    }

    #[test]
    fn the_cutoff_is_so_many_days_ago() {
        let now = DateTime::from_timestamp(1_791_618_300, 0).expect("a time");
        let kept = Retention::default();
        assert_eq!(
            kept.cutoff(Kind::ToolUse, now),
            Some(now - TimeDelta::days(30))
        );
        assert_eq!(kept.cutoff(Kind::Observation, now), None);
    }
}
