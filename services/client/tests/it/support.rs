//! A home folder for one test, and a service that behaves as the test says.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A key of the right form.
pub const KEY: &str = "cairn_abcdefghijkl_0123456789012345678901234567890123456789012";

/// A person's machine.
pub struct Machine {
    home: TempDir,
    /// The environment of every run.
    pub env: BTreeMap<String, String>,
}

impl Drop for Machine {
    /// Flushers outlive their hooks. One that went on after its home was removed would make it
    /// anew for its log.
    fn drop(&mut self) {
        loop {
            let flushers = self.flushers();
            if flushers.is_empty() {
                return;
            }
            for (pid, _) in flushers.into_iter().filter(|(_, is_ours)| *is_ours) {
                // It may just have ended by itself.
                kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
            }
            std::thread::yield_now();
        }
    }
}

impl Machine {
    /// A machine that knows a service and holds a key for it.
    pub fn new(url: &str) -> Self {
        let home = TempDir::new().expect("a folder");
        let mut env = BTreeMap::new();
        let path = std::env::var("PATH").expect("a path");
        let home_text = home.path().to_str().expect("plain").to_owned();
        env.insert("PATH".to_owned(), path);
        env.insert("HOME".to_owned(), home_text);
        env.insert("CAIRN_URL".to_owned(), url.to_owned());
        env.insert("CAIRN_API_KEY".to_owned(), KEY.to_owned());
        env.insert("TZ".to_owned(), "Asia/Seoul".to_owned());
        fs::create_dir(home.path().join("app")).expect("a folder");
        Self { home, env }
    }

