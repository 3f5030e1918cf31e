//! Settings: environment over project file over user file over defaults (contract 19.2).
//!
//! The only folder that reads the environment. Credentials are not settings: see `account`.

mod context;
mod layers;

use std::fs;
use std::path::{Path, PathBuf};

use cairn_wire::context::ContextQuery;
use cairn_wire::domain::event::Visibility;
use cairn_wire::domain::{limits, redact};

use crate::files;
use layers::{Layers, parse_bool, parse_level, split, variable};

/// Tools whose calls say nothing worth keeping.
const SKIP_TOOLS: &str = "ListMcpResourcesTool,SlashCommand,Skill,TodoWrite,AskUserQuestion";

/// Bytes of records that may wait for the service.
const SPOOL_MAX: u64 = 512 * 1024 * 1024;

/// Settings that a project's file may not make: it comes with a checkout, from strangers.
const NEVER_FROM_PROJECT: &[&str] = &["url", "api_key", "autostart"];

/// Where the client keeps its files.
#[derive(Clone, Debug)]
pub struct Dirs {
    /// The person's home folder.
    pub home: PathBuf,
    /// Settings and credentials.
    pub config: PathBuf,
    /// Spool and set-aside records.
    pub data: PathBuf,
    /// What can be lost without harm: machine id, marks, log.
    pub state: PathBuf,
}

impl Dirs {
    /// The folders of this person, by the XDG rules; `None` for somebody without a home: a folder
    /// that everybody shares must not take its place.
    #[must_use]
    pub fn from_env() -> Option<Self> {
        let home = variable("HOME").map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute())?;
        let place = |name: &str, default: &str| {
            // XDG: a relative path is to be ignored.
            let given = variable(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute());
            given.unwrap_or_else(|| home.join(default)).join("cairn")
        };
        Some(Self {
            config: place("XDG_CONFIG_HOME", ".config"),
            data: place("XDG_DATA_HOME", ".local/share"),
            state: place("XDG_STATE_HOME", ".local/state"),
            home,
        })
    }
}

/// What an agent host says through the environment.
#[derive(Clone, Debug, Default)]
pub struct HostEnv {
    /// The folder in which the host was started.
    pub project_dir: Option<PathBuf>,
    /// The host's session.
    pub session: Option<String>,
}

impl HostEnv {
    /// What the host of this process says.
    #[must_use]
    pub fn from_env() -> Self {
        Self {
            project_dir: variable("CLAUDE_PROJECT_DIR").map(PathBuf::from),
            session: variable("CLAUDE_CODE_SESSION_ID"),
        }
    }
}

/// The reader's time zone as an IANA name, if it can be found out.
#[must_use]
pub fn time_zone() -> Option<String> {
    if let Some(zone) = variable("TZ") {
        return Some(zone.trim_start_matches(':').to_owned());
    }
    let link = fs::canonicalize("/etc/localtime").ok()?;
    let (_, zone) = link.to_str()?.split_once("/zoneinfo/")?;
    Some(zone.to_owned())
}

/// Whether this process can show its person a page: not over a network, where the browser would
/// open on the wrong machine, and not without a screen.
#[must_use]
pub fn has_display() -> bool {
    let is_remote = ["SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"]
        .iter()
        .any(|name| variable(name).is_some());
    let screens = ["DISPLAY", "WAYLAND_DISPLAY"];
    let has_screen =
        cfg!(target_os = "macos") || screens.iter().any(|name| variable(name).is_some());
    has_screen && !is_remote
}

