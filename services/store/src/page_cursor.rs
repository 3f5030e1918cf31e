//! Cursors of lists: where a page ended, carried by the caller, sealed with the ring of cursor
//! keys so that none can be made up or read, and good only for the list they were made for.
//!
//! Nothing is kept: any replica with the same ring reads them. They carry no rights.

use std::fmt::Debug;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use cairn_domain::hex::hex;
use cairn_domain::ids::{PrincipalId, TenantId};
use cairn_domain::limits;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::cursor_keys::{KeyRing, new_nonce};

/// Stands where a search has its cursor.
const LABEL: &str = "cairn:page:v1";

/// What a cursor is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageScope(String);

impl PageScope {
    /// A list of this name as one principal reads it. `conditions` is whatever decides which rows
    /// are on it and how they are ordered, as it was understood: lists of equal conditions go on
    /// with each other's cursors.
    #[must_use]
    pub fn of(
        list: &str,
        tenant: TenantId,
        principal: PrincipalId,
        conditions: &impl Debug,
    ) -> Self {
        let (tenant, principal) = (tenant.uuid(), principal.uuid);
        let bound = format!("{list:?} {tenant} {principal} {conditions:?}");
        Self(hex(&Sha256::digest(bound.as_bytes())))
    }

    /// Something that belongs to no tenant yet, for whoever holds a secret.
    #[must_use]
    pub fn before_sign_in(what: &str, secret: &str) -> Self {
        // No list's name is without its quotes.
        let bound = format!("before sign-in {what:?} {secret:?}");
        Self(hex(&Sha256::digest(bound.as_bytes())))
    }
}

impl KeyRing {
    /// A cursor for the page after `place`.
    ///
    /// # Panics
    /// If `place` does not serialise; it is made of numbers and texts.
    #[must_use]
    pub fn seal_page(&self, scope: &PageScope, place: &impl Serialize) -> String {
        let place = serde_json::to_vec(place).expect("numbers and texts serialise");
        let sealed = self.writer().seal(&scope.0, LABEL, &place, new_nonce());
        BASE64_URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Where a page ended; `None` for a cursor that no key of the ring has sealed for this scope.
    #[must_use]
    pub fn read_page<T: DeserializeOwned>(&self, scope: &PageScope, cursor: &str) -> Option<T> {
        if cursor.len() > limits::PAGE_CURSOR_BYTES {
            return None;
        }
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(cursor.trim()).ok()?;
        let mut keys = self.readers().iter();
        let place = keys.find_map(|key| key.open(&scope.0, LABEL, &sealed))?;
        serde_json::from_slice(&place).ok()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const ONE: &str = "k1:Y2Fpcm4tY3Vyc29yLWZpeHR1cmUta2V5LTEtMzItYnl0ZXMh";
    const TWO: &str = "k2:Y2Fpcm4tY3Vyc29yLWZpeHR1cmUta2V5LTItMzItYnl0ZXMh";

    fn ring(keys: &[&str]) -> KeyRing {
        KeyRing::parse(&keys.join(",")).expect("a ring")
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "no store stands behind this test"
    )]
    fn scope(list: &str, tenant: u128, principal: u128, conditions: &str) -> PageScope {
        let principal = PrincipalId {
            key: 1,
            uuid: Uuid::from_u128(principal),
        };
        let tenant = TenantId::verified(1, Uuid::from_u128(tenant));
        PageScope::of(list, tenant, principal, &conditions)
    }

    #[test]
    fn a_cursor_reads_back_with_any_key_of_the_ring() {
        let here = scope("observations", 1, 2, "newest");
        let cursor = ring(&[ONE]).seal_page(&here, &(7_i64, "x"));
        let place = Some((7_i64, "x".to_owned()));
        for keys in [&[ONE][..], &[TWO, ONE]] {
            assert_eq!(ring(keys).read_page(&here, &cursor), place);
        }
        assert_eq!(
            ring(&[TWO]).read_page::<(i64, String)>(&here, &cursor),
            None
        );
    }

    #[test]
    fn a_cursor_is_good_for_its_own_list_alone() {
        let ring = ring(&[ONE]);
        let cursor = ring.seal_page(&scope("observations", 1, 2, "newest"), &7);
        for (elsewhere, what) in [
            (scope("sessions", 1, 2, "newest"), "list"),
            (scope("observations", 3, 2, "newest"), "tenant"),
            (scope("observations", 1, 3, "newest"), "principal"),
            (scope("observations", 1, 2, "oldest"), "conditions"),
        ] {
            assert_eq!(ring.read_page::<i64>(&elsewhere, &cursor), None, "{what}");
        }
    }

    #[test]
    fn no_cursor_can_be_made_up() {
        let (ring, here) = (ring(&[ONE]), scope("observations", 1, 2, "newest"));
        let cursor = ring.seal_page(&here, &7);
        for at in 0..cursor.len() {
            let mut forged = cursor.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).expect("plain");
            assert_eq!(ring.read_page::<i64>(&here, &forged), None, "{forged}");
            assert_eq!(ring.read_page::<i64>(&here, &cursor[..at]), None);
        }
        for other in [
            "",
            "ms_Z6ywyNBJzkw_XuCLsD6p9-xZ",
            "💬",
            &"A".repeat(100_000),
        ] {
            assert_eq!(ring.read_page::<i64>(&here, other), None);
        }
        // Sealed, but of another list's form.
        let text = ring.seal_page(&here, &"seven");
        assert_eq!(ring.read_page::<i64>(&here, &text), None);
    }
}
