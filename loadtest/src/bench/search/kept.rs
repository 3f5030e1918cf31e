//! The loaded database, kept between runs under a name that says what is in it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use cairn_wire::domain::text::ANALYSER;

use super::corpus::{Corpus, Frequencies};
use super::loaded::Loaded;
use crate::bench::Machine;
use crate::bench::rig::POSTGRES_CONF;

/// How folders of loaded databases begin.
const PREFIX: &str = "search-";
/// What is written last of all, with the keys of tenants.
const LOADED: &str = "loaded.json";
/// Keys end some time; a database with old ones is loaded anew.
const MOST_AGE: Duration = Duration::from_secs(60 * 86_400);

/// The folder of a database.
pub struct Kept {
    folder: PathBuf,
}

impl Kept {
    /// The folder for a corpus under the migrations and analyser of this version. Those of other
    /// versions are removed: each takes gigabytes.
    ///
    /// # Errors
    /// If migrations cannot be read, or a folder cannot be made or removed.
    pub fn find(machine: &Machine, corpus: &Corpus, rows: usize) -> anyhow::Result<Self> {
        let name = format!("{PREFIX}{:016x}", fingerprint(machine, corpus, rows)?);
        fs::create_dir_all(&machine.keep).context("making the folder for what is kept")?;
        for entry in fs::read_dir(&machine.keep)?.flatten() {
            let other = entry.file_name();
            if other.to_string_lossy().starts_with(PREFIX) && *other != *name {
                fs::remove_dir_all(entry.path()).context("removing an older database")?;
            }
        }
        Ok(Self {
            folder: machine.keep.join(name),
        })
    }

    /// What is in it, if it is whole.
    pub fn loaded(&self) -> Option<Loaded> {
        let path = self.folder.join(LOADED);
        let age = fs::metadata(&path).ok()?.modified().ok()?.elapsed().ok()?;
        let is_fresh = age < MOST_AGE;
        is_fresh.then(|| serde_json::from_slice(&fs::read(path).ok()?).ok())?
    }

    /// Makes it empty.
    ///
    /// # Errors
    /// If something in it cannot be removed.
    pub fn clear(&self) -> anyhow::Result<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).context("removing half a database")?;
        }
        fs::create_dir_all(&self.folder).context("making the database's folder")?;
        // Postgres' user passes through; the keys inside are for us alone.
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// Says that it is whole.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn keep(&self, loaded: &Loaded) -> anyhow::Result<()> {
        let mut file = fs::OpenOptions::new();
        let file = file.write(true).create(true).truncate(true).mode(0o600);
        let file = file.open(self.folder.join(LOADED))?;
        serde_json::to_writer_pretty(file, loaded).context("writing what was loaded")
    }

    /// The folder of Postgres' data.
    pub fn data(&self) -> PathBuf {
        self.folder.join("postgres")
    }
}

/// Changes with whatever makes another database: the migrations, how Postgres is set up, how the
/// load is done, and what the generator and the analyser make of the first records.
fn fingerprint(machine: &Machine, corpus: &Corpus, rows: usize) -> anyhow::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut files = sql_files(&machine.migrations)?;
    files.push(machine.roles.clone());
    for file in files {
        let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        (file.file_name(), text).hash(&mut hasher);
    }
    (rows, corpus.tenants(), ANALYSER, POSTGRES_CONF).hash(&mut hasher);
    for source in [
        include_str!("load.rs"),
        include_str!("places.rs"),
        include_str!("copy.rs"),
        include_str!("single.sql"),
    ] {
        source.hash(&mut hasher);
    }
    for row in corpus.part(0, &mut Frequencies::new()) {
        (row.tenant, row.project, row.vector.literal).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

fn sql_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("opening {}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "sql"))
        .collect();
    files.sort();
    Ok(files)
}