    /// A machine whose hooks start no flusher, because it holds no key.
    pub fn signed_out() -> Self {
        let mut machine = Self::new("http://127.0.0.1:9");
        machine.env.remove("CAIRN_API_KEY");
        machine
    }

    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Processes that may be flushers of this machine, and whether they surely are.
    fn flushers(&self) -> Vec<(i32, bool)> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| self.flusher(pid)).collect()
    }

    /// Whether a process is a flusher of this machine, if it may be one.
    fn flusher(&self, pid: i32) -> Option<(i32, bool)> {
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        if program != Path::new(env!("CARGO_BIN_EXE_cairn")) {
            return None;
        }
        let words = |file| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let (environment, args) = (words("environ"), words("cmdline"));
        if environment.is_empty() || args.is_empty() {
            // It is just starting, and shows neither yet.
            return Some((pid, false));
        }
        let home = format!("HOME={}", self.home().display());
        let holds = |words: &[u8], word: &[u8]| words.split(|b| *b == 0).any(|w| w == word);
        let is_ours = holds(&environment, home.as_bytes()) && holds(&args, b"--background");
        is_ours.then_some((pid, true))
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The folder that hooks report.
    pub fn app(&self) -> PathBuf {
        self.home().join("app")
    }

    pub fn spool_dir(&self) -> PathBuf {
        self.home().join(".local/share/cairn/spool")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
        command
            .args(args)
            .env_clear()
            .envs(&self.env)
            .current_dir(self.app());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).spawn().expect("starts")
    }

    /// Runs a command with this input to its end.
    pub fn run(&self, args: &[&str], stdin: &[u8]) -> Output {
        let mut child = self.spawn(args);
        let mut pipe = child.stdin.take().expect("a pipe");
        let stdin = stdin.to_vec();
        // A broken pipe fails the test: whoever writes a payload must be let finish.
        let writer = std::thread::spawn(move || pipe.write_all(&stdin));
        let output = child.wait_with_output().expect("ends");
        writer.join().expect("no panic").expect("no broken pipe");
        output
    }

    /// Runs a hook, which must end well and say at most one line on stderr.
    pub fn hook(&self, event: &str, payload: &Value) -> Output {
        self.hook_raw(event, payload.to_string().as_bytes())
    }

    pub fn hook_raw(&self, event: &str, payload: &[u8]) -> Output {
        let output = self.run(&["hook", "claude-code", event], payload);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.lines().count() <= 1, "{stderr}");
        output
    }

    /// A payload of this machine's session `s1`.
    pub fn payload(&self, fields: Value) -> Value {
        let mut payload = json!({"session_id": "s1", "cwd": self.app()});
        let object = payload.as_object_mut().expect("an object");
        object.extend(fields.as_object().expect("an object").clone());
        payload
    }

    /// The lines that wait.
    pub fn spooled(&self) -> Vec<Value> {
        loop {
            // A flusher renames a file while the folder is listed, or before the file is read:
            // what looks empty, or cannot be read, is looked at again.
            match (self.spooled_at_once(), self.spooled_at_once()) {
                (Some(first), Some(second)) if first.is_empty() == second.is_empty() => {
                    return second;
                }
                _ => {}
            }
        }
    }

    fn spooled_at_once(&self) -> Option<Vec<Value>> {
        let mut paths: Vec<PathBuf> = match fs::read_dir(self.spool_dir()) {
            Ok(entries) => entries
                .map(|entry| entry.expect("an entry").path())
                .collect(),
            Err(_) => Vec::new(),
        };
        paths.retain(|path| path.extension().is_some_and(|end| end == "ndjson"));
        // Segments are older than `open.ndjson`, and sort by time.
        paths.sort_by_key(|path| (path.ends_with("open.ndjson"), path.clone()));
        let texts = paths.iter().map(|path| fs::read_to_string(path).ok());
        let texts: Vec<String> = texts.collect::<Option<_>>()?;
        let lines = texts.iter().flat_map(|text| text.lines());
        Some(
            lines
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
        )
    }

    /// Puts bytes into the open spool file.
    pub fn spool_bytes(&self, bytes: &[u8]) {
        fs::create_dir_all(self.spool_dir()).expect("a folder");
        let path = self.spool_dir().join("open.ndjson");
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .expect("opens");
        // Lines that name no service are for this machine's.
        let url = self.env.get("CAIRN_URL").expect("a service");
        let named = format!("\"service\":\"{url}\"");
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            let text = std::str::from_utf8(line).expect("text");
            let text = if text.contains("\"service\"") {
                text.to_owned()
            } else {
                text.replacen("\"v\":1", &format!("{named},\"v\":1"), 1)
            };
            file.write_all(text.as_bytes()).expect("writes");
        }
    }

    pub fn flush(&self) -> Output {
        self.run(&["flush"], b"")
    }

    pub fn status(&self) -> String {
        let output = self.run(&["status"], b"");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Whether any file below the home folder holds this text.
    pub fn holds(&self, text: &str) -> bool {
        let mut folders = vec![self.home().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("reads") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if String::from_utf8_lossy(&fs::read(&path).unwrap_or_default())
                    .contains(text)
                {
                    return true;
                }
            }
        }
        false
    }

    /// Waits until nothing is left in the spool.
    pub fn wait_until_sent(&self) {
        wait_for("an empty spool", || self.spooled().is_empty());
    }

    /// Waits until no flusher of this machine runs, or may be starting.
    pub fn wait_for_flushers(&self) {
        wait_for("the flusher's end", || self.flushers().is_empty());
    }
}

/// A line of a spool with this event id.
pub fn line(event_id: &str) -> String {
    let record = json!({"v": 1, "event_id": event_id, "kind": "observation",
        "at": "2026-10-10T08:45:00.120Z", "project": {"key": "name:app", "name": "app"},
        "body": {"title": event_id}});
    format!("{record}\n")
}

