//! The shim as an agent host sees it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use serde_json::{Value, json};

use crate::support::{Double, KEY, Machine, Reply};

pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
pub const CALL: &str = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"mem_search","arguments":{}}}"#;

pub struct Shim {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Shim {
    /// The machine must live on: its home is removed with it.
    pub fn start(machine: &Machine) -> Self {
        let mut child = machine.spawn(&["mcp"]);
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self {
            child,
            stdin,
            stdout,
        }
    }

    pub fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        writeln!(stdin, "{line}").expect("writes");
    }

    /// The next line of stdout, which must be a message.
    pub fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("reads");
        let message: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    pub fn ask(&mut self, line: &str) -> Value {
        self.send(line);
        self.receive()
    }

    /// Closes stdin; the program must end soon, and well.
    pub fn end(mut self) {
        drop(self.stdin.take());
        let begun = Instant::now();
        assert_eq!(self.child.wait().expect("ends").code(), Some(0));
        assert!(
            begun.elapsed() < Duration::from_secs(15),
            "{:?}",
            begun.elapsed()
        );
    }
}

#[test]
fn messages_pass_with_the_headers_that_mirror_them() {
    let double = Double::start();
    let machine = Machine::new(&double.url).set("CLAUDE_CODE_SESSION_ID", "s 1");
    let mut shim = Shim::start(&machine);
    assert_eq!(
        shim.ask(INITIALIZE)["result"]["protocolVersion"],
        "2025-06-18"
    );
    shim.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(shim.ask(CALL)["result"]["content"][0]["text"], "ok");
    let modern = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"café","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    shim.ask(modern);
    shim.end();
    let inner = double.inner.lock().expect("whole");
    let of = |text: &str| {
        let found = inner
            .requests
            .iter()
            .find(|(_, _, body)| body == text.as_bytes());
        found.expect("passed through as it was").1.clone()
    };
    assert!(of(INITIALIZE).get("mcp-protocol-version").is_none());
    let call = of(CALL);
    assert_eq!(call["mcp-protocol-version"], "2025-06-18");
    assert_eq!(
        (&call["mcp-method"], &call["mcp-name"]),
        (
            &"tools/call".parse().expect("a value"),
            &"mem_search".parse().expect("a value")
        )
    );
    assert_eq!(call["cairn-session"], "claude-code/s%201");
    assert_eq!(call["authorization"], format!("Bearer {KEY}"));
    assert!(
        call["cairn-project"]
            .to_str()
            .expect("text")
            .starts_with("dir:")
    );
    assert_eq!(of(modern)["mcp-protocol-version"], "2026-07-28");
    assert_eq!(of(modern)["mcp-name"], "=?base64?Y2Fmw6k=?=");
}

#[test]
fn settings_that_the_service_goes_by_travel_with_each_message() {
    const LIST: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#;
    let double = Double::start();
    for (tools, visibility) in [(None, None), (Some("legacy, save_memory"), Some("private"))] {
        let mut machine = Machine::new(&double.url);
        if let (Some(tools), Some(visibility)) = (tools, visibility) {
            machine = machine.set("CAIRN_TOOLS", tools);
            machine = machine.set("CAIRN_VISIBILITY", visibility);
        }
        let mut shim = Shim::start(&machine);
        shim.ask(LIST);
        shim.ask(CALL);
        shim.end();
        let inner = double.inner.lock().expect("whole");
        let newest = |text: &str| {
            let mut requests = inner.requests.iter().rev();
            let found = requests.find(|(_, _, body)| body == text.as_bytes());
            found.expect("passed through").1.clone()
        };
        let (list, call) = (newest(LIST), newest(CALL));
        let of = |headers: &HeaderMap, name: &str| {
            let value = headers.get(name).map(|value| value.to_str().expect("text"));
            value.map(str::to_owned)
        };
        assert_eq!(of(&list, "cairn-tools").as_deref(), tools);
        assert_eq!(of(&call, "cairn-visibility").as_deref(), visibility);
        assert_eq!(of(&call, "cairn-tools"), None);
    }
}

#[test]
fn c052_stdin_closes() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    Shim::start(&machine).end();
    let mut shim = Shim::start(&machine);
    shim.ask(INITIALIZE);
    double.script([Reply::Late(Duration::from_secs(20))]);
    shim.send(CALL);
    shim.end();
}

