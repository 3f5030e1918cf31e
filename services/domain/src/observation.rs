//! Observation: one remembered fact, with one of nine types and up to seven concepts
//! (mode `code`, contract 3.3).

use crate::bounds::units;
use crate::limits;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObservationType {
    /// Something broken was mended.
    Bugfix,
    /// Something new exists.
    Feature,
    /// The same behaviour, better code.
    Refactor,
    /// Any other modification.
    Change,
    /// Something was learned.
    Discovery,
    /// Something was chosen, with its reason.
    Decision,
    /// A security problem that needs action.
    SecurityAlert,
    /// Something about security worth knowing.
    SecurityNote,
    /// Something to handle with care.
    Sensitive,
}

impl ObservationType {
    /// All types, in the order of the legend.
    pub const ALL: [Self; 9] = [
        Self::Bugfix,
        Self::Feature,
        Self::Refactor,
        Self::Change,
        Self::Discovery,
        Self::Decision,
        Self::SecurityAlert,
        Self::SecurityNote,
        Self::Sensitive,
    ];

    /// The type's name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bugfix => "bugfix",
            Self::Feature => "feature",
            Self::Refactor => "refactor",
            Self::Change => "change",
            Self::Discovery => "discovery",
            Self::Decision => "decision",
            Self::SecurityAlert => "security_alert",
            Self::SecurityNote => "security_note",
            Self::Sensitive => "sensitive",
        }
    }

    /// The symbol in a row. All are in the Basic Multilingual Plane, without variation selector.
    #[must_use]
    pub const fn symbol(self) -> char {
        match self {
            Self::Bugfix => '●',
            Self::Feature => '◆',
            Self::Refactor => '↻',
            Self::Change => '✓',
            Self::Discovery => '○',
            Self::Decision => '⚖',
            Self::SecurityAlert => '⚠',
            Self::SecurityNote => '⚷',
            Self::Sensitive => '⊘',
        }
    }

    /// The symbol before the work tokens of a row.
    #[must_use]
    pub const fn work_symbol(self) -> char {
        match self {
            Self::Bugfix | Self::Feature | Self::Refactor | Self::Change => '⚒',
            Self::Discovery => '⌕',
            other => other.symbol(),
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// The number by which rows name this type. Stored: never change one.
    #[must_use]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// The type that a stored number names.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        usize::try_from(code)
            .ok()
            .and_then(|at| Self::ALL.get(at).copied())
    }
}

/// What the fact is good for: a second, independent axis, used as a filter only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Concept {
    /// How something works.
    HowItWorks,
    /// Why something exists.
    WhyItExists,
    /// What changed.
    WhatChanged,
    /// A problem and its solution.
    ProblemSolution,
    /// A trap.
    Gotcha,
    /// A pattern to follow.
    Pattern,
    /// A trade-off.
    TradeOff,
}

impl Concept {
    /// All concepts, in the order of the contract.
    pub const ALL: [Self; 7] = [
        Self::HowItWorks,
        Self::WhyItExists,
        Self::WhatChanged,
        Self::ProblemSolution,
        Self::Gotcha,
        Self::Pattern,
        Self::TradeOff,
    ];

    /// The concept's name on the wire and in rows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HowItWorks => "how-it-works",
            Self::WhyItExists => "why-it-exists",
            Self::WhatChanged => "what-changed",
            Self::ProblemSolution => "problem-solution",
            Self::Gotcha => "gotcha",
            Self::Pattern => "pattern",
            Self::TradeOff => "trade-off",
        }
    }

    /// The concept of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }
}

/// An observation as it is about to be stored: within its limits, not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservationDraft {
    /// Its type.
    pub kind: ObservationType,
    /// One line; may be empty.
    pub title: String,
    /// A second line; may be empty.
    pub subtitle: String,
    /// The story; may be empty.
    pub narrative: String,
    /// Single facts.
    pub facts: Vec<String>,
    /// Its concepts, without repeats.
    pub concepts: Vec<Concept>,
    /// Files that were read, relative to the checkout root.
    pub files_read: Vec<String>,
    /// How many more were read than the list holds.
    pub files_read_more: u32,
    /// Files that were modified.
    pub files_modified: Vec<String>,
    /// How many more were modified than the list holds.
    pub files_modified_more: u32,
    /// What producing it cost, in tokens.
    pub work_tokens: u32,
    /// Numbers of the tool uses it rests on.
    pub tool_uses: Vec<i64>,
}

