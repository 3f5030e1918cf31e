//! The OpenAPI document in the repository is the one that the code makes.

use cairn_wire::Code;

#[test]
fn the_document_in_the_repository_is_up_to_date() {
    let made = cairn_server::http::document()
        .to_pretty_json()
        .expect("serialises");
    let kept = include_str!("../../../../openapi/cairn.v1.json");
    assert!(
        made.trim() == kept.trim(),
        "openapi/cairn.v1.json is old; run ./dev openapi"
    );
}

#[test]
fn the_document_is_openapi_3_1_and_names_every_code() {
    let made = serde_json::to_value(cairn_server::http::document()).expect("serialises");
    assert!(
        made["openapi"]
            .as_str()
            .expect("a version")
            .starts_with("3.1")
    );
    let codes = made["components"]["schemas"]["Code"]["enum"]
        .as_array()
        .expect("codes");
    let codes: Vec<&str> = codes.iter().filter_map(serde_json::Value::as_str).collect();
    assert_eq!(
        codes,
        Code::ALL.iter().map(|code| code.name()).collect::<Vec<_>>()
    );
}
