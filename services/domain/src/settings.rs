//! Settings: what a tenant may set for itself, with bounds and defaults (contract 19.3).
//!
//! They are kept as one JSON object of what differs from the defaults; what a newer version keeps
//! there stays.

use serde_json::{Map, Value};

use crate::event::Visibility;
use crate::quota::{Quota, Quotas};
use crate::retention::Retention;
use crate::scope::Role;
use crate::{Rejection, limits};

/// What a tenant has set, with defaults for all it has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who may read prompts: `private` unless it is set.
    pub prompt_visibility: Visibility,
    /// The tools that hosts are shown: profiles and names, separated by commas.
    pub tools: String,
    /// Who may read tool uses.
    pub evidence_visibility: EvidenceVisibility,
    /// What makes observations of sessions.
    pub observer: String,
    /// Tokens a month that a model may cost; 0 leaves the work to the extractive observer.
    pub observer_tokens: u64,
    /// Whether the extractive observer does what a model could not.
    pub observer_fallback: bool,
    /// How long what is kept is kept.
    pub retention_days: Retention,
    /// How much there may be; none is unlimited.
    pub quotas: Quotas,
    /// What somebody is who signs in for the first time.
    pub oidc_default_role: Role,
}

/// Who may read tool uses, of those with the scope for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceVisibility {
    /// Everyone who may read the project.
    Team,
    /// Who made the call.
    Author,
}

impl EvidenceVisibility {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Team => "team",
            Self::Author => "author",
        }
    }
}

impl Settings {
    /// The settings that a stored object holds. A value of no meaning to this version is as if it
    /// were not set; only who may read evidence is then the author alone.
    #[must_use]
    pub fn of(stored: &Map<String, Value>) -> Self {
        let known = |name: &str| FIELDS.iter().find(|field| field.name == name);
        let value = |name: &str| {
            let value = stored.get(name)?;
            let field = known(name)?;
            field.check(value, "").ok().map(|()| value)
        };
        let word = |name: &str, default: &str| {
            let set = value(name).and_then(Value::as_str);
            set.unwrap_or(default).to_owned()
        };
        let prompts = word("prompt_visibility", "private");
        let evidence = stored.get("evidence_visibility");
        let is_shared = evidence.is_none_or(|value| value == EvidenceVisibility::Team.name());
        let role = Role::from_name(&word("oidc_default_role", "reader"));
        Self {
            prompt_visibility: Visibility::from_name(&prompts).unwrap_or(Visibility::Private),
            tools: word("tools", "core"),
            evidence_visibility: match is_shared {
                true => EvidenceVisibility::Team,
                false => EvidenceVisibility::Author,
            },
            observer: word("observer", "extractive"),
            observer_tokens: value("observer_tokens")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            observer_fallback: value("observer_fallback")
                .and_then(Value::as_bool)
                .unwrap_or(true),
            retention_days: Retention::of(stored.get(RETENTION)),
            quotas: Quotas::of(stored.get(QUOTAS)),
            oidc_default_role: role.unwrap_or(Role::Reader),
        }
    }

    /// Changes a stored object: what `patch` names is set, null goes back to the default, all else
    /// stays. Gives the names of what differs from before, `retention_days.audit` for one within
    /// another.
    ///
    /// # Errors
    /// `invalid_field` with a pointer for a name that is no setting and for a value out of bounds;
    /// then nothing is changed.
    pub fn patch(
        stored: &mut Map<String, Value>,
        patch: &Map<String, Value>,
    ) -> Result<Vec<String>, Rejection> {
        check_all(FIELDS, patch, "")?;
        let mut changed = Vec::new();
        for (name, value) in patch {
            match value.as_object() {
                None => set(stored, name, value, name, &mut changed),
                Some(fields) => {
                    let entry = stored.entry(name.clone()).or_insert_with(empty);
                    if !entry.is_object() {
                        *entry = empty();
                    }
                    let within = entry.as_object_mut().into_iter();
                    for within in within {
                        for (field, value) in fields {
                            let path = format!("{name}.{field}");
                            set(within, field, value, &path, &mut changed);
                        }
                    }
                }
            }
        }
        changed.sort_unstable();
        Ok(changed)
    }
}

const RETENTION: &str = "retention_days";
const QUOTAS: &str = "quotas";