impl ObservationDraft {
    /// Whether it says nothing: no title, narrative, fact or concept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.title.trim().is_empty()
            && self.narrative.trim().is_empty()
            && self.facts.iter().all(|f| f.trim().is_empty())
            && self.concepts.is_empty()
    }

    /// What reading it costs, in tokens, by the formula of the Stats line (contract 6.4):
    /// a quarter of the units of title, subtitle, narrative and the facts written as a JSON array
    /// inside a JSON string.
    #[must_use]
    pub fn read_tokens(&self) -> u32 {
        let facts = if self.facts.is_empty() {
            4
        } else {
            twice_encoded_units(&self.facts)
        };
        let total = units(&self.title) + units(&self.subtitle) + units(&self.narrative) + facts;
        u32::try_from(total.div_ceil(4)).unwrap_or(u32::MAX)
    }
}

/// The title of a text that was saved without one: its first characters on one line, and `...` if
/// there are more.
#[must_use]
pub fn title_of(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(limits::SAVED_TITLE_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

fn twice_encoded_units(facts: &[String]) -> usize {
    let once = serde_json::Value::from(facts).to_string();
    units(&serde_json::Value::from(once).to_string())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn draft(title: &str, narrative: &str, facts: &[&str]) -> ObservationDraft {
        ObservationDraft {
            kind: ObservationType::Discovery,
            title: title.to_owned(),
            subtitle: String::new(),
            narrative: narrative.to_owned(),
            facts: facts.iter().map(|&f| f.to_owned()).collect(),
            concepts: Vec::new(),
            files_read: Vec::new(),
            files_read_more: 0,
            files_modified: Vec::new(),
            files_modified_more: 0,
            work_tokens: 0,
            tool_uses: Vec::new(),
        }
    }

    /// The four rows of the contract's golden sample (6.3).
    #[rstest]
    #[case(
        "选用 pgvector 做向量搜索",
        "数据量在百万行内，与业务表同库，少运维一个服务",
        "与 Postgres 一起备份",
        16
    )]
    #[case(
        "修复连接池泄漏导致的 5xx",
        "出错路径没有归还连接，改在 finally 里释放",
        "连接池上限 20",
        14
    )]
    #[case(
        "Worker 端口按 uid 取模计算",
        "同一台机器上多个用户互不抢端口",
        "37700 + uid % 100",
        15
    )]
    #[case("JWT 验证改为异步", "验证不再阻塞请求线程", "签发仍是同步", 9)]
    fn read_tokens_follow_the_stats_formula(
        #[case] title: &str,
        #[case] narrative: &str,
        #[case] fact: &str,
        #[case] tokens: u32,
    ) {
        assert_eq!(draft(title, narrative, &[fact]).read_tokens(), tokens);
    }

    #[test]
    fn one_short_fact_counts_ten_and_no_fact_four() {
        assert_eq!(draft("", "", &["f1"]).read_tokens(), 3);
        assert_eq!(draft("", "", &[]).read_tokens(), 1);
    }

    #[test]
    fn stored_numbers_name_their_type_for_ever() {
        for (at, kind) in ObservationType::ALL.into_iter().enumerate() {
            assert_eq!(usize::try_from(kind.code()), Ok(at));
            assert_eq!(ObservationType::from_code(kind.code()), Some(kind));
        }
        assert_eq!(ObservationType::from_code(9), None);
    }

    #[test]
    fn a_record_without_words_or_concepts_is_empty() {
        assert!(draft(" ", "", &[]).is_empty());
        assert!(!draft("", "", &["x"]).is_empty());
    }
}
