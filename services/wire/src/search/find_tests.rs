use cairn_domain::limits;
use serde_json::json;

use super::*;

fn pairs(given: &[(&str, &str)]) -> Pairs {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Pairs(given.iter().map(owned).collect())
}

fn read(given: &[(&str, &str)]) -> FindAsk {
    FindAsk::read(&pairs(given)).unwrap_or_else(|refused| panic!("{given:?}: {refused:?}"))
}

#[test]
fn a_search_has_its_defaults() {
    let ask = read(&[("query", " pool leak ")]);
    assert_eq!(ask.query.as_deref(), Some("pool leak"));
    assert_eq!((ask.limit, ask.offset, ask.form), (50, 0, None));
    assert_eq!((ask.order, ask.full), (Order::Relevance, false));
    assert!(ask.filter.is_empty() && ask.projects.is_empty());
    let ask = read(&[("author", "me")]);
    assert_eq!((ask.query, ask.order), (None, Order::DateDescending));
    let ask = read(&[("author", "me"), ("orderBy", "relevance")]);
    assert_eq!(ask.order, Order::DateDescending);
    let tool = FindAsk::from_arguments(json!({"query": "pool"})).expect("read");
    assert_eq!((tool.limit, tool.form), (20, Some(Form::Table)));
}

#[test]
fn each_door_and_the_names_of_others_say_the_same() {
    let ours = read(&[
        ("query", "x"),
        ("project", "a"),
        ("project", "b"),
        ("kind", "summary"),
        ("type", "bugfix,feature"),
        ("concept", "gotcha"),
        ("file", "src\\net\\"),
        ("from", "2026-10-10"),
        ("to", "2026-10-11"),
        ("order", "date_asc"),
    ]);
    let theirs = read(&[
        ("query", "x"),
        ("projects", "a, b"),
        ("type", "sessions"),
        ("obs_type", "feature,bugfix"),
        ("concepts", "gotcha"),
        ("filePath", "./src/net"),
        ("dateStart", "2026-10-10"),
        ("date_to", "2026-10-11"),
        ("orderBy", "date_asc"),
        ("unknown", "ignored"),
    ]);
    assert_eq!(theirs, ours);
    let body = json!({"query": "x", "projects": ["a", "b"], "kind": ["summary"],
        "type": ["bugfix", "feature"], "concepts": "gotcha", "files": ["src/net"],
        "from": "2026-10-10", "to": "2026-10-11", "orderBy": "date_asc", "limit": 50,
        "author": null, "unknown": "ignored"});
    assert_eq!(FindAsk::from_body(body), Ok(ours.clone()));
    let arguments = json!({"query": "x", "project": "a", "type": "[\"sessions\"]",
        "obs_type": "bugfix,feature", "concepts": ["gotcha"], "files": "src/net",
        "dateStart": "2026-10-10", "dateEnd": "2026-10-11", "orderBy": "date_asc",
        "limit": "50", "format": "list", "detail": "full"});
    let tool = FindAsk::from_arguments(arguments).expect("read");
    let wanted = FindAsk {
        projects: vec!["a".to_owned()],
        form: Some(Form::List),
        full: true,
        ..ours
    };
    assert_eq!(tool, wanted);
}

#[test]
fn tool_uses_are_asked_for_alone() {
    let ask = read(&[("kind", "tool_use")]);
    assert!(ask.tool_uses && ask.filter.is_empty());
    let text = [("kind", "tool_use"), ("format", "list")];
    FindAsk::read(&pairs(&text)).expect_err("no text");
}

#[test]
fn one_of_a_list_may_hold_a_comma() {
    let by_comma = read(&[("files", "a.ts, b.ts")]);
    assert_eq!(by_comma.filter.files, ["a.ts", "b.ts"]);
    let body = FindAsk::from_body(json!({"files": ["a, b.ts"], "projects": ["c,d"]}));
    let body = body.expect("read");
    assert_eq!(
        (body.filter.files, body.projects),
        (vec!["a, b.ts".to_owned()], vec!["c,d".to_owned()])
    );
}

#[test]
fn nothing_in_particular_is_refused() {
    for given in [&[][..], &[("query", " ")], &[("limit", "5"), ("tz", "UTC")]] {
        let refused = FindAsk::read(&pairs(given));
        assert_eq!(refused, Err(Rejection::QueryOrFilterRequired), "{given:?}");
    }
    let refused = FindAsk::from_arguments(json!({"orderBy": "date_asc"}));
    assert_eq!(refused, Err(Rejection::QueryOrFilterRequired));
}

#[test]
fn a_filter_that_names_nothing_widens_nothing() {
    for name in ["file", "kind", "type", "concept", "files"] {
        let value = if name == "file" { "/" } else { "," };
        let refused = FindAsk::read(&pairs(&[("query", "pool"), (name, value)]));
        assert!(
            matches!(&refused, Err(Rejection::InvalidField { pointer, .. }) if pointer == &format!("/{name}")),
            "{name}: {refused:?}"
        );
    }
}

#[test]
fn a_parameter_of_no_meaning_is_named() {
    let long = "x".repeat(limits::QUERY_UNITS + 1);
    let wide = "\u{4e00}".repeat(400);
    for (name, value) in [
        ("query", long.as_str()),
        ("query", &wide),
        ("kind", "poem"),
        ("kind", "tool_use,prompt"),
        ("type", "poem"),
        ("obs_type", "sessions"),
        ("concepts", "poem"),
        ("date_from", "soon"),
        ("dateEnd", "soon"),
        ("orderBy", "loudest"),
        ("order", "loudest"),
        ("limit", "201"),
        ("offset", "10001"),
        ("offset", "-1"),
        ("format", "xml"),
        ("detail", "some"),
    ] {
        let given = [("session", "s"), (name, value)];
        match FindAsk::read(&pairs(&given)) {
            Err(Rejection::InvalidField { pointer, .. }) => assert_eq!(pointer, format!("/{name}")),
            other => panic!("{name}: {other:?}"),
        }
    }
    FindAsk::read(&pairs(&[("query", "x"), ("cursor", "c"), ("offset", "1")])).expect_err("both");
    for body in [json!([]), json!({"query": {}}), json!({"files": [["a"]]})] {
        FindAsk::from_body(body).expect_err("refused");
    }
}

#[test]
fn c050_arguments_are_refused_by_name() {
    for (arguments, says) in [
        (
            json!({"query": "x", "limit": 101}),
            "limit: a whole number from 1 to 100.",
        ),
        (
            json!({"query": "x", "limit": "many"}),
            "limit: a whole number from 1 to 100.",
        ),
        (
            json!({"query": "x", "offset": 10_001}),
            "offset: a whole number from 0 to 10000.",
        ),
        (json!({"query": 7}), "query: a text."),
        (
            json!({"concepts": "[\"gotcha\""}),
            "concepts: a list of texts.",
        ),
        (json!({"files": [{}]}), "files: a list of texts."),
        (
            json!({"query": "x", "format": "json"}),
            "format: table or list.",
        ),
        (
            json!({"query": "x", "detail": "some"}),
            "detail: index or full.",
        ),
        (
            json!({"query": "x", "tenant": "y"}),
            "tenant: no argument of this tool.",
        ),
        (
            json!({"dateStart": "soon"}),
            "dateStart: a date like 2026-10-10 or a moment in RFC 3339.",
        ),
        (json!("x"), "arguments: an object."),
    ] {
        let refused = FindAsk::from_arguments(arguments).expect_err("refused");
        assert_eq!(
            (refused.code(), refused.to_string().as_str()),
            ("invalid_input", says)
        );
    }
}