/// A setting.
#[derive(Clone, Copy)]
struct Field {
    name: &'static str,
    kind: Kind,
}

/// What a setting may be.
#[derive(Clone, Copy)]
enum Kind {
    /// One of these words.
    Word(&'static [&'static str]),
    /// Profiles and names of tools, separated by commas.
    Tools,
    /// A whole number up to this one.
    Number(u64),
    /// Yes or no.
    Flag,
    /// Settings of their own.
    Object(&'static [Field]),
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind }
}

const fn days(name: &'static str) -> Field {
    field(name, Kind::Number(limits::MAX_RETENTION_DAYS as u64))
}

const fn amount(name: &'static str) -> Field {
    field(name, Kind::Number(limits::MAX_QUOTA))
}

/// One for each quota there is.
const QUOTA_FIELDS: [Field; Quota::ALL.len()] = {
    let mut fields = [amount(""); Quota::ALL.len()];
    let mut place = 0;
    while place < fields.len() {
        fields[place] = amount(Quota::ALL[place].name());
        place += 1;
    }
    fields
};

const FIELDS: &[Field] = &[
    field("prompt_visibility", Kind::Word(&["private", "team"])),
    field("tools", Kind::Tools),
    field("evidence_visibility", Kind::Word(&["team", "author"])),
    field(
        "observer",
        Kind::Word(&["extractive", "anthropic", "openai"]),
    ),
    amount("observer_tokens"),
    field("observer_fallback", Kind::Flag),
    field(
        RETENTION,
        Kind::Object(&[
            days("tool_uses"),
            days("prompts"),
            days("observations"),
            days("summaries"),
            days("work_entries"),
            days("audit"),
        ]),
    ),
    field(QUOTAS, Kind::Object(&QUOTA_FIELDS)),
    // Nobody becomes an owner by signing in.
    field(
        "oidc_default_role",
        Kind::Word(&["reader", "member", "admin"]),
    ),
];

impl Field {
    fn check(&self, value: &Value, pointer: &str) -> Result<(), Rejection> {
        let (holds, allowed) = match &self.kind {
            Kind::Word(words) => (
                value.as_str().is_some_and(|text| words.contains(&text)),
                format!("one of {}", words.join(", ")),
            ),
            Kind::Tools => (
                value.as_str().is_some_and(names_tools),
                "core, legacy or names of tools, separated by commas".to_owned(),
            ),
            Kind::Number(most) => (
                value.as_u64().is_some_and(|number| number <= *most),
                format!("a whole number from 0 to {most}"),
            ),
            Kind::Flag => (value.is_boolean(), "true or false".to_owned()),
            Kind::Object(fields) => match value.as_object() {
                Some(object) => return check_all(fields, object, pointer),
                None => (false, "an object".to_owned()),
            },
        };
        match holds {
            true => Ok(()),
            false => Err(Rejection::invalid_field(pointer, allowed)),
        }
    }
}

fn check_all(fields: &[Field], given: &Map<String, Value>, at: &str) -> Result<(), Rejection> {
    for (name, value) in given {
        let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        let Some(known) = fields.iter().find(|field| field.name == name) else {
            let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
            let allowed = format!("no setting; there are {}", names.join(", "));
            return Err(Rejection::invalid_field(pointer, allowed));
        };
        // Null takes a setting back, whatever it is.
        if !value.is_null() {
            known.check(value, &pointer)?;
        }
    }
    Ok(())
}

/// Whether a text can name tools at all: whether there are such is not known here.
fn names_tools(text: &str) -> bool {
    let is_name = |word: &str| {
        let word = word.trim();
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        !word.is_empty() && word.bytes().all(plain)
    };
    text.len() <= limits::WORD_BYTES && text.split(',').all(is_name)
}

fn empty() -> Value {
    Value::Object(Map::new())
}

