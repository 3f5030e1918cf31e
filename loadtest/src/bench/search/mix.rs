//! What is searched for: words by how often they occur, in the largest tenant and in small ones,
//! across a tenant and inside a project.

use serde_json::json;

use super::corpus::Class;
use super::loaded::{Loaded, Tenant};
use crate::bench::load::project_key;
use crate::bench::operation::{Call, Operation};

/// A kind of query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A rare word.
    Rare,
    /// A word of middling frequency.
    Mid,
    /// A common word.
    Common,
    /// A common and a middling word.
    Two,
    /// A common, a middling and a rare word.
    Three,
}

impl Kind {
    /// Those that a mix has, evenly.
    pub const MIXED: [Self; 4] = [Self::Rare, Self::Mid, Self::Common, Self::Two];
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Rare, Self::Mid, Self::Common, Self::Two, Self::Three];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rare => "rare",
            Self::Mid => "mid",
            Self::Common => "common",
            Self::Two => "two words",
            Self::Three => "three words",
        }
    }

    /// The words of its `nth` query.
    pub fn words(self, loaded: &Loaded, nth: usize) -> Vec<&str> {
        let word = |class: Class| {
            let words = loaded.words(class);
            words[nth % words.len()].as_str()
        };
        let (rare, mid, common) = (word(Class::Rare), word(Class::Mid), word(Class::Common));
        match self {
            Self::Rare => vec![rare],
            Self::Mid => vec![mid],
            Self::Common => vec![common],
            Self::Two => vec![common, mid],
            Self::Three => vec![common, mid, rare],
        }
    }
}

/// Where is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In all projects of the tenant.
    Tenant,
    /// In its largest project, which is the caller's.
    Project,
}

/// A search.
#[derive(Clone)]
pub struct Case {
    /// What kind of query it is.
    pub kind: Kind,
    /// Where it is asked.
    pub scope: Scope,
    /// Whether the tenant is the largest.
    pub is_largest: bool,
    /// The tenant.
    pub tenant: Tenant,
    /// The words.
    pub words: Vec<String>,
}

impl Case {
    /// The `nth` search of a kind in the largest tenant, or in one of the small ones.
    pub fn new(loaded: &Loaded, kind: Kind, scope: Scope, is_largest: bool, nth: usize) -> Self {
        let small = &loaded.small[nth % loaded.small.len()];
        let tenant = if is_largest { &loaded.largest } else { small };
        let words = kind.words(loaded, nth);
        Self {
            kind,
            scope,
            is_largest,
            tenant: tenant.clone(),
            words: words.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The index step that asks it.
    pub fn operation(&self) -> Operation {
        step(&self.tenant, &self.words.join(" "), self.scope)
    }
}

/// The index step of a query in a tenant.
pub fn step(tenant: &Tenant, query: &str, scope: Scope) -> Operation {
    let mut arguments = json!({"query": query});
    if scope == Scope::Tenant {
        arguments["project"] = json!("*");
    }
    Operation {
        key: tenant.key.clone(),
        project: project_key(0),
        call: Call::Post("/v1/mem-search", arguments.to_string()),
    }
}

/// Searches of each kind that a mix has, in the largest tenant and in small ones.
const EACH: usize = 2;
/// How often one of the largest tenant is asked beside one of a small one: three of ten are its.
const LARGEST_WEIGHT: usize = 3;
const SMALL_WEIGHT: usize = 7;

/// The mix whose rates are compared, each search with its weight. With `scopes`, they change from
/// search to search.
pub fn mix(loaded: &Loaded, scopes: &[Scope]) -> Vec<(Case, usize)> {
    let mut mix = Vec::new();
    for (is_largest, weight) in [(true, LARGEST_WEIGHT), (false, SMALL_WEIGHT)] {
        for kind in Kind::MIXED {
            for nth in 0..EACH {
                let scope = scopes[nth % scopes.len()];
                // Words and tenants far apart.
                let nth = nth * 11 + kind as usize * 5;
                mix.push((Case::new(loaded, kind, scope, is_largest, nth), weight));
            }
        }
    }
    mix
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded() -> Loaded {
        let words = |letter: &str| (0..3).map(|n| format!("{letter}{n}")).collect();
        let tenant = |id: i32| Tenant {
            key: format!("key-{id}"),
            id,
        };
        Loaded {
            rows: 10,
            largest: tenant(1),
            small: (2..9).map(tenant).collect(),
            rare: words("r"),
            mid: words("m"),
            common: words("c"),
        }
    }

    #[test]
    fn three_of_ten_searches_are_the_largest_tenants_and_kinds_come_evenly() {
        let mix = mix(&loaded(), &[Scope::Tenant, Scope::Project]);
        let weight = |chosen: &dyn Fn(&Case) -> bool| -> usize {
            let of = mix.iter().filter(|(case, _)| chosen(case));
            of.map(|(_, weight)| weight).sum()
        };
        let all = weight(&|_| true);
        assert_eq!(weight(&|case| case.is_largest) * 10, all * 3);
        assert_eq!(weight(&|case| case.scope == Scope::Project) * 2, all);
        for kind in Kind::MIXED {
            assert_eq!(weight(&|case| case.kind == kind) * 4, all, "{kind:?}");
        }
        assert!(
            mix.iter()
                .all(|(case, _)| case.is_largest == (case.tenant.id == 1))
        );
    }

    #[test]
    fn a_search_of_a_project_names_none() {
        let case = |scope| Case::new(&loaded(), Kind::Three, scope, true, 4).operation();
        let body = |operation: Operation| match operation.call {
            Call::Post(_, body) => body,
            call => panic!("{call:?}"),
        };
        assert_eq!(body(case(Scope::Project)), r#"{"query":"c1 m1 r1"}"#);
        assert_eq!(
            body(case(Scope::Tenant)),
            r#"{"query":"c1 m1 r1","project":"*"}"#
        );
    }
}
