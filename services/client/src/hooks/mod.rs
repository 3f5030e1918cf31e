//! Hooks: what an agent host calls at each event. A hook never disturbs the host: it ends with
//! 0, quickly, with at most one line on stderr.
//!
//! Recording comes first and needs no network; only a session start then asks the service.

mod capture;
mod direct;
mod flusher;
mod session_start;

pub use flusher::{detach, start as start_flusher};

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cairn_wire::domain::json_text;

use crate::account;
use crate::complaint;
use crate::config::{Dirs, HostEnv, Settings};
use crate::hosts::{Event, Host, Report};
use crate::project::Project;
use crate::spool::{Pace, Record, Spool, Trouble};
use crate::state;
use crate::stdin::Input;

/// Runs one hook call. `args` are the words after `hook`.
pub fn run(args: &[String]) {
    let begun = Instant::now();
    // The payload is read whatever becomes of it: its writer must meet no broken pipe.
    let input = Input::start();
    let payload = input.value();
    match (args, payload) {
        ([name, event, ..], Some(json)) => match Host::find(name) {
            Some(host) => {
                let json = match json.contains("\\u") {
                    true => json_text::mend_escapes(&json),
                    false => Cow::Borrowed(json.as_str()),
                };
                on_payload(host, event, &json, begun);
            }
            None => complain(&format!("cairn hook: unknown host {name:?}")),
        },
        (_, Some(_)) => complain("cairn hook: say which host and event"),
        (_, None) => complain("cairn hook: the payload is cut off; nothing was recorded"),
    }
    input.drain();
}

fn on_payload(host: Host, event: &str, json: &str, begun: Instant) {
    match host.parse(event, json) {
        Ok(Some(report)) => match Dirs::from_env() {
            Some(dirs) => Hook::of(host, report, dirs, begun).run(),
            None => complain("cairn hook: HOME is not set; nothing was recorded"),
        },
        // An event that is not recorded, or one outside any session.
        Ok(None) => {}
        Err(_) => complain("cairn hook: the payload is no JSON object; nothing was recorded"),
    }
}

/// One report, and where it came from.
struct Hook {
    host: Host,
    report: Report,
    dirs: Dirs,
    folder: PathBuf,
    project: Project,
    settings: Settings,
    /// When the host called.
    begun: Instant,
}

impl Hook {
    fn of(host: Host, report: Report, dirs: Dirs, begun: Instant) -> Self {
        let (folder, project) = locate(&report, &dirs);
        let settings = Settings::load(&dirs, Some(&project.root));
        Self {
            host,
            report,
            dirs,
            folder,
            project,
            settings,
            begun,
        }
    }

    fn run(&self) {
        if let Some(warning) = self.settings.warnings.first() {
            self.tell_once("settings", &format!("cairn: {warning}"));
        }
        let globs = &self.settings.exclude;
        if (self.project).is_excluded(&self.folder, globs, &self.dirs.home) {
            return;
        }
        let Some(service) = self.settings.url.as_deref() else {
            self.tell_once(
                "service",
                "cairn: no service is set; run: cairn login --url",
            );
            return;
        };
        let account = account::find(&self.dirs, &self.settings, service);
        let pace = Pace::load(
            &self.dirs,
            service,
            account.as_ref().map(account::Account::identity),
        );
        if self.settings.capture {
            self.record(service, account.as_ref(), &pace);
        }
        if let Event::SessionStart { source, .. } = &self.report.event {
            session_start::answer(self, service, account.as_ref(), source.as_deref(), &pace);
        } else if pace.trouble == Some(Trouble::SignIn) || account.is_none() {
            self.tell_once("sign-in", "cairn: not signed in; run: cairn login");
        }
    }

    /// Spools what is to be recorded, then has somebody send it.
    fn record(&self, service: &str, account: Option<&account::Account>, pace: &Pace) {
        let spool = self.spool();
        if let Some(item) = capture::item(self) {
            let mut record = Record::new(item, service, account);
            record.checkout_root = self.project.unnamed.clone();
            if let Err(e) = spool.append(&record)
                && !direct::send(&self.dirs, service, account, record)
            {
                self.tell_once("spool", &format!("cairn: cannot write the spool: {e}"));
            }
        }
        // A host that ends gives its hooks no time; the next run of the client sends the rest.
        let ends = matches!(self.report.event, Event::SessionEnd { .. });
        if !ends && account.is_some() && pace.wait(chrono::Utc::now()).is_zero() {
            flusher::start(&spool, &self.dirs);
        }
    }

    fn spool(&self) -> Spool {
        Spool::of(&self.dirs, &self.settings)
    }

    /// The session as marks name it.
    fn session(&self) -> String {
        format!("{}\0{}", self.report.host, self.report.session)
    }

    /// Says a line on stderr unless it was said in this session. A hook that has said something
    /// else leaves it to the next one.
    fn tell_once(&self, what: &str, line: &str) {
        if complaint::is_free() && state::first_time(&self.dirs, &self.session(), what) {
            complain(line);
        }
    }
}

/// The folder of a report and its project. An agent that steps out of its project into a plain
/// folder still works for the project in which the host was started.
fn locate(report: &Report, dirs: &Dirs) -> (PathBuf, Project) {
    let started = HostEnv::from_env().project_dir;
    let cwd = report.cwd.as_deref().map(PathBuf::from);
    let here = || std::env::current_dir().unwrap_or_else(|_| dirs.home.clone());
    let folder = cwd.or_else(|| started.clone()).unwrap_or_else(here);
    let project = Project::of(&folder, dirs);
    match started {
        Some(started) if project.is_plain() && !folder.starts_with(&started) => {
            let project = Project::of(&started, dirs);
            (folder, project)
        }
        _ => (folder, project),
    }
}

/// Folder from which a host's relative paths start.
fn base(hook: &Hook) -> &Path {
    &hook.folder
}

fn complain(line: &str) {
    complaint::say_once(line);
}