pub fn lines(count: usize) -> String {
    (1..=count).map(|n| line(&format!("e{n}"))).collect()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// Polls until something holds; the test fails after ten seconds.
pub fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// What the service does with a request.
#[derive(Clone)]
pub enum Reply {
    /// Takes everything that is not in `refused`.
    Accept,
    /// Commits, then breaks the connection.
    CommitAndCut,
    /// Answers after a while.
    Late(Duration),
    /// Answers this, which is not Cairn's.
    Foreign(u16, Vec<(&'static str, &'static str)>, String),
    /// Answers this, as a problem.
    Status(u16, Vec<(&'static str, &'static str)>, String),
}

#[derive(Default)]
pub struct Inner {
    /// Replies to come; the last one stays.
    pub script: VecDeque<Reply>,
    /// Requests as they came: method and path, headers, body.
    pub requests: Vec<(String, HeaderMap, Vec<u8>)>,
    /// Items as they were first stored, by event id.
    pub stored: BTreeMap<String, Value>,
    /// How often an item came that was stored already.
    pub repeated: usize,
    /// Event ids that are refused for good.
    pub refused: Vec<String>,
    /// The code with which they are refused.
    pub refusal: &'static str,
    /// The version that answers name.
    pub version: &'static str,
    /// The largest body that is taken.
    pub max_body: Option<usize>,
    /// Whose keys are, by what a key holds; `acme` where none fits.
    pub tenants: BTreeMap<&'static str, &'static str>,
    /// The text of the context.
    pub context: String,
    /// The lists as they can be merged into.
    pub work: Value,
    /// Event ids on which the service fails.
    pub failing: Vec<String>,
    /// Requests that are being answered now, and the most there ever were at once.
    pub under_way: (usize, usize),
    /// How often a device is told to wait before it is let in.
    pub pending: usize,
    /// The one refresh token that is good, by its number; none before a sign-in.
    pub refresh: Option<usize>,
    /// How often a refresh token came that was used before.
    pub reused: usize,
    /// How often a device was let in.
    pub sign_ins: usize,
}

/// What refresh tokens of the double's first sign-in begin with.
pub const GRANT: &str = "cairn_r_0198f3a01c0070008000000000000001_";

/// What those of its `nth` begin with.
fn grant(nth: usize) -> String {
    GRANT.replace("01_", &format!("{nth:02}_"))
}

/// A service on loopback that behaves as told.
pub struct Double {
    pub url: String,
    pub inner: Arc<Mutex<Inner>>,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Double {
    pub fn start() -> Self {
        let inner = Arc::new(Mutex::new(Inner {
            context: "# [app] recent context".to_owned(),
            work: json!({"lists": []}),
            refusal: "invalid_field",
            version: "0.1.0",
            ..Inner::default()
        }));
        let listener = std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        let listener = listener.expect("a port");
        listener.set_nonblocking(true).expect("a mode");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let app = Router::new().fallback(serve).with_state(Arc::clone(&inner));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a port");
                tokio::select! {
                    end = axum::serve(listener, app) => end.expect("serves"),
                    // The test is over: its end drops the other half.
                    _ = stopped => {}
                }
            });
        });
        Self {
            url,
            inner,
            _stop: stop,
        }
    }

    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.inner.lock().expect("whole").script = replies.into_iter().collect();
    }

    pub fn count(&self, path: &str) -> usize {
        let inner = self.inner.lock().expect("whole");
        inner
            .requests
            .iter()
            .filter(|(line, ..)| line.contains(path))
            .count()
    }

    /// Waits until this many requests have come.
    pub fn wait_for_requests(&self, count: usize) {
        wait_for("requests", || {
            self.inner.lock().expect("whole").requests.len() >= count
        });
    }

    pub fn stored(&self) -> Vec<String> {
        self.inner
            .lock()
            .expect("whole")
            .stored
            .keys()
            .cloned()
            .collect()
    }

    /// Everything that was ever sent here, as text.
    pub fn heard(&self) -> String {
        let inner = self.inner.lock().expect("whole");
        let requests = inner.requests.iter();
        requests
            .map(|(line, headers, body)| {
                format!("{line} {headers:?} {}\n", String::from_utf8_lossy(body))
            })
            .collect()
    }
}