/// The settings in force.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The service's address without a trailing slash; `None` if nobody named one.
    pub url: Option<String>,
    /// A key from the environment, which goes before a stored one.
    pub api_key: Option<String>,
    /// Whether hooks record anything.
    pub capture: bool,
    /// Who may read what is recorded.
    pub visibility: Visibility,
    /// Folders that send nothing, as globs.
    pub exclude: Vec<String>,
    /// Tools whose calls are not recorded.
    pub skip_tools: Vec<String>,
    /// The tools that hosts are shown: `core`, `legacy`, or names; `None` leaves it to the tenant.
    pub tools: Option<String>,
    /// UTF-16 code units that a session start may print, 4,000 to 10,000.
    pub context_limit: usize,
    /// What a session start asks for.
    pub context: ContextQuery,
    /// Bytes of records that may wait for the service.
    pub spool_max: u64,
    /// Whether ordinary events are logged, not failures alone.
    pub verbose: bool,
    /// What was wrong with the settings, a line each.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads the settings; `root` is the folder of the project whose file counts.
    #[must_use]
    pub fn load(dirs: &Dirs, root: Option<&Path>) -> Self {
        let mut layers = Layers::default();
        if let Some(root) = root {
            let path = root.join(".cairn/config.toml");
            let text = files::read_text(&path, files::SMALL, files::Links::Refuse);
            layers.project = layers.read(&path, text);
            layers
                .project
                .retain(|name, _| !NEVER_FROM_PROJECT.contains(&name));
        }
        let path = dirs.config.join("config.toml");
        layers.user = layers.read(&path, files::read_trusted(&path));
        layers.warnings.extend(crate::account::warning(dirs));
        // From all places: who adds a pattern in one must not lose those of the others.
        let left_out = redact::extend(&layers.all("redact_extra"));
        layers.warnings.extend(left_out);
        let url = layers.parsed("url", "an http or https address", |text| parse_url(&text));
        Self {
            url: url.or_else(|| crate::account::last_used(dirs)),
            // A key belongs in the environment or in the credentials file, never in settings.
            api_key: variable("CAIRN_API_KEY"),
            capture: layers
                .parsed("capture", "true or false", parse_bool)
                .unwrap_or(true),
            visibility: layers
                .parsed("visibility", "team or private", |text| {
                    Visibility::from_name(&text)
                })
                .unwrap_or_default(),
            exclude: layers.find("exclude").map(split).unwrap_or_default(),
            skip_tools: split(
                layers
                    .find("skip_tools")
                    .unwrap_or_else(|| SKIP_TOOLS.to_owned()),
            ),
            tools: layers.parsed("tools", "core, legacy, or names of tools", |text| {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_-, ".contains(c);
                text.chars().all(plain).then_some(text)
            }),
            context_limit: layers
                .parsed("context_limit", "4000 to 10000", |text| {
                    let range = limits::LEAST_CONTEXT_UNITS..=limits::CONTEXT_UNITS;
                    text.parse().ok().filter(|n| range.contains(n))
                })
                .unwrap_or(limits::CONTEXT_UNITS),
            context: context::read(&mut layers),
            spool_max: layers
                .parsed("spool_max", "a number of bytes", |text| text.parse().ok())
                .unwrap_or(SPOOL_MAX),
            verbose: layers
                .parsed("log", "error, warn, info, debug or trace", parse_level)
                .unwrap_or(false),
            warnings: layers.warnings,
        }
    }

    /// The service's address.
    ///
    /// # Errors
    /// A usage failure if nobody named one.
    pub fn service(&self) -> Result<&str, crate::exit::Failure> {
        self.url.as_deref().ok_or_else(|| {
            let hint = "no service is set: set CAIRN_URL, or sign in with: cairn login --url";
            crate::exit::Failure::Usage(hint.to_owned())
        })
    }
}

/// A service's address in its one spelling: no trailing slash. `None` if it is none.
#[must_use]
pub fn parse_url(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches('/');
    let url = reqwest::Url::parse(text).ok()?;
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    let web = matches!(url.scheme(), "http" | "https") && url.has_host();
    (web && plain && url.fragment().is_none()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_spelling() {
        assert_eq!(
            parse_url("https://m.example/ "),
            Some("https://m.example".to_owned())
        );
        for bad in [
            "m.example",
            "ftp://m.example",
            "https://u:p@m.example",
            "https://m/?a=1",
            "",
        ] {
            assert_eq!(parse_url(bad), None, "{bad}");
        }
    }
}
