//! Address: how the service is reached from outside, and what follows from it: which tokens are
//! good where, and where each document of sign-in stands.

use anyhow::{Context, bail};
use cairn_domain::scope::Scope;
use reqwest::Url;

/// What a program asks for that does not say: all that an agent needs.
pub const USUAL_SCOPES: [Scope; 4] = [
    Scope::MemoryRead,
    Scope::MemoryWrite,
    Scope::WorkWrite,
    Scope::EvidenceRead,
];

/// Parts of the service that have tokens of their own.
const PARTS: [&str; 2] = ["/mcp", "/sse"];
/// Where a program finds out how to get a token for a part.
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

/// The address of `CAIRN_PUBLIC_URL`, without a slash at its end. It is the issuer of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicAddress {
    url: String,
    /// The part of it that is a path; empty if there is none.
    base_path: String,
}

impl PublicAddress {
    /// Reads an http or https address.
    ///
    /// # Errors
    /// If it is none, or has a query or a fragment.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let odd = || format!("CAIRN_PUBLIC_URL is no address: {text:?}");
        let url = Url::parse(text.trim()).with_context(odd)?;
        let is_plain =
            url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() || !is_plain {
            bail!(odd());
        }
        let base_path = url.path().trim_end_matches('/').to_owned();
        Ok(Self {
            url: format!("{}{base_path}", url.origin().ascii_serialization()),
            base_path,
        })
    }

    /// The whole address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The path that stands before every path of ours; empty if there is none.
    #[must_use]
    pub fn base_path(&self) -> &str {
        &self.base_path
    }

    /// Whether browsers reach it encrypted.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.url.starts_with("https:")
    }

    /// A path of ours as seen from outside.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The address that a program names to get a token for, if it is this service or a part of
    /// it; a slash at its end counts for nothing.
    #[must_use]
    pub fn resource(&self, named: &str) -> Option<String> {
        let named = named.trim_end_matches('/');
        let own = PARTS.iter().map(|part| self.at(part));
        let mut own = own.chain([self.url.clone()]);
        own.find(|own| own.eq_ignore_ascii_case(named))
    }

    /// Whether a token for `audience` is good at a path: one for a part is good there only.
    #[must_use]
    pub fn admits(&self, audience: &str, path: &str) -> bool {
        let Some(part) = audience.strip_prefix(&self.url) else {
            return false;
        };
        match part {
            "" => true,
            "/sse" => matches!(path, "/sse" | "/messages"),
            part => PARTS.contains(&part) && path == part,
        }
    }

    /// Whether a token for `narrow` may be given where one for `wide` was agreed to.
    #[must_use]
    pub fn is_within(&self, narrow: &str, wide: &str) -> bool {
        narrow == wide || wide == self.url
    }

    /// Which part a document about resources is for, by what stands behind its usual address:
    /// nothing, the part, or the path of the service and the part. None if there is no such part.
    #[must_use]
    pub fn part(&self, behind: &str) -> Option<String> {
        let behind = format!("/{}", behind.trim_matches('/'));
        let part = behind
            .strip_prefix(self.base_path.as_str())
            .unwrap_or(&behind);
        match part.trim_end_matches('/') {
            "" => Some(self.url.clone()),
            part if PARTS.contains(&part) => Some(self.at(part)),
            _ => None,
        }
    }

    /// The part of the service that has tokens of its own and that a path belongs to; empty if it
    /// is none. The path may have the service's own before it.
    #[must_use]
    pub fn part_of(&self, path: &str) -> &'static str {
        let path = path.strip_prefix(self.base_path.as_str()).unwrap_or(path);
        match path {
            "/mcp" => "/mcp",
            "/sse" | "/messages" => "/sse",
            _ => "",
        }
    }

    /// What a caller of a part is told who has no token, or too little of one: where to get it.
    #[must_use]
    pub fn challenge(&self, part: &'static str, refused: Refused<'_>) -> String {
        let metadata = self.at(&format!("{RESOURCE_METADATA}{part}"));
        match refused {
            Refused::Unauthenticated => {
                let usual = USUAL_SCOPES.map(Scope::name).join(" ");
                format!("Bearer resource_metadata=\"{metadata}\", scope=\"{usual}\"")
            }
            Refused::Invalid => format!(
                "{}, error=\"invalid_token\"",
                self.challenge(part, Refused::Unauthenticated)
            ),
            Refused::Insufficient(scopes) => format!(
                "Bearer error=\"insufficient_scope\", scope=\"{}\", resource_metadata=\"{metadata}\"",
                scopes.join(" ")
            ),
        }
    }
}

/// Why a caller is challenged.
#[derive(Clone, Copy, Debug)]
pub enum Refused<'a> {
    /// It has shown nothing that is known.
    Unauthenticated,
    /// What it has shown is over.
    Invalid,
    /// It lacks one of these scopes, all of which the call needs.
    Insufficient(&'a [String]),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> PublicAddress {
        PublicAddress::parse(text).expect("an address")
    }

    #[test]
    fn an_address_is_read_without_its_last_slash() {
        let team = address("https://Memory.example.com:443/team/");
        assert_eq!(team.url(), "https://memory.example.com/team");
        assert_eq!((team.base_path(), team.is_secure()), ("/team", true));
        assert_eq!(address("http://127.0.0.1:80").base_path(), "");
        for bad in [
            "",
            "memory.example.com",
            "ftp://x",
            "https://x/?a",
            "https://x/#a",
            "https://u@x",
        ] {
            assert!(PublicAddress::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_for_a_part_is_good_there_only() {
        let team = address("https://memory.example.com/team");
        let (all, mcp, sse) = (team.url().to_owned(), team.at("/mcp"), team.at("/sse"));
        for (audience, path, good) in [
            (&all, "/v1/me", true),
            (&all, "/mcp", true),
            (&mcp, "/mcp", true),
            (&mcp, "/v1/me", false),
            (&mcp, "/sse", false),
            (&sse, "/sse", true),
            (&sse, "/messages", true),
            (&sse, "/mcp", false),
            (
                &"https://memory.example.com/teammcp".to_owned(),
                "/mcp",
                false,
            ),
            (&"https://other.example.com/mcp".to_owned(), "/mcp", false),
        ] {
            assert_eq!(team.admits(audience, path), good, "{audience} at {path}");
        }
    }

    #[test]
    fn only_the_service_and_its_parts_are_resources() {
        let team = address("https://memory.example.com/team");
        let named = |text: &str| team.resource(text);
        assert_eq!(
            named("https://memory.example.com/team/mcp/"),
            Some(team.at("/mcp"))
        );
        assert_eq!(named("https://memory.example.com/team"), Some(team.at("")));
        for other in [
            "",
            "https://memory.example.com",
            "https://memory.example.com/team/v1",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
        for (behind, part) in [
            ("", Some("")),
            ("mcp", Some("/mcp")),
            ("team/mcp", Some("/mcp")),
            ("team", Some("")),
            ("/team/sse/", Some("/sse")),
            ("v1", None),
            ("other/mcp", None),
        ] {
            assert_eq!(
                team.part(behind),
                part.map(|part| team.at(part)),
                "{behind}"
            );
        }
    }
}