async fn serve(
    State(inner): State<Arc<Mutex<Inner>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let tenant = {
        let tenants = &inner.lock().expect("whole").tenants;
        let key = headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        let known = tenants
            .iter()
            .find(|(id, _)| key.is_some_and(|key| key.contains(**id)));
        known.map_or("acme", |(_, tenant)| *tenant)
    };
    let reply = {
        let mut inner = inner.lock().expect("whole");
        inner
            .requests
            .push((format!("{method} {uri}"), headers, body.to_vec()));
        match inner.script.len() {
            // A script is about what a test is about: whose a key is, and what a flusher fetches
            // behind it, is answered beside it, unless nothing but a refusal is left.
            _ if ["/v1/me", "/v1/work-state"].contains(&uri.path()) => match inner.script.back() {
                Some(last @ (Reply::Status(..) | Reply::Foreign(..)))
                    if inner.script.len() == 1 =>
                {
                    last.clone()
                }
                _ => Reply::Accept,
            },
            0 => Reply::Accept,
            1 => inner.script[0].clone(),
            _ => inner.script.pop_front().expect("not empty"),
        }
    };
    match reply {
        Reply::Accept => {}
        Reply::CommitAndCut => {
            answer(&mut inner.lock().expect("whole"), uri.path(), &body, tenant);
            // The connection's task ends without an answer.
            std::panic::resume_unwind(Box::new("cut"));
        }
        Reply::Late(wait) => {
            {
                let under_way = &mut inner.lock().expect("whole").under_way;
                under_way.0 += 1;
                under_way.1 = under_way.1.max(under_way.0);
            }
            tokio::time::sleep(wait).await;
            inner.lock().expect("whole").under_way.0 -= 1;
        }
        Reply::Status(status, headers, text) => {
            let status = StatusCode::from_u16(status).expect("a status");
            let kind = ("content-type", "application/problem+json");
            let mut response = (status, [("cairn-service", "0.1.0"), kind], text).into_response();
            for (name, value) in headers {
                response
                    .headers_mut()
                    .insert(name, value.parse().expect("a value"));
            }
            return response;
        }
        Reply::Foreign(status, headers, text) => {
            let status = StatusCode::from_u16(status).expect("a status");
            let mut response = (status, text).into_response();
            for (name, value) in headers {
                response
                    .headers_mut()
                    .insert(name, value.parse().expect("a value"));
            }
            return response;
        }
    }
    answer(&mut inner.lock().expect("whole"), uri.path(), &body, tenant)
}

fn answer(inner: &mut Inner, path: &str, body: &[u8], tenant: &str) -> Response {
    let mut response = content(inner, path, body, tenant);
    let headers = response.headers_mut();
    headers.insert("cairn-service", inner.version.parse().expect("a value"));
    response
}