fn set(
    stored: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    path: &str,
    changed: &mut Vec<String>,
) {
    let before = match value {
        Value::Null => stored.remove(name),
        value => stored.insert(name.to_owned(), value.clone()),
    };
    if before.as_ref() != Some(value).filter(|value| !value.is_null()) {
        changed.push(path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn what_is_not_set_is_as_the_contract_says() {
        let settings = Settings::of(&Map::new());
        assert_eq!(settings.prompt_visibility, Visibility::Private);
        assert_eq!(settings.evidence_visibility, EvidenceVisibility::Team);
        assert_eq!(
            (settings.tools.as_str(), settings.observer.as_str()),
            ("core", "extractive")
        );
        assert!(settings.observer_fallback && settings.observer_tokens == 0);
        let days = settings.retention_days;
        assert_eq!((days.tool_uses, days.prompts, days.audit), (30, 180, 400));
        assert_eq!(settings.quotas, Quotas::default());
        assert_eq!(settings.oidc_default_role, Role::Reader);
    }

    #[test]
    fn a_patch_sets_what_it_names_and_null_takes_it_back() {
        let mut stored = object(json!({"tools": "legacy", "from_a_newer_version": 7}));
        let patch = json!({"prompt_visibility": "team", "tools": "legacy",
            "retention_days": {"audit": 10, "prompts": 0}, "quotas": {"members": 5}});
        let changed = Settings::patch(&mut stored, &object(patch)).expect("patched");
        assert_eq!(
            changed,
            [
                "prompt_visibility",
                "quotas.members",
                "retention_days.audit",
                "retention_days.prompts"
            ]
        );
        let settings = Settings::of(&stored);
        assert_eq!(settings.retention_days.audit, 10);
        assert_eq!(settings.retention_days.tool_uses, 30);
        assert_eq!(settings.quotas.get(Quota::Members), Some(5));
        let back = json!({"retention_days": {"audit": null}, "tools": null, "quotas": null,
            "observer": null});
        let changed = Settings::patch(&mut stored, &object(back)).expect("patched");
        assert_eq!(changed, ["quotas", "retention_days.audit", "tools"]);
        assert_eq!(Settings::of(&stored).retention_days.audit, 400);
        assert_eq!(stored["from_a_newer_version"], 7);
    }

    #[test]
    fn every_quota_is_a_setting() {
        for quota in Quota::ALL {
            let mut stored = Map::new();
            let patch = json!({"quotas": {quota.name(): 3}});
            Settings::patch(&mut stored, &object(patch)).expect("patched");
            assert_eq!(Settings::of(&stored).quotas.get(quota), Some(3));
        }
    }

    #[test]
    fn what_is_no_setting_is_pointed_at_and_changes_nothing() {
        for (patch, at) in [
            (json!({"tools": "core", "colour": 1}), "/colour"),
            (json!({"a/b": 1}), "/a~1b"),
            (
                json!({"retention_days": {"poems": 1}}),
                "/retention_days/poems",
            ),
            (
                json!({"retention_days": {"audit": 3651}}),
                "/retention_days/audit",
            ),
            (
                json!({"retention_days": {"audit": -1}}),
                "/retention_days/audit",
            ),
            (
                json!({"retention_days": {"audit": 1.5}}),
                "/retention_days/audit",
            ),
            (json!({"retention_days": 7}), "/retention_days"),
            (json!({"quotas": {"members": "5"}}), "/quotas/members"),
            (json!({"prompt_visibility": "all"}), "/prompt_visibility"),
            (json!({"evidence_visibility": true}), "/evidence_visibility"),
            (json!({"observer": "oracle"}), "/observer"),
            (json!({"observer_fallback": "yes"}), "/observer_fallback"),
            (json!({"oidc_default_role": "owner"}), "/oidc_default_role"),
            (json!({"tools": "a b"}), "/tools"),
            (json!({"tools": ""}), "/tools"),
        ] {
            let mut stored = object(json!({"tools": "legacy"}));
            let refused = Settings::patch(&mut stored, &object(patch.clone()));
            match refused {
                Err(Rejection::InvalidField { pointer, .. }) => {
                    assert_eq!(pointer, at, "{patch}");
                }
                other => panic!("{patch}: {other:?}"),
            }
            assert_eq!(stored, object(json!({"tools": "legacy"})), "{patch}");
        }
    }

    #[test]
    fn a_stored_value_of_no_meaning_is_none_and_closes_evidence() {
        let stored = object(json!({"tools": 7, "evidence_visibility": "everybody",
            "oidc_default_role": "owner", "retention_days": {"audit": "x"}, "quotas": []}));
        let settings = Settings::of(&stored);
        assert_eq!(settings.tools, "core");
        assert_eq!(settings.evidence_visibility, EvidenceVisibility::Author);
        assert_eq!(settings.oidc_default_role, Role::Reader);
        assert_eq!(settings.retention_days.audit, 400);
    }
}