#[test]
fn c053_only_json_rpc_on_stdout() {
    let double = Double::start();
    let verbose = Machine::new(&double.url)
        .set("RUST_LOG", "trace")
        .set("CAIRN_LOG", "trace");
    let broken = Machine::new(&double.url);
    let folder = broken.home().join(".config/cairn");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("config.toml"), "x").expect("writes");
    let down = Machine::new("http://127.0.0.1:9");
    for machine in [verbose, broken, down] {
        let mut shim = Shim::start(&machine);
        shim.ask(INITIALIZE);
        shim.ask(CALL);
        drop(shim.stdin.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut shim.stdout, &mut rest).expect("reads");
        assert_eq!(rest, "");
        assert_eq!(shim.child.wait().expect("ends").code(), Some(0));
    }
}

#[test]
fn c054_malformed_messages_between_two_good_ones() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let mut shim = Shim::start(&machine);
    shim.ask(INITIALIZE);
    for (line, id, code) in [
        ("not json", Value::Null, -32700),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":null}"#,
            json!(2),
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"no/such"}"#,
            json!(3),
            -32601,
        ),
        (
            r#"[{"jsonrpc":"2.0","id":4,"method":"ping"}]"#,
            Value::Null,
            -32600,
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":5}\r", json!(5), -32600),
    ] {
        let answer = shim.ask(line);
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&id, &json!(code)),
            "{line}"
        );
    }
    let list = shim.ask("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"s5\",\"method\":\"tools/list\"}\r");
    assert_eq!(list["id"], "s5");
    assert!(list["result"]["tools"].is_array());
    shim.end();
}

#[test]
fn c055_a_call_while_the_service_is_away_fails_and_the_next_one_works() {
    let double = Double::start();
    let broken = Reply::Status(502, vec![], "<html>".to_owned());
    double.script([Reply::CommitAndCut, broken, Reply::Accept]);
    let machine = Machine::new(&double.url);
    let mut shim = Shim::start(&machine);
    for _ in 0..2 {
        let answer = shim.ask(CALL);
        assert_eq!(answer["result"]["isError"], true);
        let text = answer["result"]["content"][0]["text"]
            .as_str()
            .expect("text");
        assert!(text.starts_with("service_unreachable - "), "{text}");
    }
    assert_eq!(shim.ask(CALL)["result"]["content"][0]["text"], "ok");
    shim.end();
}

#[test]
fn a_caller_without_a_key_is_told_how_to_sign_in() {
    let double = Double::start();
    double.script([Reply::Status(401, vec![], String::new())]);
    let want = "unauthenticated - sign in with: cairn login";
    for machine in [Machine::new(&double.url), Machine::signed_out()] {
        let mut shim = Shim::start(&machine);
        assert_eq!(shim.ask(CALL)["result"]["content"][0]["text"], want);
        shim.end();
    }
}

#[test]
fn calls_run_side_by_side_and_a_renewed_key_counts_at_once() {
    let double = Double::start();
    let mut machine = Machine::new(&double.url);
    machine.env.remove("CAIRN_API_KEY");
    let mut shim = Shim::start(&machine);
    shim.ask(CALL);
    let login = machine.run(&["login", "--key"], KEY.as_bytes());
    assert_eq!(login.status.code(), Some(0), "{login:?}");
    double.script([Reply::Late(Duration::from_millis(800)), Reply::Accept]);
    shim.send(CALL);
    double.wait_for_requests(2);
    let quick = shim.ask(r#"{"jsonrpc":"2.0","id":10,"method":"ping"}"#);
    assert_eq!(quick["id"], 10, "the slow call is still under way");
    assert_eq!(shim.receive()["id"], 9);
    shim.end();
}

#[test]
fn calls_take_their_turn_and_too_many_are_refused() {
    let double = Double::start();
    double.script([Reply::Late(Duration::from_millis(500))]);
    let machine = Machine::new(&double.url);
    let mut shim = Shim::start(&machine);
    for _ in 0..140 {
        shim.send(CALL);
    }
    let mut refused = 0;
    for _ in 0..140 {
        let answer = shim.receive();
        let text = answer["result"]["content"][0]["text"]
            .as_str()
            .expect("text");
        refused += usize::from(text.starts_with("overloaded - "));
    }
    assert_eq!(refused, 12);
    assert_eq!(double.inner.lock().expect("whole").under_way, (0, 32));
    shim.end();
}

#[test]
fn a_line_that_is_too_long_has_its_answer() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let mut shim = Shim::start(&machine);
    let answer = shim.ask(&format!("{{\"a\":\"{}\"}}", "x".repeat(3 * 1024 * 1024)));
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&Value::Null, &json!(-32600))
    );
    assert_eq!(shim.ask(CALL)["result"]["content"][0]["text"], "ok");
    shim.end();
}

