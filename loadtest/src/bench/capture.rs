//! Capture: the statements that the service really sent, as Postgres logged them, made into
//! scripts for `pgbench`. So the raw limit runs the same SQL with the same values, and nothing
//! has to be kept in step by hand.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, bail};
use serde::Deserialize;

/// The role of the service; what others run is not captured.
pub const ROLE: &str = "cairn_app";
/// Stands in the log before the statements of an operation.
const MARK: &str = "cairn-bench-mark-";

/// A line of Postgres' JSON log, as far as it matters here.
#[derive(Deserialize)]
struct LogLine {
    #[serde(default)]
    pid: i64,
    #[serde(default)]
    user: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    detail: String,
}

/// A statement with the values it was run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its text, with `$1`, `$2`, …
    pub text: String,
    /// Its values as literals without quotes; `None` is null.
    pub values: Vec<Option<String>>,
}

/// What must differ in each run of a captured batch of observations.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    /// The batch's event ids, in its order.
    pub event_ids: Vec<String>,
    /// The numbers that its records got.
    pub numbers: Vec<i64>,
    /// The positions that they got.
    pub positions: Vec<i64>,
}

/// The statement that marks the beginning of operation `index`.
#[must_use]
pub fn mark(index: usize) -> String {
    format!("select '{MARK}{index}'")
}

/// Values that scripts bind by name, so that Postgres plans for pgbench as it does for the
/// service: values in the text would be known to the planner, once and for ever.
#[derive(Debug, Default)]
pub struct Variables {
    names: BTreeMap<String, String>,
}

/// Bytes up to which a value is bound: variables come on pgbench's command line.
const BOUND_BYTES: usize = 2_000;

impl Variables {
    /// How a script names a value.
    fn argument(&mut self, value: &str) -> String {
        // pgbench takes no empty variable.
        if value.is_empty() || value.len() > BOUND_BYTES {
            return literal(value);
        }
        let next = format!("value_{}", self.names.len());
        format!(":{}", self.names.entry(value.to_owned()).or_insert(next))
    }

    /// `name=value` of each.
    pub fn definitions(&self) -> impl Iterator<Item = String> {
        self.names
            .iter()
            .map(|(value, name)| format!("{name}={value}"))
    }
}

/// How the names of transactions begin that are the service's own upkeep, whoever calls.
const UPKEEP: [&str; 4] = ["upkeep.", "expiry.", "usage.count_", "auth.touch_"];

/// What one connection sent from one `BEGIN` to the next.
struct Transaction {
    operation: usize,
    is_upkeep: bool,
    statements: Vec<Statement>,
}

/// The statements of each of `count` operations: its transactions in the order in which they
/// began, each whole. Upkeep belongs to no operation: it names itself, or no tenant.
///
/// # Errors
/// If the log cannot be read, or holds nothing for an operation.
pub fn statements(log: &str, count: usize) -> anyhow::Result<Vec<Vec<Statement>>> {
    let mut transactions: Vec<Transaction> = Vec::new();
    let (mut current, mut last_of) = (None, BTreeMap::new());
    for line in log.lines() {
        let line: LogLine = serde_json::from_str(line).context("a line of Postgres' log")?;
        if let Some((_, rest)) = line.message.split_once(MARK) {
            current = rest.trim_end_matches('\'').parse::<usize>().ok();
        } else if line.user == ROLE
            && let Some(operation) = current.filter(|index| *index < count)
            && let Some(text) = statement_text(&line.message)
        {
            if text.starts_with("BEGIN") {
                last_of.insert(line.pid, transactions.len());
                transactions.push(Transaction {
                    operation,
                    is_upkeep: is_upkeep(text),
                    statements: Vec::new(),
                });
            }
            // The end of what began before the first operation has no beginning here.
            if let Some(index) = last_of.get(&line.pid) {
                transactions[*index].statements.push(Statement {
                    text: text.to_owned(),
                    values: values(&line.detail)?,
                });
            }
        }
    }
    let mut operations: Vec<Vec<Statement>> = vec![Vec::new(); count];
    for one in transactions.into_iter().filter(|one| !one.is_upkeep) {
        operations[one.operation].extend(one.statements);
    }
    if let Some(index) = operations.iter().position(Vec::is_empty) {
        bail!("operation {index} sent no statement");
    }
    Ok(operations)
}

