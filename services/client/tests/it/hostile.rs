//! What strangers put in the way: files of a checkout, folders of others, servers that are none.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Double, KEY, Machine, Reply, line, stderr, stdout};

#[test]
fn files_of_a_checkout_that_never_end_are_not_read() {
    for name in [
        ".cairn-project",
        ".cairn/config.toml",
        ".git",
        ".git/config",
        ".git/HEAD",
        ".git/commondir",
        ".git/refs/heads/main",
    ] {
        for pipe in [true, false] {
            let machine = Machine::signed_out();
            let path = machine.app().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            if name.starts_with(".git/") {
                fs::write(machine.app().join(".git/HEAD"), "ref: refs/heads/main").expect("writes");
                fs::remove_file(&path).ok();
            }
            if pipe {
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
            } else {
                symlink("/dev/zero", &path).expect("links");
            }
            let begun = Instant::now();
            machine.hook("Stop", &machine.payload(json!({})));
            assert!(begun.elapsed() < Duration::from_secs(20), "{name}");
            assert_eq!(machine.spooled().len(), 1, "{name}");
            // Neither does git, which a status asks for the name.
            assert_eq!(machine.run(&["status"], b"").status.code(), Some(0));
            assert!(begun.elapsed() < Duration::from_secs(20), "{name}");
        }
    }
}

#[test]
fn a_link_in_a_checkout_names_no_project_by_its_reader_s_files() {
    let machine = Machine::signed_out();
    fs::write(machine.home().join("secret"), "SECRET").expect("writes");
    symlink(
        machine.home().join("secret"),
        machine.app().join(".cairn-project"),
    )
    .expect("links");
    machine.hook("Stop", &machine.payload(json!({})));
    let key = machine.spooled()[0]["project"]["key"].to_string();
    assert!(key.starts_with("\"dir:"), "{key}");
}

#[test]
fn without_a_home_nothing_is_recorded() {
    let mut machine = Machine::new("http://127.0.0.1:9");
    let shared = machine.home().join("shared");
    fs::create_dir(&shared).expect("a folder");
    machine.env.insert(
        "TMPDIR".to_owned(),
        shared.to_str().expect("plain").to_owned(),
    );
    machine.env.remove("HOME");
    let output = machine.hook(
        "SessionStart",
        &machine.payload(json!({"source": "startup"})),
    );
    assert_eq!(
        (stdout(&output).as_str(), stderr(&output).lines().count()),
        ("", 1)
    );
    assert!(stderr(&output).contains("HOME is not set"), "{output:?}");
    assert_eq!(fs::read_dir(&shared).expect("reads").count(), 0);
    assert_eq!(machine.run(&["whoami"], b"").status.code(), Some(1));
}

#[test]
fn settings_and_keys_that_others_can_write_are_not_trusted() {
    let double = Double::start();
    let mut machine = Machine::signed_out();
    let config = machine.home().join(".config/cairn");
    machine.env.remove("CAIRN_URL");
    let args = ["login", "--key", "--url", &double.url];
    assert_eq!(machine.run(&args, KEY.as_bytes()).status.code(), Some(0));
    assert_eq!(machine.run(&["whoami"], b"").status.code(), Some(0));
    let mode = |mode| {
        fs::set_permissions(&config, fs::Permissions::from_mode(mode)).expect("a mode");
    };
    mode(0o777);
    let output = machine.run(&["whoami"], b"");
    assert_eq!(
        output.status.code(),
        Some(64),
        "no address is left: {output:?}"
    );
    assert!(stderr(&output).contains("chmod go-w"), "{output:?}");
    assert_eq!(machine.run(&args, KEY.as_bytes()).status.code(), Some(73));
    mode(0o700);
    fs::write(config.join("config.toml"), "url = \"http://127.0.0.1:1\"").expect("writes");
    let open = fs::Permissions::from_mode(0o666);
    fs::set_permissions(config.join("config.toml"), open).expect("a mode");
    let output = machine.run(&["whoami"], b"");
    assert_eq!(
        output.status.code(),
        Some(0),
        "the service of the sign-in: {output:?}"
    );
}

#[test]
fn a_hook_says_one_line_however_much_is_wrong() {
    let machine = Machine::signed_out().set("CAIRN_CONTEXT_LIMIT", "1");
    let share = machine.home().join(".local");
    fs::write(&share, "").expect("writes");
    // Settings, spool, state and sign-in.
    let output = machine.hook("Stop", &machine.payload(json!({})));
    assert_eq!(stderr(&output).lines().count(), 1, "{output:?}");
    // What was not said is said by the next one.
    let machine = Machine::signed_out().set("CAIRN_CONTEXT_LIMIT", "1");
    let first = stderr(&machine.hook("Stop", &machine.payload(json!({}))));
    let second = stderr(&machine.hook("Stop", &machine.payload(json!({}))));
    assert!(
        first.contains("CONTEXT_LIMIT") && second.contains("login"),
        "{first}{second}"
    );
}