/// The text of a tool's result, and whether it is an error.
fn call(shim: &mut Shim, name: &str, arguments: serde_json::Value) -> (String, bool) {
    let message = serde_json::json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": {"name": name, "arguments": arguments}});
    let result = shim.ask(&message.to_string())["result"].clone();
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{result}"));
    (text.to_owned(), result["isError"] == true)
}

#[test]
fn work_state_goes_on_while_the_service_is_away() {
    let machine = Machine::new("http://127.0.0.1:9");
    let mut shim = Shim::start(&machine);
    let task = |status: &str| serde_json::json!({"list": "plan", "fields": {"task": "docs", "status": status}});
    let nothing = call(&mut shim, "work_state_read", serde_json::json!({}));
    assert!(
        nothing.1 && nothing.0.starts_with("service_unreachable"),
        "{nothing:?}"
    );
    let stored = ("Stored offline; it will be merged.".to_owned(), false);
    assert_eq!(call(&mut shim, "work_state_write", task("todo")), stored);
    assert_eq!(call(&mut shim, "work_state_write", task("doing")), stored);
    let (read, is_error) = call(&mut shim, "work_state_read", serde_json::json!({}));
    assert!(!is_error);
    assert!(
        read.ends_with(":\n- plan\n  - [doing] docs, updated 1 minute ago by you"),
        "{read}"
    );
    for (arguments, code) in [
        (
            serde_json::json!({"list": "plan", "fields": {"task": "docs"}, "action": "claim"}),
            "offline - ",
        ),
        (
            serde_json::json!({"list": "plan", "fields": {"n": 1}, "project": "elsewhere"}),
            "offline - ",
        ),
        (
            serde_json::json!({"list": "", "fields": {"n": 1}}),
            "invalid_field - /list: ",
        ),
        (
            serde_json::json!({"list": "plan", "fields": [1]}),
            "invalid_input - fields: ",
        ),
    ] {
        let (text, is_error) = call(&mut shim, "work_state_write", arguments);
        assert!(is_error && text.starts_with(code), "{text}");
    }
    shim.end();
    let spooled = machine.spooled();
    assert_eq!(spooled.len(), 2);
    assert_eq!(spooled[1]["kind"], "work_entry");
    assert_eq!(
        spooled[1]["body"],
        serde_json::json!({"list": "plan", "fields": {"task": "docs", "status": "doing"}})
    );
    assert!(spooled[1]["session"]["id"].is_string() && spooled[1]["project"]["key"].is_string());
}

#[test]
fn c064_what_is_private_in_an_entry_never_waits_in_the_spool() {
    let machine = Machine::new("http://127.0.0.1:9");
    let mut shim = Shim::start(&machine);
    let private = "<private>hidden</private>";
    let write = serde_json::json!({"list": format!("plan{private}"), "fields": {
        "task": format!("docs{private}"), (format!("note{private}")): format!("see {private}it")}});
    call(&mut shim, "work_state_write", write);
    let (read, _) = call(&mut shim, "work_state_read", serde_json::json!({}));
    assert!(read.contains("- plan\n  - docs (note=see it), "), "{read}");
    shim.end();
    let body = serde_json::json!({"list": "plan", "fields": {"task": "docs", "note": "see it"}});
    assert_eq!(machine.spooled()[0]["body"], body);
    assert!(!machine.holds("hidden"));
}

