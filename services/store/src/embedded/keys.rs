//! The keys of a server that was given none: made once, kept in the data folder.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::EmbeddedError;

/// The cursor key ring of the data folder, as [`crate::cursor_keys::KeyRing::parse`] reads it.
/// The first call makes it. Call it while the folder is locked, that is after
/// [`super::EmbeddedPostgres::start`].
///
/// # Errors
/// [`EmbeddedError::Io`].
pub fn load_or_create_keys(data: &Path) -> Result<String, EmbeddedError> {
    load_or_create(data, "cursor")
}

/// The ring of keys that sign tokens, likewise: `<kid>:<base64 of 32 bytes>`.
///
/// # Errors
/// [`EmbeddedError::Io`].
pub fn load_or_create_token_keys(data: &Path) -> Result<String, EmbeddedError> {
    load_or_create(data, "token")
}

fn load_or_create(data: &Path, name: &str) -> Result<String, EmbeddedError> {
    let folder = data.join("keys");
    let path = folder.join(name);
    match fs::read_to_string(&path) {
        Ok(ring) => return Ok(ring.trim().to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(EmbeddedError::io("cannot read", &path)(error)),
    }
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder);
    made.map_err(EmbeddedError::io("cannot make", &folder))?;
    let ring = format!("e1:{}", STANDARD.encode(new_key()));
    write_whole(&path, &ring).map_err(EmbeddedError::io("cannot write", &path))?;
    Ok(ring)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a key is drawn from the system's randomness"
)]
fn new_key() -> [u8; 32] {
    rand::random()
}

/// Readable by us alone; whole or absent, also after a loss of power.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::cursor_keys::KeyRing;

    #[test]
    fn keys_are_made_once_for_us_alone() {
        let data = tempfile::tempdir().expect("a folder");
        let first = load_or_create_keys(data.path()).expect("keys");
        KeyRing::parse(&first).expect("a ring");
        assert_eq!(load_or_create_keys(data.path()).expect("keys"), first);
        let file = fs::metadata(data.path().join("keys/cursor")).expect("a file");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        let tokens = load_or_create_token_keys(data.path()).expect("keys");
        assert_ne!(tokens, first);
        let again = load_or_create_token_keys(data.path()).expect("keys");
        assert_eq!(again, tokens);
        let other = tempfile::tempdir().expect("a folder");
        assert_ne!(load_or_create_keys(other.path()).expect("keys"), first);
    }
}
