//! The scope of a continuation: who may use it, and over which projects (contract 7.4).

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::hex::hex;
use crate::limits;

/// The projects that a header or a credential confines a caller to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeProjects {
    /// Neither names one.
    All,
    /// These, with those merged into them, in any order.
    Only(Vec<Uuid>),
}

/// The scope string: `<tenant id>/<principal id>/<project set>`, at most
/// [`limits::SCOPE_BYTES`].
#[must_use]
pub fn scope(tenant: Uuid, principal: Uuid, projects: &ScopeProjects) -> String {
    format!("{tenant}/{principal}/{}", set(projects))
}

/// Whose cursors are counted together: the tenant and the principal that a scope names. A text of
/// another form is a tenant by itself.
#[must_use]
pub fn owner(scope: &str) -> (&str, &str) {
    let mut parts = scope.splitn(3, '/');
    let tenant = parts.next().unwrap_or_default();
    (tenant, parts.next().unwrap_or_default())
}

fn set(projects: &ScopeProjects) -> String {
    let ScopeProjects::Only(ids) = projects else {
        return "*".to_owned();
    };
    let mut names: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    names.sort_unstable();
    names.dedup();
    let list = names.join(",");
    if names.len() <= limits::SCOPE_PROJECTS {
        return list;
    }
    format!("h:{}", hex(&Sha256::digest(list.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(0x0198_f000_0000_7000_8000_0000_0000_0000 + number)
    }

    fn scope_of(ids: Vec<Uuid>) -> String {
        scope(id(1), id(0xa), &ScopeProjects::Only(ids))
    }

    /// The scopes of the contract's test vectors.
    #[test]
    fn scopes_are_spelled_as_the_test_vectors_have_them() {
        let s1 = "0198f000-0000-7000-8000-000000000001/0198f000-0000-7000-8000-00000000000a/\
                  0198f000-0000-7000-8000-0000000000a1";
        assert_eq!(scope_of(vec![id(0xa1)]), s1);
        assert_eq!(
            scope_of(vec![id(0xb2), id(0xa1), id(0xb2)]),
            format!("{s1},0198f000-0000-7000-8000-0000000000b2")
        );
        let all = scope(id(1), id(0xa), &ScopeProjects::All);
        assert_eq!(all, s1.replace("0198f000-0000-7000-8000-0000000000a1", "*"));
    }

    #[test]
    fn the_owner_is_the_same_over_whichever_projects() {
        let (tenant, principal) = (id(1).to_string(), id(0xa).to_string());
        let all = scope(id(1), id(0xa), &ScopeProjects::All);
        for scope in [&all, &scope_of(vec![id(0xa1)]), &scope_of(Vec::new())] {
            assert_eq!(owner(scope), (tenant.as_str(), principal.as_str()));
        }
        assert_eq!(owner("fixture-scope"), ("fixture-scope", ""));
    }

    #[test]
    fn more_than_fifty_projects_are_hashed_whatever_their_order() {
        let fifty: Vec<Uuid> = (0..50).map(id).collect();
        assert!(scope_of(fifty.clone()).len() <= limits::SCOPE_BYTES);
        assert!(!scope_of(fifty).contains("h:"));
        let many: Vec<Uuid> = (0..51).map(id).collect();
        let turned: Vec<Uuid> = many.iter().rev().copied().collect();
        let hashed = scope_of(many);
        assert_eq!(hashed, scope_of(turned));
        assert_eq!(
            hashed.rsplit_once("/h:").map(|(_, hex)| hex.len()),
            Some(64)
        );
    }
}
