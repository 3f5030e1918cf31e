//! Session: how a host's session is named in bodies and in a header.

use cairn_domain::event::SessionKey;
use cairn_domain::{Rejection, bounds, limits};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A session as the host names it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionName {
    /// The host, e.g. `claude-code`.
    pub host: String,
    /// The host's id of the session.
    pub id: String,
}

impl SessionName {
    /// The host of a session that no host names.
    pub const NO_HOST: &str = "mcp";

    /// Reads header `Cairn-Session`, decoded: `<host>/<id>`, or the id alone.
    #[must_use]
    pub fn from_header(text: &str) -> Self {
        let (host, id) = text.split_once('/').unwrap_or((Self::NO_HOST, text));
        Self {
            host: host.trim().to_owned(),
            id: id.trim().to_owned(),
        }
    }

    /// What [`SessionName::from_header`] reads; a header carries it percent-encoded.
    #[must_use]
    pub fn to_header(&self) -> String {
        [self.host.as_str(), &self.id].join("/")
    }

    /// Checks the words of a session's name.
    ///
    /// # Errors
    /// `invalid_field` naming the word and its limit.
    pub fn parse(self) -> Result<SessionKey, Rejection> {
        Ok(SessionKey {
            host: bounds::word("/session/host", self.host, limits::WORD_BYTES)?,
            id: bounds::word("/session/id", self.id, limits::HOST_ID_BYTES)?,
        })
    }
}
