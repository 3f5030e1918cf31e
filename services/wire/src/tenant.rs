//! The tenant's settings as they are read and written (contract 19.3).

use cairn_domain::quota::Quota;
use cairn_domain::settings::Settings;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a tenant has set, with defaults for the rest. `PATCH` takes any of these; null takes one
/// back to its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantSettings {
    /// Who may read prompts: `private` or `team`.
    pub prompt_visibility: String,
    /// The tools that hosts are shown: `core`, `legacy`, or names separated by commas.
    pub tools: String,
    /// Who may read tool uses, of those with `evidence:read`: `team` or `author`.
    pub evidence_visibility: String,
    /// What makes observations of sessions: `extractive`, `anthropic` or `openai`.
    pub observer: String,
    /// Tokens a month that a model may cost; 0 leaves the work to the extractive observer.
    pub observer_tokens: u64,
    /// Whether the extractive observer does what a model could not.
    pub observer_fallback: bool,
    /// Days until what is kept expires, 0 to 3,650; 0 is never.
    pub retention_days: RetentionDays,
    /// The most of something; null is unlimited.
    pub quotas: Quotas,
    /// What somebody is who signs in for the first time: `reader`, `member` or `admin`.
    pub oidc_default_role: String,
}

/// Days until something expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetentionDays {
    /// Tool uses.
    pub tool_uses: u32,
    /// Prompts.
    pub prompts: u32,
    /// Observations.
    pub observations: u32,
    /// Summaries.
    pub summaries: u32,
    /// Work entries.
    pub work_entries: u32,
    /// Lines of the audit log.
    pub audit: u32,
}

/// The most of something; null is unlimited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Quotas {
    /// Bytes in all.
    pub stored_bytes: Option<u64>,
    /// Events a day.
    pub events_a_day: Option<u64>,
    /// Members.
    pub members: Option<u64>,
    /// Bytes of blobs.
    pub blob_bytes: Option<u64>,
    /// Tokens of model observers a month.
    pub observer_tokens_a_month: Option<u64>,
}

impl From<Settings> for TenantSettings {
    fn from(settings: Settings) -> Self {
        let (days, quotas) = (settings.retention_days, settings.quotas);
        Self {
            prompt_visibility: settings.prompt_visibility.name().to_owned(),
            tools: settings.tools,
            evidence_visibility: settings.evidence_visibility.name().to_owned(),
            observer: settings.observer,
            observer_tokens: settings.observer_tokens,
            observer_fallback: settings.observer_fallback,
            retention_days: RetentionDays {
                tool_uses: days.tool_uses,
                prompts: days.prompts,
                observations: days.observations,
                summaries: days.summaries,
                work_entries: days.work_entries,
                audit: days.audit,
            },
            quotas: Quotas {
                stored_bytes: quotas.get(Quota::StoredBytes),
                events_a_day: quotas.get(Quota::EventsADay),
                members: quotas.get(Quota::Members),
                blob_bytes: quotas.get(Quota::BlobBytes),
                observer_tokens_a_month: quotas.get(Quota::ObserverTokensAMonth),
            },
            oidc_default_role: settings.oidc_default_role.name().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    #[test]
    fn what_is_answered_can_be_sent_back() {
        let settings = TenantSettings::from(Settings::of(&Map::new()));
        let Value::Object(sent) = serde_json::to_value(&settings).expect("serialises") else {
            panic!("an object")
        };
        let mut stored = Map::new();
        Settings::patch(&mut stored, &sent).expect("all are settings");
        assert_eq!(TenantSettings::from(Settings::of(&stored)), settings);
    }
}
