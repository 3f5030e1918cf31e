//! The shape of the repository, held by a test: which crate may see which, how long a file may
//! get, how it opens, where the clock and the environment are read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Lines of code in a file, without its tests.
const MOST_LINES: usize = 500;

struct Rule {
    package: &'static str,
    /// Our crates that it may depend on.
    ours: &'static [&'static str],
    /// Crates of others that it must never see.
    never: &'static [&'static str],
}

/// The table of `services/README.md`. Dependencies for tests alone are free, but for our crates.
const RULES: [Rule; 7] = [
    Rule {
        package: "cairn-domain",
        ours: &[],
        never: &[
            "axum", "clap", "config", "nix", "rand", "redis", "reqwest", "rmcp", "sqlx", "tokio",
            "tracing",
        ],
    },
    Rule {
        package: "cairn-wire",
        ours: &["cairn-domain"],
        never: &["axum", "redis", "reqwest", "sqlx", "tokio"],
    },
    Rule {
        package: "cairn-outline",
        ours: &[],
        never: &["axum", "redis", "reqwest", "sqlx", "tokio"],
    },
    Rule {
        package: "cairn-store",
        ours: &["cairn-domain"],
        never: &["axum", "reqwest", "rmcp", "utoipa"],
    },
    Rule {
        package: "cairn-server",
        ours: &["cairn-domain", "cairn-store", "cairn-wire"],
        never: &["redis", "sqlx"],
    },
    Rule {
        package: "cairn-client",
        ours: &["cairn-outline", "cairn-wire"],
        never: &["axum", "redis", "sqlx"],
    },
    Rule {
        package: "cairn-loadtest",
        ours: &["cairn-wire"],
        never: &["redis", "sqlx"],
    },
];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
}

/// Each of our packages with the packages its manifest names: `(name, for tests alone)`.
fn manifests() -> BTreeMap<String, Vec<(String, bool)>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    packages
        .iter()
        .map(|package| {
            let named = package["dependencies"].as_array().expect("dependencies");
            let named = named
                .iter()
                .map(|d| (text(&d["name"]), d["kind"] == "dev"))
                .collect();
            (text(&package["name"]), named)
        })
        .collect()
}

#[test]
fn crates_see_only_what_the_table_allows() {
    let manifests = manifests();
    let packages: Vec<_> = manifests.keys().map(String::as_str).collect();
    let mut ruled: Vec<_> = RULES.iter().map(|rule| rule.package).collect();
    ruled.sort_unstable();
    assert_eq!(packages, ruled, "every package has a rule");
    let mut wrong = Vec::new();
    for rule in &RULES {
        for (name, for_tests) in &manifests[rule.package] {
            let name = name.as_str();
            let is_ours = ruled.contains(&name) && name != rule.package;
            if (is_ours && !rule.ours.contains(&name)) || (!for_tests && rule.never.contains(&name))
            {
                wrong.push(format!("{} must not depend on {name}", rule.package));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

struct Source {
    /// Relative to the repository.
    path: String,
    text: String,
}

impl Source {
    fn is_for_tests(&self) -> bool {
        self.path.contains("/tests/")
            || self.path.ends_with("_tests.rs")
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("/test_util.rs")
            || self.path.contains("/test_util/")
    }

    /// What stands above the tests inside the file.
    fn code(&self) -> impl Iterator<Item = &str> {
        let starts_tests = |line: &str| line.starts_with("#[cfg(") && line.contains("test");
        let mut lines = self.text.lines().peekable();
        std::iter::from_fn(move || {
            let line = lines.next()?;
            let next = lines.peek().copied().unwrap_or_default();
            let is_over = starts_tests(line) && next.starts_with("mod ") && next.ends_with('{');
            (!is_over).then_some(line)
        })
    }
}

fn sources() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    for top in ["services", "loadtest"] {
        collect(&root, &root.join(top), &mut found);
    }
    assert!(found.len() > 50, "the sources are found");
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        // Sample sources of the outline tests are data.
        if path.is_dir() && name != "fixtures" && name != "target" {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let relative = path.strip_prefix(root).expect("below the repository");
            found.push(Source {
                path: relative.to_str().expect("UTF-8").to_owned(),
                text: fs::read_to_string(&path).expect("readable"),
            });
        }
    }
}

#[test]
fn files_are_short() {
    let long: Vec<_> = sources()
        .iter()
        .filter(|source| !source.is_for_tests())
        .map(|source| (source.path.clone(), source.code().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .collect();
    assert!(
        long.is_empty(),
        "over {MOST_LINES} lines without tests: {long:?}"
    );
}

#[test]
fn files_open_with_what_they_are_for() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|source| !source.path.ends_with("_tests.rs"))
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| source.path)
        .collect();
    assert!(
        silent.is_empty(),
        "without //! in the first line: {silent:#?}"
    );
}

/// Texts that may stand in few files only: a second place would be a second source of truth.
const PLACES: [(&str, &[&str]); 5] = [
    // The server's time comes from its clock, so that tests can set it; the programs that call it
    // have no other.
    (
        "Utc::now(",
        &[
            "services/server/src/app.rs",
            "services/client/",
            "loadtest/",
        ],
    ),
    ("SystemTime::now(", &["services/client/", "loadtest/"]),
    ("Utc::now)", &["services/server/src/app.rs"]),
    (
        "env::var",
        &[
            "services/client/src/config/",
            "services/server/src/config.rs",
            "loadtest/",
        ],
    ),
    // A tenant is named by a verified credential or by a row, never by what a caller says.
    (
        "TenantId::verified(",
        &["services/domain/src/ids.rs", "services/store/src/system_tx"],
    ),
];

#[test]
fn clock_environment_and_proof_have_their_places() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !source.is_for_tests()) {
        for (text, places) in PLACES {
            let is_allowed = places.iter().any(|place| source.path.starts_with(place));
            if !is_allowed && source.code().any(|line| line.contains(text)) {
                wrong.push(format!("{}: {text}", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_door_and_its_action_speak_a_noun_of_the_wire() {
    let root = root();
    let nouns = |folder: &str| -> Vec<String> {
        let files = fs::read_dir(root.join(folder)).expect("a folder").flatten();
        let names = files.filter_map(|file| file.path().file_stem()?.to_str().map(str::to_owned));
        names.filter(|name| name != "mod").collect()
    };
    let (actions, wire) = (
        nouns("services/server/src/actions"),
        nouns("services/wire/src"),
    );
    let shared: Vec<_> = nouns("services/server/src/http")
        .into_iter()
        .filter(|noun| actions.contains(noun))
        .collect();
    assert!(!shared.is_empty(), "there are doors");
    for noun in shared {
        assert!(
            wire.contains(&noun),
            "{noun} has no file in services/wire/src"
        );
    }
}

#[test]
fn no_test_is_switched_off() {
    let mark = concat!("#[", "ignore");
    let off: Vec<_> = sources()
        .into_iter()
        .filter(|source| source.text.contains(mark))
        .map(|source| source.path)
        .collect();
    assert!(off.is_empty(), "{off:?}");
}
