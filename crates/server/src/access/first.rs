//! The first token: the admin's token of a data directory in which nobody has chosen a password. It is random, lies in
//! a file that only its owner can read, and stays the same across restarts until a password is chosen.
//! It must never be printed, logged or kept anywhere else.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::secret::{self, Hash, digest};
use crate::Error;

/// The file's name in the data directory.
const FILE: &str = "admin.token";

/// Shorter text in the file was not drawn by us.
const SHORTEST: usize = 20;

/// Where the first token of this data directory lies.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

/// The first token of a data directory, if there is one that this process may read.
pub fn read(data_dir: &Path) -> Option<String> {
    let text = fs::read_to_string(path(data_dir)).ok()?;
    let token = text.trim();
    (token.len() >= SHORTEST && token.bytes().all(|byte| byte.is_ascii_alphanumeric())).then(|| token.to_owned())
}

/// The hash of the token in the file. One is drawn if there is none, or if others could have read or written it.
pub(crate) fn ready(data_dir: &Path) -> Result<Hash, Error> {
    if is_private(&path(data_dir))
        && let Some(token) = read(data_dir)
    {
        return Ok(digest(token.as_bytes()));
    }
    let token = secret::draw().map_err(|fault| Error::Unusable { path: path(data_dir), why: fault.message })?;
    write(data_dir, &token).map_err(|source| Error::File { doing: "write", path: path(data_dir), source })?;
    Ok(digest(token.as_bytes()))
}

/// Removes the file, because the token in it is no longer valid.
pub(crate) fn remove(data_dir: &Path) {
    let path = path(data_dir);
    if let Err(error) = fs::remove_file(&path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "a token that is no longer valid could not be removed");
    }
}

/// In one step, so that nobody reads half of it; readable by its owner from its first moment.
fn write(data_dir: &Path, token: &str) -> io::Result<()> {
    let draft = data_dir.join(format!("{FILE}.new"));
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    fs::rename(&draft, path(data_dir))?;
    File::open(data_dir)?.sync_all()
}

/// Whether only its owner, who is the owner of the directory as well, can read and write it.
fn is_private(path: &Path) -> bool {
    let Some(dir) = path.parent().and_then(|dir| dir.metadata().ok()) else { return false };
    path.symlink_metadata().is_ok_and(|file| file.is_file() && file.mode() & 0o077 == 0 && file.uid() == dir.uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_token_is_private_and_stays_until_others_could_read_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), None);
        let hash = ready(dir.path()).unwrap();
        let token = read(dir.path()).unwrap();
        assert_eq!(hash, digest(token.as_bytes()));
        assert_eq!(fs::metadata(path(dir.path())).unwrap().mode() & 0o777, 0o600);
        assert_eq!(ready(dir.path()).unwrap(), hash, "a restart keeps it");
        fs::set_permissions(path(dir.path()), fs::Permissions::from_mode(0o644)).unwrap();
        assert_ne!(ready(dir.path()).unwrap(), hash, "somebody may have read it");
        assert_eq!(fs::metadata(path(dir.path())).unwrap().mode() & 0o777, 0o600);
        fs::write(path(dir.path()), "admin").unwrap();
        ready(dir.path()).unwrap();
        assert_ne!(read(dir.path()).unwrap(), "admin");
        remove(dir.path());
        assert_eq!(read(dir.path()), None);
    }
}