/// Whether a transaction that begins so is no caller's.
fn is_upkeep(begin: &str) -> bool {
    let name = begin.split_once("/* ").map_or("", |(_, rest)| rest);
    !begin.contains("app.tenant") || UPKEEP.iter().any(|upkeep| name.starts_with(upkeep))
}

/// The text of a logged statement, sent in one message or prepared.
fn statement_text(message: &str) -> Option<&str> {
    if let Some(text) = message.strip_prefix("statement: ") {
        return Some(text);
    }
    let (_name, text) = message.strip_prefix("execute ")?.split_once(": ")?;
    Some(text)
}

/// The values of `parameters: $1 = 'a', $2 = NULL`.
fn values(detail: &str) -> anyhow::Result<Vec<Option<String>>> {
    let mut values = Vec::new();
    let Some((_, mut rest)) = detail.split_once("arameters: ") else {
        return Ok(values);
    };
    while let Some((name, after)) = rest.split_once(" = ") {
        if name.trim_start_matches(", ") != format!("${}", values.len() + 1) {
            bail!("unexpected parameter {name:?}");
        }
        if let Some(after) = after.strip_prefix("NULL") {
            values.push(None);
            rest = after;
            continue;
        }
        let quoted = after.strip_prefix('\'').context("a value without quotes")?;
        let end = closing_quote(quoted).context("a value without an end")?;
        values.push(Some(quoted[..end].replace("''", "'")));
        rest = &quoted[end + 1..];
    }
    Ok(values)
}

/// Where a quoted value ends: at the first quote that is not doubled.
fn closing_quote(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text[at..].find('\'')?;
        if !text[at + 1..].starts_with('\'') {
            return Some(at);
        }
        at += 2;
    }
}

/// A script that runs the statements as one client would, in the same transactions.
#[must_use]
pub fn script(
    statements: &[Statement],
    fresh: Option<&Fresh>,
    variables: &mut Variables,
) -> String {
    let mut script = String::new();
    if let Some(fresh) = fresh {
        let _ = writeln!(script, "{}", new_event_ids(fresh.event_ids.len()));
    }
    let mut open = false;
    for statement in statements {
        let verb = statement
            .text
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_lowercase();
        match verb.trim_end_matches(';') {
            "begin" => {
                script.push_str(&begin(&statement.text));
                open = true;
            }
            // A rollback that an operation before left to be sent later.
            "commit" | "rollback" if !open => {}
            verb => {
                open &= !matches!(verb, "commit") && !is_whole_rollback(&statement.text);
                script.push_str(&render(statement, fresh, variables));
            }
        }
    }
    if open {
        script.push_str("commit;\n");
    }
    script
}

fn is_whole_rollback(text: &str) -> bool {
    text.trim()
        .trim_end_matches(';')
        .eq_ignore_ascii_case("rollback")
}

/// `BEGIN; SET LOCAL a = 'b'; …` is one message of the service. pgbench prepares each statement
/// by itself, so the settings become one statement.
fn begin(text: &str) -> String {
    let mut script = String::from("begin;\n");
    let settings = settings(text);
    let settings = settings
        .iter()
        .map(|(name, value)| format!("set_config('{name}', '{value}', true)"));
    let settings: Vec<String> = settings.collect();
    if !settings.is_empty() {
        let _ = writeln!(script, "select {};", settings.join(", "));
    }
    script
}

/// The settings of a transaction, by the message that begins it.
#[must_use]
pub fn settings(text: &str) -> Vec<(&str, &str)> {
    let parts = text.split(';').map(str::trim);
    let settings = parts.filter_map(|part| {
        let words = part.get(..10)?.eq_ignore_ascii_case("set local ");
        let (name, value) = words.then(|| part[10..].split_once('='))??;
        Some((name.trim(), value.trim().trim_matches('\'')))
    });
    settings.collect()
}

