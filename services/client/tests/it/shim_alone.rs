//! The shim while the service, or its host, is not there.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::shim::{CALL, INITIALIZE, Shim};
use crate::support::{Double, Machine, Reply, wait_for};

const LIST: &str = r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#;
const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().expect("tools");
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect()
}

/// An address that takes connections and never answers, as where packets are dropped.
fn silence() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    (listener, url)
}

#[test]
fn c055_a_host_starts_while_the_service_says_nothing() {
    let (_listener, silent) = silence();
    for url in [silent.as_str(), "http://127.0.0.1:9"] {
        for machine in [Machine::new(url), Machine::signed_out()] {
            let mut shim = Shim::start(&machine);
            let begun = Instant::now();
            let hello = shim.ask(INITIALIZE);
            assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
            assert_eq!(hello["result"]["serverInfo"]["name"], "cairn");
            shim.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            let list = shim.ask(LIST);
            assert_eq!((&list["id"], names(&list)[0]), (&json!("l"), "mem_search"));
            let found = shim.ask(DISCOVER);
            assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
            assert_eq!(found["result"]["cacheScope"], "private");
            // Less than a single call may take, three times over.
            assert!(
                begun.elapsed() < Duration::from_secs(9),
                "{:?}",
                begun.elapsed()
            );
            shim.end();
        }
    }
}

#[test]
fn c055_what_is_away_comes_back_to_the_same_shim() {
    let double = Double::start();
    double.script([Reply::Late(Duration::from_secs(30)), Reply::Accept]);
    let machine = Machine::new(&double.url);
    let mut shim = Shim::start(&machine);
    // Meanwhile the list that came with the program, then the service's, then a copy of that.
    assert_eq!(names(&shim.ask(LIST))[0], "mem_search");
    assert_eq!(names(&shim.ask(LIST)), ["of_the_service"]);
    assert_eq!(shim.ask(CALL)["result"]["content"][0]["text"], "ok");
    double.script([Reply::Status(503, vec![], "{}".to_owned())]);
    assert_eq!(names(&shim.ask(LIST)), ["of_the_service"]);
    shim.end();
}

#[test]
fn c055_an_unknown_revision_and_a_missing_one_have_their_answers_alone() {
    let machine = Machine::new("http://127.0.0.1:9");
    let mut shim = Shim::start(&machine);
    let odd = DISCOVER.replace("2026-07-28", "2099-01-01");
    let refused = shim.ask(&odd);
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["supported"][0], "2026-07-28");
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#;
    assert_eq!(shim.ask(bare)["error"]["code"], -32602);
    let newer = INITIALIZE.replace("2025-06-18", "2099-01-01");
    assert_eq!(shim.ask(&newer)["result"]["protocolVersion"], "2025-11-25");
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    assert_eq!(shim.ask(ping)["result"], json!({}));
    let other = r#"{"jsonrpc":"2.0","id":3,"method":"resources/list"}"#;
    assert_eq!(shim.ask(other)["error"]["code"], -32603);
    shim.end();
}

#[test]
fn c054_lines_that_break_parsers_have_an_answer_each_and_the_next_one_works() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    let mut shim = Shim::start(&machine);
    let call = |id: usize, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","arguments":{arguments}}}}}"#
        )
    };
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let hostile = [
        r#"{"query":"\ud83d \u0000"}"#,
        r#"{"n":1e400,"m":-1e999999}"#,
        r#"{"n":1234567890123456789012345678901234567890}"#,
        r#"{"a":1,"a":2}"#,
        &deep,
    ];
    for (id, arguments) in hostile.iter().enumerate() {
        let stdin = shim.stdin.as_mut().expect("open");
        stdin
            .write_all(call(id, arguments).as_bytes())
            .expect("writes");
        stdin.write_all(b"\r\n").expect("writes");
        let answer = shim.receive();
        assert_eq!(answer["id"], id, "{answer}");
    }
    for bytes in [
        &b"\xff\xfe{}\n"[..],
        b"\0\0\n",
        b"{\"jsonrpc\":\"2.0\"\n",
        b"nul\n",
        b"[[[[\n",
    ] {
        shim.stdin
            .as_mut()
            .expect("open")
            .write_all(bytes)
            .expect("writes");
        assert_eq!(shim.receive()["error"]["code"], -32700, "{bytes:?}");
    }
    assert_eq!(shim.ask(CALL)["result"]["content"][0]["text"], "ok");
    shim.end();
}

#[test]
fn c052_a_signal_ends_it_in_the_middle_of_a_call() {
    let double = Double::start();
    let machine = Machine::new(&double.url);
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut shim = Shim::start(&machine);
        shim.ask(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let before = double.count("/mcp");
        double.script([Reply::Late(Duration::from_secs(60))]);
        shim.send(CALL);
        wait_for("the call", || double.count("/mcp") > before);
        kill(pid(&shim.child), signal).expect("it is there");
        assert_eq!(shim.child.wait().expect("ends").code(), Some(0), "{signal}");
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a process id"))
}

/// Whether a process runs. One that nobody waits for is over.
fn runs(id: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// A host of a shim, whose pipes the test keeps open: their end tells nobody anything.
fn host(machine: &Machine) -> (Child, i32) {
    let script = r#"exec 3<&0; "$0" mcp <&3 & echo $!; wait"#;
    let mut host = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_cairn")])
        .env_clear()
        .envs(&machine.env)
        .current_dir(machine.app())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut lines = BufReader::new(host.stdout.take().expect("a pipe")).lines();
    let mut line = || lines.next().expect("open").expect("a line");
    let shim: i32 = line().parse().expect("a process id");
    let mut stdin = host.stdin.take().expect("a pipe");
    writeln!(stdin, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#).expect("writes");
    assert!(line().contains("result"), "it serves");
    // Held until the test is over.
    std::mem::forget((stdin, lines));
    (host, shim)
}

#[test]
fn c052_no_shim_outlives_a_host_that_is_killed() {
    let machine = Machine::new("http://127.0.0.1:9");
    let mut hosts: Vec<_> = (0..20).map(|_| host(&machine)).collect();
    assert!(hosts.iter().all(|(_, shim)| runs(*shim)));
    for (host, _) in &mut hosts {
        host.kill().expect("killed");
        host.wait().expect("waited for");
    }
    let killed = Instant::now();
    while hosts.iter().any(|(_, shim)| runs(*shim)) {
        assert!(killed.elapsed() < Duration::from_secs(2), "one is left");
        std::thread::yield_now();
    }
}