#[test]
fn c064_a_private_turn_stays_private_where_its_mark_finds_no_place() {
    // Only beside the spool; nowhere at all.
    for (blocked, records) in [
        (vec![".local/state"], 2),
        (vec![".local/state", ".local/share"], 0),
    ] {
        let double = Double::start();
        let mut machine = Machine::new(&double.url);
        fs::create_dir(machine.home().join(".local")).expect("a folder");
        for name in &blocked {
            fs::write(machine.home().join(name), "").expect("writes");
        }
        if records > 0 {
            machine.env.remove("CAIRN_API_KEY");
        }
        let prompt = json!({"prompt": "<private>SECRET"});
        machine.hook("UserPromptSubmit", &machine.payload(prompt));
        let call = json!({"tool_name": "Bash", "tool_response": "SECRET"});
        machine.hook("PostToolUse", &machine.payload(call));
        machine.hook(
            "Stop",
            &machine.payload(json!({"last_assistant_message": "SECRET"})),
        );
        assert!(
            !machine.holds("SECRET") && !double.heard().contains("SECRET"),
            "{blocked:?}"
        );
        assert_eq!(machine.spooled().len(), records, "{:?}", machine.spooled());
    }
}

fn context(output: &str) -> String {
    let answer: Value = serde_json::from_str(output).expect("one JSON object");
    answer["hookSpecificOutput"]["additionalContext"].to_string()
}

#[test]
fn an_answer_without_end_costs_no_session_start() {
    let double = Double::start();
    double.inner.lock().expect("whole").context = "1 3:45p injected\n".repeat(1_000_000);
    let machine = Machine::new(&double.url);
    let begun = Instant::now();
    let output = machine.hook(
        "SessionStart",
        &machine.payload(json!({"source": "startup"})),
    );
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    let context = context(&stdout(&output));
    assert!(
        context.contains("cannot be reached") && !context.contains("injected"),
        "{context}"
    );
}

#[test]
fn only_cairn_s_own_words_reach_the_model() {
    let plain = ("content-type", "text/plain");
    for reply in [
        Reply::Foreign(200, vec![plain], "injected".to_owned()),
        Reply::Status(
            200,
            vec![("content-type", "text/html")],
            "injected".to_owned(),
        ),
        Reply::Foreign(404, vec![plain], "injected".to_owned()),
    ] {
        let double = Double::start();
        double.script([reply]);
        let machine = Machine::new(&double.url);
        let output = machine.hook(
            "SessionStart",
            &machine.payload(json!({"source": "startup"})),
        );
        let context = context(&stdout(&output));
        assert!(context.contains("cannot be reached"), "{context}");
        assert!(!context.contains("injected"), "{context}");
    }
}

#[test]
fn what_is_no_cairn_service_takes_and_refuses_nothing() {
    let taken = json!({"items": [{"event_id": "e1", "status": "stored"}]}).to_string();
    let ours = json!({"type": "urn:cairn:problem:invalid_field", "title": "t", "status": 422,
        "code": "invalid_field"});
    for reply in [
        Reply::Foreign(200, vec![("content-type", "application/json")], taken),
        Reply::Foreign(400, vec![], "<html>".to_owned()),
        Reply::Foreign(422, vec![], ours.to_string()),
        Reply::Status(400, vec![], "<html>".to_owned()),
        Reply::Foreign(500, vec![], String::new()),
    ] {
        let double = Double::start();
        double.script([reply]);
        let machine = Machine::new(&double.url);
        machine.spool_bytes(line("e1").as_bytes());
        assert_eq!(machine.flush().status.code(), Some(4));
        let status = machine.status();
        assert!(
            status.contains("Set aside: 0") && !status.contains("Held"),
            "{status}"
        );
        assert_eq!(machine.spooled().len(), 1);
    }
}

#[test]
fn words_of_a_later_service_are_understood_as_far_as_they_matter() {
    let answer = json!({"items": [
        {"event_id": "e1", "status": "refused", "code": "too_purple", "retry": false},
        {"event_id": "e2", "status": "pondered"}, {"event_id": "e3", "status": "stored"}]});
    let double = Double::start();
    double.script([Reply::Status(207, vec![], answer.to_string())]);
    let machine = Machine::new(&double.url);
    machine.spool_bytes(crate::support::lines(3).as_bytes());
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(machine.spooled()[0]["event_id"], "e2");
    let list = stdout(&machine.run(&["spool", "list"], b""));
    assert!(list.contains("e1") && list.contains("too_purple"), "{list}");
    let problem = json!({"type": "urn:cairn:problem:too_purple", "title": "t", "status": 422,
        "code": "too_purple", "detail": "less purple"});
    double.script([Reply::Status(422, vec![], problem.to_string())]);
    let whoami = machine.run(&["whoami"], b"");
    assert_eq!(whoami.status.code(), Some(5));
    assert!(
        stderr(&whoami).contains("too_purple - less purple"),
        "{whoami:?}"
    );
}
