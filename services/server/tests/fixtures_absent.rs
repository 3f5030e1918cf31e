//! What the conformance suite calls by name is for tests: no usual build has it, and no release can.

use std::process::Command;

#[cfg(not(feature = "fixtures"))]
#[test]
fn the_fixtures_are_in_no_usual_build() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_cairn-server")).expect("it is built");
    let program = String::from_utf8_lossy(&program);
    assert!(program.contains("mem_search"), "names of tools can be seen");
    for name in [
        "test_simple_text",
        "test://static-text",
        "test_simple_prompt",
    ] {
        assert!(!program.contains(name), "{name}");
    }
}

#[test]
fn nothing_asks_for_the_fixtures_and_a_release_refuses_them() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut named = 0;
    for package in metadata["packages"].as_array().expect("packages") {
        for (feature, enables) in package["features"].as_object().expect("features") {
            named += usize::from(feature == "fixtures");
            assert!(!enables.to_string().contains("fixtures"), "{feature}");
        }
        assert!(!package["dependencies"].to_string().contains("fixtures"));
    }
    assert_eq!(
        named, 1,
        "there is one such feature, and nothing enables it"
    );
    let source = include_str!("../src/mcp/fixtures/mod.rs");
    assert!(source.contains("#[cfg(not(debug_assertions))]\ncompile_error!"));
}
