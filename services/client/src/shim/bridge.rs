//! Bridge: one message to the service, one answer back, whatever happens on the way.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cairn_wire::domain::event::Visibility;
use cairn_wire::session::SessionName;
use reqwest::header::ACCEPT;
use reqwest::{RequestBuilder, StatusCode};
use uuid::Uuid;

use super::message::Message;
use super::{answer, local, work_state};
use crate::account::{self, Account};
use crate::api::{self, Api};
use crate::commands::{EXCLUDED, no_home};
use crate::config::{Dirs, HostEnv, Settings};
use crate::exit::Failure;
use crate::problem::Problem;
use crate::project::Project;
use crate::reply::Reply;
use crate::tokens;

/// How long the service may take: a little less than the host waits, for what is done without it.
const DEADLINE: Duration = Duration::from_millis(9_500);

/// How long the service may take for what can be said without it: hosts wait a few seconds.
const LOCAL_DEADLINE: Duration = Duration::from_millis(1_500);

/// The host whose variable names the session.
const CLAUDE_CODE: &str = "claude-code";

/// How long git may take to name a repository that has no name yet.
const GIT_PATIENCE: Duration = Duration::from_secs(8);

/// What a call reads if git took longer.
const NO_PROJECT: &str =
    "project_required - git is slow to name this repository; try again, or name a project";

/// Tools that store something of the folder they are called in.
const WRITES: [&str; 4] = [
    "work_state_write",
    "save_memory",
    "observation_add",
    "memory_add",
];

/// What a caller without a valid key reads.
const SIGN_IN: &str = "unauthenticated - sign in with: cairn login";

/// Why there is no answer of the service.
pub(super) enum Unanswered {
    /// It cannot be reached, and why.
    Away(String),
    /// It refused, or was not asked: what a model reads.
    Told(String),
}

/// The way to the service.
#[derive(Debug)]
pub struct Bridge {
    pub(super) dirs: Dirs,
    pub(super) settings: Settings,
    api: Option<Api>,
    /// Where the host was started.
    folder: PathBuf,
    /// Whether nothing that is done there is kept.
    pub(super) is_excluded: bool,
    /// The project there, once it has its name.
    project: OnceLock<Project>,
    pub(super) session: SessionName,
    /// Whether the lists of the project are being fetched.
    pub(super) refreshing: Arc<AtomicBool>,
    /// The revision that `initialize` settled on.
    negotiated: Mutex<Option<String>>,
}

impl Bridge {
    /// A bridge for the project in which the host was started.
    ///
    /// # Errors
    /// [`Failure::Failed`] if this machine cannot make connections at all.
    pub fn new() -> Result<Self, Failure> {
        let dirs = Dirs::from_env().ok_or_else(no_home)?;
        let host = HostEnv::from_env();
        let here = || std::env::current_dir().unwrap_or_else(|_| dirs.home.clone());
        let folder = host.project_dir.unwrap_or_else(here);
        let project = Project::of(&folder, &dirs);
        let settings = Settings::load(&dirs, Some(&project.root));
        let api = match &settings.url {
            Some(service) => Some(Api::new(service, None, DEADLINE)?),
            None => None,
        };
        let is_excluded = project.is_excluded(&folder, &settings.exclude, &dirs.home);
        let known = project.unnamed.is_none().then_some(project);
        // Two conversations are two holders of claims, also where no host names them.
        let session = match host.session {
            Some(id) => SessionName {
                host: CLAUDE_CODE.to_owned(),
                id,
            },
            None => SessionName {
                host: SessionName::NO_HOST.to_owned(),
                id: Uuid::now_v7().to_string(),
            },
        };
        Ok(Self {
            dirs,
            settings,
            api,
            folder,
            is_excluded,
            project: known.map(OnceLock::from).unwrap_or_default(),
            session,
            refreshing: Arc::default(),
            negotiated: Mutex::new(None),
        })
    }

    /// The answer to a message; `None` if none is due.
    pub async fn forward(&self, message: &Message) -> Option<String> {
        if self.is_excluded && is_write(message) {
            return answer::told(message, EXCLUDED, true);
        }
        if local::can_answer(message) {
            return self.handshake(message).await;
        }
        // A write whose answer is lost is the same write when it is sent again.
        let event_id = Uuid::now_v7();
        match self.send(message, event_id).await {
            Ok(answer) => {
                let answer = work_state::with_waiting(self, message, answer).await;
                work_state::note(self, message, answer.as_deref());
                answer
            }
            Err(Unanswered::Told(text)) => answer::failed(message, &text),
            Err(Unanswered::Away(why)) => {
                let text = format!("service_unreachable - {why}");
                match work_state::offline(self, message, event_id, &text) {
                    Some((text, is_error)) => answer::told(message, &text, is_error),
                    None => answer::failed(message, &text),
                }
            }
        }
    }

    /// The answer to what a host asks first: the service's, if it comes in a moment, else our own.
    async fn handshake(&self, message: &Message) -> Option<String> {
        let asked = self.send(message, Uuid::now_v7());
        let answer = match tokio::time::timeout(LOCAL_DEADLINE, asked).await {
            Ok(Ok(answer)) => {
                local::note(self, message, answer.as_deref());
                answer
            }
            // Whoever is not signed in is told so by the first call.
            Ok(Err(_)) | Err(_) => local::answer(self, message),
        };
        if message.method == "initialize" {
            let version = answer.as_deref().and_then(answer::negotiated);
            *self
                .negotiated
                .lock()
                .expect("nothing panics while it is held") = version;
        }
        answer
    }

    /// The account for the service, if somebody is signed in.
    pub(super) fn account(&self) -> Option<(&str, Account)> {
        let service = self.settings.url.as_deref()?;
        let account = account::find(&self.dirs, &self.settings, service)?;
        Some((service, account))
    }

