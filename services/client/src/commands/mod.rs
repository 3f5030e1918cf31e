//! Commands for people. Each prints plain text and ends with a [`Failure`] or none.

pub mod audit;
mod device;
pub mod export;
pub mod flush;
pub mod import;
pub mod key;
pub mod login;
pub mod member;
pub mod project;
pub mod record;
pub mod search;
pub mod show;
pub mod status;
pub mod work;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use cairn_wire::pages::Page;

use crate::account::{self, Account};
use crate::api::{self, Api};
use crate::config::{Dirs, Settings};
use crate::exit::Failure;
use crate::project::Project;
use crate::tokens;

/// How long a person waits for the service.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long a person waits for git to name a repository.
const GIT_PATIENCE: Duration = Duration::from_secs(20);

/// Items of one page where all are wanted: the most that the service gives.
const PAGE: u32 = 200;

/// What is told of something that would be kept of an excluded folder.
pub const EXCLUDED: &str = "Not stored: this folder is excluded.";

/// The client as it stands in a folder.
pub struct Client {
    dirs: Dirs,
    settings: Settings,
    folder: PathBuf,
    project: Project,
}

impl Client {
    /// The client in the current folder. What is wrong with its settings is said on stderr.
    ///
    /// # Errors
    /// [`Failure::Failed`] for somebody without a home folder.
    pub fn here() -> Result<Self, Failure> {
        let dirs = Dirs::from_env().ok_or_else(no_home)?;
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let project = Project::of(&folder, &dirs);
        let settings = Settings::load(&dirs, Some(&project.root));
        for warning in &settings.warnings {
            drop(writeln!(std::io::stderr(), "cairn: {warning}"));
        }
        Ok(Self {
            dirs,
            settings,
            folder,
            project,
        })
    }

    fn account(&self, service: &str) -> Option<Account> {
        account::find(&self.dirs, &self.settings, service)
    }

    /// Calls for a person who is signed in, with this folder's project as the current one.
    fn api(&self) -> Result<Api, Failure> {
        Ok((self.api_anywhere()?).within(&self.named_project()?.name.key))
    }

    /// Calls for a person who is signed in, wherever they are: what concerns the whole tenant.
    fn api_anywhere(&self) -> Result<Api, Failure> {
        let service = self.settings.service()?;
        let ready = tokens::ready(&self.dirs, &self.settings, service);
        let account = api::block_on(ready)?;
        if account.is_none() {
            return Err(Failure::NotSignedIn(format!(
                "nobody is signed in at {service}"
            )));
        }
        Api::new(service, account.as_ref(), DEADLINE)
    }

    /// Refuses what would be kept of an excluded folder.
    fn check_folder(&self) -> Result<(), Failure> {
        let globs = &self.settings.exclude;
        match (self.project).is_excluded(&self.folder, globs, &self.dirs.home) {
            true => Err(Failure::Failed(EXCLUDED.to_owned())),
            false => Ok(()),
        }
    }

    /// This folder's project, whatever must be asked for it.
    fn named_project(&self) -> Result<Project, Failure> {
        let project = self.project.clone().named(&self.dirs, GIT_PATIENCE);
        project.ok_or(Failure::Slow(GIT_PATIENCE))
    }
}

/// What somebody without a home folder reads: there is nowhere to keep anything.
pub fn no_home() -> Failure {
    Failure::Failed("HOME is not set".to_owned())
}

/// Prints text and a line end. A reader that has gone away has read enough.
fn say(text: &str) {
    drop(writeln!(std::io::stdout(), "{}", text.trim_end()));
}

/// Every item of a list, page after page.
async fn all_items<T: serde::de::DeserializeOwned>(
    api: &Api,
    path: &str,
) -> Result<Vec<T>, Failure> {
    let (mut items, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let after = cursor.map(|cursor| format!("&cursor={cursor}"));
        let address = format!("{path}?limit={PAGE}{}", after.unwrap_or_default());
        let page: Page<T> = api.json(api.get(&address)).await?;
        items.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(items);
        }
    }
}
