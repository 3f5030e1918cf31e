//! Layers of settings: environment over project file over user file.

use std::env;
use std::io;
use std::path::Path;

/// Settings by layers, and what was wrong with them.
#[derive(Default)]
pub(super) struct Layers {
    pub(super) project: toml::Table,
    pub(super) user: toml::Table,
    pub(super) warnings: Vec<String>,
}

impl Layers {
    /// A file's settings; a broken one is named and counts as empty.
    pub(super) fn read(&mut self, path: &Path, text: io::Result<String>) -> toml::Table {
        let text = match text {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return toml::Table::new(),
            Err(e) => {
                self.warnings
                    .push(format!("{}: {e}; using defaults", path.display()));
                return toml::Table::new();
            }
        };
        text.parse().unwrap_or_else(|_| {
            let path = path.display();
            self.warnings
                .push(format!("{path} is not valid TOML; using defaults"));
            toml::Table::new()
        })
    }

    /// The text of a setting, where any layer has one.
    pub(super) fn find(&self, name: &str) -> Option<String> {
        let from_env = variable(&format!("CAIRN_{}", name.to_uppercase()));
        let from_files = || {
            self.project
                .get(name)
                .or_else(|| self.user.get(name))
                .map(plain)
        };
        from_env.or_else(from_files)
    }

    /// What all layers say of a setting that is a list without commas, one item a line.
    pub(super) fn all(&self, name: &str) -> String {
        let from_env = variable(&format!("CAIRN_{}", name.to_uppercase()));
        let from_files = [&self.project, &self.user];
        let from_files = from_files.into_iter().filter_map(|table| table.get(name));
        let lines = from_files.map(|value| match value {
            toml::Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join("\n"),
            other => plain(other),
        });
        from_env
            .into_iter()
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// A setting's value; a bad one is named once and counts as unset.
    pub(super) fn parsed<T>(
        &mut self,
        name: &str,
        allowed: &str,
        parse: impl FnOnce(String) -> Option<T>,
    ) -> Option<T> {
        let value = parse(self.find(name)?.trim().to_owned());
        if value.is_none() {
            // The value itself is not repeated: it may be a secret in the wrong place.
            let name = name.to_uppercase();
            self.warnings
                .push(format!("CAIRN_{name} must be {allowed}; using the default"));
        }
        value
    }
}

pub(super) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

pub(super) fn split(list: String) -> Vec<String> {
    let items = list
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

pub(super) fn parse_bool(text: String) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

pub(super) fn parse_level(text: String) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "error" | "warn" => Some(false),
        "info" | "debug" | "trace" => Some(true),
        _ => None,
    }
}
