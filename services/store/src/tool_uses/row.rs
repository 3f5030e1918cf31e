//! A tool use as it is selected: both sides still packed.

use cairn_domain::event::Visibility;
use cairn_domain::ids::{ProjectId, RecordId, ToolUseId};
use cairn_domain::limits;
use cairn_domain::project::Project;
use cairn_domain::tool_use::{Evidence, ToolUse, ToolUseDraft};
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use crate::StoreError;

/// A tool use that was read. Unpacking it takes time: do it in a thread that nobody waits for.
#[derive(Clone, Debug, FromRow)]
pub struct PackedToolUse {
    number: i64,
    event_id: Uuid,
    at: DateTime<Utc>,
    arrived_at: DateTime<Utc>,
    private: bool,
    agent_id: Option<String>,
    agent_type: Option<String>,
    branch: Option<String>,
    checkout: Option<String>,
    observation: Option<i64>,
    tool: String,
    host_tool_use_id: Option<String>,
    failed: Option<bool>,
    files: Vec<String>,
    input_bytes: i64,
    output_bytes: i64,
    input_sha256: Vec<u8>,
    output_sha256: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    project_id: i32,
    project_uid: Uuid,
    project_key: String,
    project_name: String,
    host: String,
    host_session_id: String,
    author: String,
}

impl PackedToolUse {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> ToolUseId {
        ToolUseId(self.number)
    }

    /// The tool use with the exact texts that were stored.
    ///
    /// # Errors
    /// `Inconsistent` if what is stored is no text of ours.
    pub fn unpack(self) -> Result<ToolUse, StoreError> {
        let id = self.id();
        let odd = |column| StoreError::inconsistent("tool_uses", column, id);
        let side = |column, packed: &[u8], bytes, sha256: Vec<u8>| {
            Ok::<_, StoreError>(Evidence {
                text: unpacked(packed).ok_or_else(|| odd(column))?,
                bytes,
                sha256: sha256.try_into().map_err(|_| odd(column))?,
            })
        };
        let visibility = if self.private {
            Visibility::Private
        } else {
            Visibility::Team
        };
        Ok(ToolUse {
            id,
            event_id: self.event_id,
            project: Project {
                id: ProjectId {
                    key: self.project_id,
                    uuid: self.project_uid,
                },
                key: self.project_key,
                name: self.project_name,
            },
            host: self.host,
            session: self.host_session_id,
            author: self.author,
            at: self.at,
            arrived_at: self.arrived_at,
            visibility,
            agent_id: self.agent_id,
            agent_type: self.agent_type,
            branch: self.branch,
            checkout: self.checkout,
            observation: self.observation.map(RecordId::observation),
            call: ToolUseDraft {
                tool: self.tool,
                host_tool_use_id: self.host_tool_use_id,
                input: side("input", &self.input, self.input_bytes, self.input_sha256)?,
                output: side(
                    "output",
                    &self.output,
                    self.output_bytes,
                    self.output_sha256,
                )?,
                failed: self.failed,
                files: self.files,
            },
        })
    }
}

/// The exact text of a side; `None` if it is no text of ours.
pub(crate) fn unpacked(packed: &[u8]) -> Option<String> {
    let text = zstd::bulk::decompress(packed, limits::TEXT_BYTES).ok()?;
    String::from_utf8(text).ok()
}
