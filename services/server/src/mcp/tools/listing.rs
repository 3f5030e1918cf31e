//! Which tools a host is shown (contract 9.1). Hiding one takes no right away: every tool can be
//! called by its name.

use super::TOOLS;

/// Where a tool belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    /// Shown unless something else is asked for.
    Core,
    /// Shown beside the core to hosts that were set up for other names of the same.
    Legacy,
}

impl Profile {
    const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Legacy => "legacy",
        }
    }
}

/// Words separated by commas, each a profile or the name of a tool. `legacy` is the core and more.
#[derive(Clone, Debug)]
pub struct Listing(Vec<String>);

impl Listing {
    /// The listing that a text asks for. One that names nothing that is here shows the core: a
    /// host without any tool could not even be told.
    pub fn of(text: &str) -> Self {
        let words = text.split(',').map(str::trim).map(str::to_owned);
        let asked = Self(words.collect());
        let mut tools = TOOLS.iter();
        let is_known = tools.any(|tool| {
            let mut names = tool.names.iter();
            names.any(|name| asked.shows(tool.profile, name))
        });
        if is_known { asked } else { Self::default() }
    }

    /// Whether a tool is shown under one of its names.
    pub(super) fn shows(&self, profile: Profile, name: &str) -> bool {
        self.0
            .iter()
            .any(|word| word == name || word == profile.name() || *word == Profile::Legacy.name())
    }
}

impl Default for Listing {
    fn default() -> Self {
        Self(vec![Profile::Core.name().to_owned()])
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::mcp::tools::list;

    fn names(text: &str) -> Vec<String> {
        let listed = list(&Listing::of(text)).into_iter();
        listed.map(|tool| tool.name.into_owned()).collect()
    }

    #[rstest]
    #[case("work_state_read, mem_search")]
    #[case("mem_search,no_such_tool,work_state_read")]
    #[case(" work_state_read ,mem_search, mem_search")]
    fn names_pick_tools_and_the_table_orders_them(#[case] text: &str) {
        assert_eq!(names(text), ["mem_search", "work_state_read"]);
    }

    #[test]
    fn the_core_is_shown_where_nothing_is_named() {
        let core = names("core");
        assert!(core.len() > 3);
        for text in ["", ",", "nothing_of_ours", "CORE"] {
            assert_eq!(names(text), core, "{text:?}");
        }
        assert!(core.iter().all(|name| names("legacy").contains(name)));
    }
}