#[test]
fn a_write_whose_answer_is_lost_is_spooled_under_the_same_event_id() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let mut shim = Shim::start(&machine);
    double.script([Reply::CommitAndCut]);
    let write = serde_json::json!({"list": "plan", "fields": {"n": 1}});
    let (text, _) = call(&mut shim, "work_state_write", write);
    assert_eq!(text, "Stored offline; it will be merged.");
    shim.end();
    let inner = double.inner.lock().expect("whole");
    let (_, headers, _) = inner
        .requests
        .iter()
        .find(|(line, ..)| line.contains("/mcp"))
        .expect("sent");
    let sent = headers["idempotency-key"]
        .to_str()
        .expect("text")
        .to_owned();
    drop(inner);
    assert_eq!(machine.spooled()[0]["event_id"], sent.as_str());
}

#[test]
fn an_excluded_folder_sends_and_keeps_no_entry() {
    let double = Double::start();
    let machine = Machine::new(&double.url).set("CAIRN_EXCLUDE", "~/app");
    let mut shim = Shim::start(&machine);
    let write = serde_json::json!({"list": "plan", "fields": {"n": 1}});
    for (tool, arguments) in [
        ("work_state_write", write),
        ("save_memory", serde_json::json!({"text": "kept to itself"})),
    ] {
        let (text, is_error) = call(&mut shim, tool, arguments);
        assert_eq!(text, "Not stored: this folder is excluded.");
        assert!(is_error, "{tool}");
    }
    shim.end();
    for command in [
        ["work", "add", "plan", "n=1"],
        ["work", "done", "plan", "docs"],
    ] {
        let output = machine.run(&command, b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(crate::support::stderr(&output).contains("Not stored: this folder is excluded."));
    }
    assert_eq!(double.count("/mcp") + double.count("/v1/work-state"), 0);
    assert!(machine.spooled().is_empty());
}

/// A list's entry that waits in the spool of a machine.
fn waiting_entry() -> String {
    let record = serde_json::json!({"v": 1, "event_id": "0198f000-0000-7000-8000-000000000001",
        "kind": "work_entry", "at": "2026-10-10T08:45:00.120Z",
        "project": {"key": "name:app", "name": "app"},
        "body": {"list": "plan", "fields": {"n": 1}}});
    format!("{record}\n")
}

#[test]
fn a_read_sends_what_waited_first_once_the_service_is_back() {
    let double = Double::start();
    let shim = Machine::new(&double.url);
    shim.spool_bytes(waiting_entry().as_bytes());
    let mut conversation = Shim::start(&shim);
    call(&mut conversation, "work_state_read", serde_json::json!({}));
    // Asked once more after the entry had gone.
    assert_eq!(double.stored().len(), 1);
    assert_eq!(double.count("/mcp"), 2);
    call(&mut conversation, "work_state_read", serde_json::json!({}));
    assert_eq!(double.count("/mcp"), 3);
    conversation.end();

    let double = Double::start();
    let command = Machine::new(&double.url);
    command.spool_bytes(waiting_entry().as_bytes());
    let output = command.run(&["work"], b"");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(double.stored().len(), 1);
    let asked = |line: &(String, _, _)| {
        line.0.contains("/v1/work-state") && !line.0.contains("snapshot=true")
    };
    let inner = double.inner.lock().expect("whole");
    assert_eq!(inner.requests.iter().filter(|line| asked(line)).count(), 2);
    drop(inner);
    assert!(command.holds("\"lists\":[]"), "a copy is kept");
}

#[test]
fn any_call_has_what_waits_sent_behind_it() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    machine.spool_bytes(crate::support::line("0198f000-0000-7000-8000-000000000002").as_bytes());
    let mut shim = Shim::start(&machine);
    call(&mut shim, "mem_search", serde_json::json!({"query": "x"}));
    machine.wait_until_sent();
    shim.end();
    machine.wait_for_flushers();
    assert_eq!(double.stored().len(), 1);
}

#[test]
fn what_an_answer_showed_goes_with_the_next_entry_that_waits() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let mut shim = Shim::start(&machine);
    call(&mut shim, "work_state_read", serde_json::json!({}));
    // The lists are fetched behind the answer; they name a higher moment.
    crate::support::wait_for("the lists", || double.count("/v1/work-state") == 1);
    double.script([Reply::CommitAndCut]);
    crate::support::wait_for("the moment", || machine.holds("9.0"));
    call(
        &mut shim,
        "work_state_write",
        serde_json::json!({"list": "plan", "fields": {"n": 1}}),
    );
    shim.end();
    assert_eq!(machine.spooled()[0]["after"], "9.0");
}