fn render(statement: &Statement, fresh: Option<&Fresh>, variables: &mut Variables) -> String {
    let mut text = String::new();
    let mut rest = statement.text.trim().trim_end_matches(';');
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let index = after[..digits]
            .parse::<usize>()
            .ok()
            .and_then(|n| n.checked_sub(1));
        match index.and_then(|index| statement.values.get(index)) {
            Some(value) => text.push_str(&argument(value.as_deref(), fresh, variables)),
            None => text.push_str(&rest[at..=at + digits]),
        }
        rest = &after[digits..];
    }
    text.push_str(rest);
    // Numbers are taken from the counters in each run, and used below.
    let takes = fresh.is_some() && text.contains("update tenant_counters");
    text.push_str(if takes { "\n\\gset\n" } else { ";\n" });
    text
}

fn argument(value: Option<&str>, fresh: Option<&Fresh>, variables: &mut Variables) -> String {
    let Some(value) = value else {
        return "null".to_owned();
    };
    if let Some(fresh) = fresh {
        if value == array(&fresh.event_ids) {
            return ":ids".to_owned();
        }
        if value == array(&fresh.numbers) {
            return run_up_to("observation", fresh.numbers.len());
        }
        if value == array(&fresh.positions) {
            return run_up_to("position", fresh.positions.len());
        }
    }
    variables.argument(value)
}

/// The `count` numbers up to the one that a variable holds.
fn run_up_to(variable: &str, count: usize) -> String {
    let last = format!("(:{variable})::bigint");
    format!(
        "(select array_agg(n) from generate_series({last} - {}, {last}) n)",
        count.saturating_sub(1)
    )
}

/// Event ids that grow with time, as the client's do.
fn new_event_ids(count: usize) -> String {
    format!(
        "select array_agg((lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), \
         12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid)::text \
         as ids from generate_series(1, {count})\n\\gset"
    )
}

fn array<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    format!("{{{}}}", items.join(","))
}

