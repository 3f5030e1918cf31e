//! A record goes to the tenant it was spooled for, or nowhere.

use serde_json::json;

use crate::support::{Double, KEY, Machine, Reply, stderr};

const OTHER_ID: &str = "mnopqrstuvwx";

fn other_key() -> String {
    KEY.replace("abcdefghijkl", OTHER_ID)
}

/// A service at which [`KEY`] is of `acme` and the other key of `beta`.
fn two_tenants() -> Double {
    let double = Double::start();
    double.inner.lock().expect("whole").tenants = [(OTHER_ID, "beta")].into();
    double
}

/// A hook spools, and nothing is sent yet because the service has no time.
fn spool(machine: &Machine, double: &Double) {
    let busy = vec![("Retry-After", "3600")];
    double.script([Reply::Status(503, busy, String::new())]);
    machine.hook("Stop", &machine.payload(json!({})));
    crate::support::wait_for("an attempt", || double.count("/v1/events") > 0);
    wait_for_flusher(machine);
    double.script([Reply::Accept]);
}

/// A flusher that still runs would answer for a flush by hand, and so would the wait that it was
/// asked for.
fn wait_for_flusher(machine: &Machine) {
    let note = machine.home().join(".local/state/cairn/delivery.json");
    crate::support::wait_for("the flusher's note", || note.exists());
    machine.wait_for_flushers();
    std::fs::remove_file(&note).expect("the wait is over");
}

#[test]
fn what_a_signed_in_account_spooled_is_not_sent_with_another_tenant_s_key() {
    let double = two_tenants();
    let mut machine = Machine::new(&double.url);
    machine.env.remove("CAIRN_API_KEY");
    let login = machine.run(&["login", "--key"], KEY.as_bytes());
    assert_eq!(login.status.code(), Some(0), "{login:?}");
    spool(&machine, &double);
    assert_eq!(machine.spooled()[0]["tenant"], "acme");
    machine.env.insert("CAIRN_API_KEY".to_owned(), other_key());
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored(), Vec::<String>::new());
    let status = machine.status();
    assert!(
        status.contains("1 of them for another service or tenant"),
        "{status}"
    );
    machine
        .env
        .insert("CAIRN_API_KEY".to_owned(), KEY.to_owned());
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored().len(), 1);
}

#[test]
fn what_one_key_spooled_is_not_sent_with_another_tenant_s_key_or_sign_in() {
    let double = two_tenants();
    let mut machine = Machine::new(&double.url);
    // Whose this key is cannot be learned while the service is away.
    machine
        .env
        .insert("CAIRN_URL".to_owned(), "http://127.0.0.1:9".to_owned());
    machine.hook("Stop", &machine.payload(json!({})));
    wait_for_flusher(&machine);
    machine
        .env
        .insert("CAIRN_URL".to_owned(), double.url.clone());
    let path = machine.spool_dir();
    let segments = std::fs::read_dir(&path).expect("reads").flatten();
    for entry in segments.filter(|entry| entry.file_name().to_string_lossy().ends_with("ndjson")) {
        let text = std::fs::read_to_string(entry.path()).expect("reads");
        let text = text.replace("http://127.0.0.1:9", &double.url);
        std::fs::write(entry.path(), text).expect("writes");
    }
    assert_eq!(machine.spooled()[0]["key_id"], "abcdefghijkl");
    machine.env.insert("CAIRN_API_KEY".to_owned(), other_key());
    assert_eq!(machine.flush().status.code(), Some(0));
    machine.env.remove("CAIRN_API_KEY");
    machine.run(&["login", "--key"], other_key().as_bytes());
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored(), Vec::<String>::new());
    // A third key of its own tenant may bring it once that is known of both.
    machine
        .env
        .insert("CAIRN_API_KEY".to_owned(), KEY.to_owned());
    assert_eq!(machine.run(&["whoami"], b"").status.code(), Some(0));
    let third = KEY.replace("abcdefghijkl", "zzzzzzzzzzzz");
    machine.env.insert("CAIRN_API_KEY".to_owned(), third);
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored().len(), 1);
    assert_eq!(
        double.count("/v1/me"),
        4,
        "once a key, and for each sign-in"
    );
}

#[test]
fn what_nobody_was_signed_in_for_goes_to_the_first_account_alone() {
    let double = two_tenants();
    let mut machine = Machine::new(&double.url);
    machine.env.remove("CAIRN_API_KEY");
    machine.hook("Stop", &machine.payload(json!({})));
    let signed_out = machine.flush();
    assert_eq!(signed_out.status.code(), Some(3));
    assert!(
        stderr(&signed_out).contains("cairn login"),
        "{signed_out:?}"
    );
    machine
        .env
        .insert("CAIRN_API_KEY".to_owned(), KEY.to_owned());
    let busy = vec![("Retry-After", "3600")];
    double.script([Reply::Status(503, busy, String::new())]);
    assert_eq!(machine.flush().status.code(), Some(4));
    double.script([Reply::Accept]);
    machine.env.insert("CAIRN_API_KEY".to_owned(), other_key());
    assert_eq!(machine.flush().status.code(), Some(0));
    assert_eq!(double.stored(), Vec::<String>::new());
}