fn content(inner: &mut Inner, path: &str, body: &[u8], tenant: &str) -> Response {
    match path {
        "/v1/events" => events(inner, body),
        "/v1/context" => axum::Json(json!({"text": inner.context, "units": 0, "est_tokens": 0,
            "parts": [{"name": "index", "text": inner.context, "units": 0}], "hlc": "7.1"}))
        .into_response(),
        "/v1/work-state" => axum::Json(json!({"project": "app", "lists": [], "text": "- plan",
            "hlc": "9.0", "snapshot": inner.work}))
        .into_response(),
        "/v1/work-state/entries" => {
            let entry: Value = serde_json::from_slice(body).expect("an entry");
            (
                StatusCode::CREATED,
                axum::Json(
                    json!({"id": entry["event_id"], "list": entry["list"], "project": "app",
                    "open": [], "text": "Stored in \"plan\" (app)."}),
                ),
            )
                .into_response()
        }
        "/v1/work-state/history" => axum::Json(json!({"items": [{"event_id": uuid::Uuid::nil(),
            "project": "name:app", "list": "plan", "fields": {"task": "docs"}, "hlc": "1.0",
            "at": "2026-10-10T08:45:00.000Z", "arrived_at": "2026-10-10T08:45:00.000Z",
            "author": "lin", "action": "claim"}]}))
        .into_response(),
        "/v1/me" => axum::Json(json!({"tenant": tenant, "handle": "lin", "role": "member",
            "scopes": ["memory:read"], "expires_at": "2027-01-01T00:00:00.000Z"}))
        .into_response(),
        "/v1/search" => {
            let asked: Value = serde_json::from_slice(body).expect("a question");
            match asked["format"].as_str() {
                Some("list") => "2 results for \"pool leak\"".into_response(),
                _ => axum::Json(json!({"items": [], "match": "all", "next_cursor": null,
                    "total": 0}))
                .into_response(),
            }
        }
        "/oauth/device_authorization" => axum::Json(json!({"device_code": "dc",
            "user_code": "BCDF-GHJK", "verification_uri": "https://memory.example.com/device",
            "verification_uri_complete": "https://memory.example.com/device?user_code=BCDF-GHJK",
            "expires_in": 600, "interval": 1}))
        .into_response(),
        "/oauth/token" => tokens(inner, &String::from_utf8_lossy(body)),
        "/oauth/revoke" => StatusCode::OK.into_response(),
        "/v1/observations/batch" | "/v1/tool-uses/batch" => records(path, body),
        "/mcp" => rpc(body),
        _ if crate::manage::answers(path) => crate::manage::answer(path, body),
        _ => (
            StatusCode::NOT_FOUND,
            axum::Json(json!({"type": "urn:cairn:problem:not_found",
            "title": "Not found", "status": 404, "code": "not_found", "detail": "not found"})),
        )
            .into_response(),
    }
}

/// Gives tokens as the service does: a refresh token is good once.
fn tokens(inner: &mut Inner, form: &str) -> Response {
    let refuse = |error: &str| {
        let text = json!({"error": error, "error_description": error});
        (StatusCode::BAD_REQUEST, axum::Json(text)).into_response()
    };
    if form.contains("device_code") {
        if inner.pending > 0 {
            inner.pending -= 1;
            return refuse("authorization_pending");
        }
        inner.sign_ins += 1;
    } else {
        let grant = grant(inner.sign_ins);
        let good = inner.refresh.map(|number| format!("{grant}{number}"));
        if !good.is_some_and(|good| form.ends_with(&format!("refresh_token={good}"))) {
            inner.reused += 1;
            inner.refresh = None;
            return refuse("invalid_grant");
        }
    }
    let number = inner.refresh.map_or(1, |number| number + 1);
    inner.refresh = Some(number);
    let refresh = format!("{}{number}", grant(inner.sign_ins));
    axum::Json(
        json!({"access_token": format!("access.{number}.x"), "token_type": "Bearer",
        "expires_in": 600, "refresh_token": refresh, "scope": "memory:read"}),
    )
    .into_response()
}

/// Records of the ids that are asked for, but for those that end in 9.
fn records(path: &str, body: &[u8]) -> Response {
    let asked: Value = serde_json::from_slice(body).expect("a batch");
    assert_eq!(asked["project"], "*");
    let ids = asked["ids"].as_array().expect("ids").iter();
    let ids: Vec<&str> = ids.map(|id| id.as_str().expect("an id")).collect();
    let (missing, found): (Vec<&str>, Vec<&str>) = ids.iter().partition(|id| id.ends_with('9'));
    let item = |id: &str| {
        let mut item = json!({"id": id, "event_id": uuid::Uuid::nil(), "project": "name:app",
            "project_name": "app", "author": "lin", "at": "2026-10-10T08:45:00.000Z",
            "arrived_at": "2026-10-10T08:45:00.000Z", "visibility": "private", "session": "s-1",
            "host": "claude-code"});
        let own = match (path, &id[..1]) {
            ("/v1/tool-uses/batch", _) => json!({"tool": "Bash", "failed": true,
                "input": "{\"command\":\"make\"}", "output": "\"one\\ntwo\\u001b[31m\"",
                "input_bytes": 1, "output_bytes": 1, "input_sha256": "", "output_sha256": "",
                "altered": ["cut"]}),
            (_, "S") => json!({"kind": "summary", "position": 1, "origin": "api",
                "summary": {"request": "Fix 5xx"}}),
            (_, "P") => json!({"kind": "prompt", "position": 1, "origin": "api",
                "text": "why?", "number": 1}),
            _ => json!({"kind": "observation", "position": 1, "origin": "api",
                "observation": {"title": "pool leak", "facts": ["f1"]}}),
        };
        let item_fields = item.as_object_mut().expect("an object");
        item_fields.extend(own.as_object().expect("an object").clone());
        item
    };
    let items: Vec<Value> = found.into_iter().map(item).collect();
    axum::Json(json!({"items": items, "missing": missing})).into_response()
}