/// A value as a literal. pgbench takes `:name` for a variable, even in quotes.
fn literal(value: &str) -> String {
    let quoted = value.replace('\'', "''");
    let mut pairs = value.chars().zip(value.chars().skip(1));
    if pairs.any(|(colon, next)| colon == ':' && !next.is_ascii_digit()) {
        return format!("E'{}'", quoted.replace('\\', "\\\\").replace(':', "\\x3a"));
    }
    format!("'{quoted}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two operations; upkeep runs on other connections at the same time.
    const LOG: &str = concat!(
        r#"{"user":"cairn_app","message":"statement: COMMIT"}"#,
        "\n",
        r#"{"user":"postgres","message":"statement: select 'cairn-bench-mark-0'"}"#,
        "\n",
        r#"{"user":"cairn_app","message":"statement: ROLLBACK"}"#,
        "\n",
        r#"{"user":"cairn_app","message":"statement: BEGIN /* search.named */; SET LOCAL app.tenant = '3'; SET LOCAL statement_timeout = 5000"}"#,
        "\n",
        r#"{"pid":7,"user":"cairn_app","message":"statement: BEGIN /* usage.count_requests */; SET LOCAL app.tenant = '4'"}"#,
        "\n",
        r#"{"pid":8,"user":"cairn_app","message":"statement: BEGIN /* context.place */; SET LOCAL app.tenant = '3'"}"#,
        "\n",
        r#"{"pid":7,"user":"cairn_app","message":"execute sqlx_s_9: insert into usage_days"}"#,
        "\n",
        r#"{"user":"cairn_app","message":"execute sqlx_s_1: select $2::text from r where t = $1 and n is $3","detail":"parameters: $1 = '3', $2 = 'it''s name:x', $3 = NULL"}"#,
        "\n",
        r#"{"pid":7,"user":"cairn_app","message":"statement: COMMIT"}"#,
        "\n",
        r#"{"user":"cairn_app","message":"statement: COMMIT"}"#,
        "\n",
        r#"{"user":"postgres","message":"checkpoint starting"}"#,
        "\n",
        r#"{"user":"postgres","message":"statement: select 'cairn-bench-mark-1'"}"#,
        "\n",
        r#"{"pid":8,"user":"cairn_app","message":"statement: COMMIT"}"#,
        "\n",
        r#"{"pid":7,"user":"cairn_app","message":"statement: BEGIN /* jobs.take */; SET LOCAL statement_timeout = 5000"}"#,
        "\n",
        r#"{"pid":7,"user":"cairn_app","message":"execute sqlx_s_2: select system_upkeep()"}"#,
        "\n",
        r#"{"user":"cairn_app","message":"statement: BEGIN /* search.details */; SET LOCAL app.tenant = '3'"}"#,
        "\n",
        r#"{"user":"cairn_app","message":"execute <unnamed>: select 1"}"#,
    );

    #[test]
    fn an_operation_becomes_a_script() {
        let operations = statements(LOG, 2).expect("reads");
        let mut variables = Variables::default();
        assert_eq!(
            script(&operations[0], None, &mut variables),
            "begin;\nselect set_config('app.tenant', '3', true), \
             set_config('statement_timeout', '5000', true);\n\
             select :value_0::text from r where t = :value_1 and n is null;\nCOMMIT;\n\
             begin;\nselect set_config('app.tenant', '3', true);\nCOMMIT;\n"
        );
        assert_eq!(
            script(&operations[1], None, &mut variables),
            "begin;\nselect set_config('app.tenant', '3', true);\nselect 1;\ncommit;\n"
        );
        let definitions: Vec<String> = variables.definitions().collect();
        assert_eq!(definitions, ["value_1=3", "value_0=it's name:x"]);
        assert!(statements(LOG, 3).is_err(), "the third sent nothing");
    }

    #[test]
    fn a_batch_takes_new_ids_and_numbers_in_each_run() {
        let statement = |text: &str, values: &[&str]| Statement {
            text: text.to_owned(),
            values: values
                .iter()
                .map(|value| Some((*value).to_owned()))
                .collect(),
        };
        let fresh = Fresh {
            event_ids: vec!["a".to_owned(), "b".to_owned()],
            numbers: vec![7, 8],
            positions: vec![9, 10],
        };
        let batch = [
            statement("BEGIN", &[]),
            statement(
                "update tenant_counters set n = n + $1 returning observation, position",
                &["2"],
            ),
            statement(
                "insert into events select * from unnest($1::uuid[], $2::bigint[], $3::bigint[])",
                &["{a,b}", "{7,8}", "{9,10}"],
            ),
        ];
        let script = script(&batch, Some(&fresh), &mut Variables::default());
        assert!(
            script.contains("as ids from generate_series(1, 2)\n\\gset\n"),
            "{script}"
        );
        assert!(
            script.contains("n = n + :value_0 returning observation, position\n\\gset\n"),
            "{script}"
        );
        assert!(
            script.contains("unnest(:ids::uuid[], (select array_agg(n)"),
            "{script}"
        );
        assert!(script.contains("generate_series((:position)::bigint - 1, (:position)::bigint)"));
        assert!(script.ends_with("commit;\n"), "{script}");
    }

    #[test]
    fn odd_values_are_read_whole() {
        let read = values("Parameters: $1 = '{\"a, $2 = ''b''\"}', $2 = ''").expect("reads");
        assert_eq!(
            read,
            [Some("{\"a, $2 = 'b'\"}".to_owned()), Some(String::new())]
        );
        assert!(values("parameters: $1 = 'open").is_err());
        assert_eq!(literal("12:30 a\\b"), "'12:30 a\\b'");
        assert_eq!(literal("it's a\\b:c"), "E'it''s a\\\\b\\x3ac'");
    }
}