    /// Calls with the account's key.
    pub(super) fn signed(&self, account: &Account) -> Option<Api> {
        self.api.as_ref().map(|api| api.signed(account))
    }

    /// The service's answer.
    pub(super) async fn send(
        &self,
        message: &Message,
        event_id: Uuid,
    ) -> Result<Option<String>, Unanswered> {
        let service = self.settings.url.as_deref().zip(self.api.as_ref());
        let away = |why: String| Unanswered::Away(why);
        let (service, api) = service.ok_or_else(|| away("no service is set".to_owned()))?;
        // A shim lives for days: a key that was renewed meanwhile counts from the next call.
        let ready = tokens::ready(&self.dirs, &self.settings, service).await;
        let account = ready.map_err(unanswered)?.ok_or_else(sign_in)?;
        let mut reply = self.ask(api, &account, message, event_id).await?;
        if reply.status == StatusCode::UNAUTHORIZED {
            // The clock of this machine may have been set back.
            let other = tokens::replaced(&self.dirs, service, &account).await;
            if let Some(other) = other.map_err(unanswered)? {
                reply = self.ask(api, &other, message, event_id).await?;
            }
        }
        if reply.version.is_none() {
            return Err(away(reply.stranger().to_string()));
        }
        if message.id.is_none() {
            return Ok(None);
        }
        // Refusals of the protocol come with a status of their own and a message inside.
        match answer::one_line(&reply.content_type, &reply.text) {
            Some(line) => Ok(Some(answer::addressed(line, message))),
            None if reply.status == StatusCode::UNAUTHORIZED => Err(sign_in()),
            None => Err(explain(reply.status, &reply.text)),
        }
    }

    /// The service's answer to one account, whatever it is.
    async fn ask(
        &self,
        api: &Api,
        account: &Account,
        message: &Message,
        event_id: Uuid,
    ) -> Result<Reply, Unanswered> {
        let mut api = api.signed(account);
        if let Some(project) = self.project_for(message).await? {
            api = api.within(&project.name.key);
        }
        api = api.in_session(&self.session);
        let mut request = api.post("/mcp", message.bytes.clone());
        if message.method == "tools/call" {
            request = request.header("Idempotency-Key", event_id.to_string());
        }
        // What is kept private by setting stays so where an agent does not say.
        if self.settings.visibility == Visibility::Private {
            request = request.header("Cairn-Visibility", Visibility::Private.name());
        }
        if let (Some(tools), "tools/list") = (&self.settings.tools, message.method.as_str()) {
            request = request.header("Cairn-Tools", tools);
        }
        let reply = Reply::of(self.with_headers(request, message), api::ANSWER_BYTES).await;
        reply.map_err(unanswered)
    }

    /// The project. Only a message that names something waits for git.
    async fn project_for(&self, message: &Message) -> Result<Option<&Project>, Unanswered> {
        if self.project.get().is_none() && message.name.is_some() {
            let (folder, dirs) = (self.folder.clone(), self.dirs.clone());
            let naming = move || Project::of(&folder, &dirs).named(&dirs, GIT_PATIENCE);
            let project = tokio::task::spawn_blocking(naming).await.ok().flatten();
            // Another call may have been quicker, with the same answer.
            let slow = || Unanswered::Told(NO_PROJECT.to_owned());
            drop(self.project.set(project.ok_or_else(slow)?));
        }
        Ok(self.project.get())
    }

    /// The project, if it has its name by now.
    pub(super) fn project(&self) -> Option<&Project> {
        self.project.get()
    }

    fn with_headers(&self, request: RequestBuilder, message: &Message) -> RequestBuilder {
        let mut request = request
            .header(ACCEPT, "application/json, text/event-stream")
            .header("Mcp-Method", header_text(&message.method));
        if let Some(name) = &message.name {
            request = request.header("Mcp-Name", header_text(name));
        }
        let negotiated = || {
            let version = self
                .negotiated
                .lock()
                .expect("nothing panics while it is held");
            version.clone().filter(|_| message.method != "initialize")
        };
        match message.version.clone().or_else(negotiated) {
            Some(version) => request.header("MCP-Protocol-Version", header_text(&version)),
            None => request,
        }
    }
}

/// What a call reads that cannot be sent.
fn unanswered(failure: Failure) -> Unanswered {
    match failure {
        Failure::NotSignedIn(_) => sign_in(),
        Failure::Unreachable(why) => Unanswered::Away(why),
        other => Unanswered::Away(other.to_string()),
    }
}

fn is_write(message: &Message) -> bool {
    let name = message.name.as_deref();
    message.method == "tools/call" && name.is_some_and(|name| WRITES.contains(&name))
}

/// Text as a header carries it: as it is if it is plain, else in the base64 form.
fn header_text(text: &str) -> String {
    let plain = text.bytes().all(|b| matches!(b, b' '..=b'~'));
    if plain && text.trim() == text && !text.starts_with("=?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", BASE64_STANDARD.encode(text))
}

fn sign_in() -> Unanswered {
    Unanswered::Told(SIGN_IN.to_owned())
}

fn explain(status: StatusCode, body: &str) -> Unanswered {
    match Problem::parse(body) {
        Some(problem) => Unanswered::Told(problem.text()),
        None => Unanswered::Away(format!("HTTP {}", status.as_u16())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_travel_in_headers_whatever_they_hold() {
        assert_eq!(header_text("mem_search"), "mem_search");
        assert_eq!(header_text("caf\u{e9}"), "=?base64?Y2Fmw6k=?=");
        assert_eq!(header_text("a\nb"), "=?base64?YQpi?=");
        assert_eq!(header_text("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }
}