fn events(inner: &mut Inner, body: &[u8]) -> Response {
    if inner.max_body.is_some_and(|max| body.len() > max) {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    }
    let batch: Value = serde_json::from_slice(body).expect("a batch");
    let items = batch["items"].as_array().expect("items");
    let is_failing = |item: &Value| inner.failing.iter().any(|id| item["event_id"] == **id);
    if items.iter().any(is_failing) {
        let problem = json!({"type": "urn:cairn:problem:internal", "title": "Internal error",
            "status": 500, "code": "internal"});
        return (StatusCode::INTERNAL_SERVER_ERROR, axum::Json(problem)).into_response();
    }
    assert!(batch["machine"].is_string(), "{batch}");
    assert!((1..=500).contains(&items.len()), "{}", items.len());
    let mut status = StatusCode::OK;
    let mut answers = Vec::new();
    for item in items {
        let id = item["event_id"].as_str().expect("an id").to_owned();
        if inner.refused.contains(&id) {
            status = StatusCode::MULTI_STATUS;
            answers.push(
                json!({"event_id": id, "status": "refused", "code": inner.refusal,
                "pointer": "/body/title", "detail": "at most 400", "retry": false}),
            );
        } else if inner.stored.contains_key(&id) {
            inner.repeated += 1;
            answers.push(json!({"event_id": id, "status": "duplicate", "id": "1"}));
        } else {
            inner.stored.insert(id.clone(), item.clone());
            answers.push(json!({"event_id": id, "status": "stored", "id": "1"}));
        }
    }
    let headers = [("Cairn-Service", inner.version)];
    (status, headers, axum::Json(json!({"items": answers}))).into_response()
}

/// Just enough of an MCP server to see what a bridge carries.
fn rpc(body: &[u8]) -> Response {
    let Ok(call) = serde_json::from_slice::<Value>(body) else {
        let error = json!({"jsonrpc": "2.0", "id": null,
            "error": {"code": -32600, "message": "cannot be read"}});
        return (StatusCode::BAD_REQUEST, axum::Json(error)).into_response();
    };
    let Some(id) = call.get("id") else {
        return StatusCode::ACCEPTED.into_response();
    };
    let (status, rest) = match call["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let version = call["params"]["protocolVersion"].clone();
            (200, json!({"result": {"protocolVersion": version}}))
        }
        "tools/list" => (
            200,
            json!({"result": {"tools": [{"name": "of_the_service", "inputSchema": {}}]}}),
        ),
        "tools/call" => (
            200,
            json!({"result": {"content": [{"type": "text", "text": "ok"}],
                "structuredContent": {"hlc": "8.0"}}}),
        ),
        "ping" => (200, json!({"result": {}})),
        _ => (
            404,
            json!({"error": {"code": -32601, "message": "Method not found"}}),
        ),
    };
    let mut answer = json!({"jsonrpc": "2.0", "id": id});
    answer
        .as_object_mut()
        .expect("an object")
        .extend(rest.as_object().expect("one").clone());
    // Laid out over several lines, as an answer may be.
    let text = serde_json::to_string_pretty(&answer).expect("JSON");
    let status = StatusCode::from_u16(status).expect("a status");
    (status, [("content-type", "application/json")], text).into_response()
}
