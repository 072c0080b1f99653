//! Restricts a data directory to its owner: its content may be secret, and many of its files are created by libraries
//! that do not care about modes. A directory that others could enter is tightened when it is opened for writing. Never
//! changes the mode of a directory that serves other purposes as well.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::Path,
    sync::Arc,
};

use crate::{Error, database::schema};

/// Mode bits of everyone but the owner.
const OTHERS: u32 = 0o077;

/// Sticky bit: a directory that everyone may write to, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// Entries of which a used data directory has at least one.
const MARKS: [&str; 3] = [schema::FILE, "lock", "spawner"];

/// Creates the directory, or makes an existing one accessible to its owner only.
pub(crate) fn secure(data_dir: &Path) -> Result<(), Error> {
    let failed =
        |doing| move |error: io::Error| Error::File { doing, path: data_dir.to_owned(), source: Arc::new(error) };
    let about = match fs::metadata(data_dir) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(data_dir);
            return made.and_then(|()| sync_parent(data_dir)).map_err(failed("create"));
        }
        Err(error) => return Err(failed("look at")(error)),
    };
    let user = rustix::process::geteuid();
    if !user.is_root() && about.uid() != user.as_raw() {
        return Err(Error::Owned { data_dir: data_dir.to_owned(), owner: about.uid(), user: user.as_raw() });
    }
    if about.mode() & OTHERS == 0 {
        return Ok(());
    }
    let shared = || Error::Shared { data_dir: data_dir.to_owned(), mode: about.mode() & 0o7777 };
    if about.mode() & STICKY != 0 {
        return Err(shared());
    }
    let empty = fs::read_dir(data_dir).map_err(failed("read"))?.next().is_none();
    if !empty && !MARKS.iter().any(|name| data_dir.join(name).exists()) {
        return Err(shared());
    }
    // From here on the content is out of reach for others, so the rest is not urgent.
    tighten(data_dir, about.mode()).map_err(failed("make private"))?;
    for entry in fs::read_dir(data_dir).map_err(failed("read"))? {
        let entry = entry.map_err(failed("read"))?;
        let Ok(about) = entry.metadata() else { continue };
        if !about.is_symlink() && about.mode() & OTHERS != 0 {
            let path = entry.path();
            tighten(&path, about.mode()).map_err(|error| Error::File {
                doing: "make private",
                path: path.clone(),
                source: Arc::new(error),
            })?;
        }
    }
    Ok(())
}

/// Returns the owner of the directory if it is not the current user.
pub fn foreign_owner(data_dir: &Path) -> Option<u32> {
    let owner = fs::metadata(data_dir).ok()?.uid();
    (owner != rustix::process::geteuid().as_raw()).then_some(owner)
}

fn tighten(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 & !OTHERS))
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::Store;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn open_to_all(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// Every file and directory below.
    fn all(dir: &Path) -> Vec<PathBuf> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn a_directory_that_others_could_enter_is_tightened_with_everything_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let store = Store::open(&data).unwrap();
        assert_eq!(mode(&data), 0o700);
        store.close().unwrap();
        fs::create_dir(data.join("audit")).unwrap();
        all(&data).iter().for_each(|path| open_to_all(path, if path.is_dir() { 0o755 } else { 0o644 }));
        open_to_all(&data, 0o755);
        let store = Store::open(&data).unwrap();
        assert_eq!(mode(&data), 0o700);
        for path in all(&data).iter().filter(|path| !path.to_string_lossy().contains("octoflow.db-")) {
            assert_eq!(mode(path) & OTHERS, 0, "{}", path.display());
        }
        store.close().unwrap();
    }

    #[test]
    fn a_directory_for_other_things_is_refused_and_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("report.txt"), "somebody's").unwrap();
        open_to_all(dir.path(), 0o755);
        let error = Store::open(dir.path()).unwrap_err();
        assert!(matches!(error, Error::Shared { mode: 0o755, .. }), "{error}");
        assert!(error.to_string().contains("directory of its own"), "{error}");
        assert_eq!(mode(dir.path()), 0o755);
        let drawer = dir.path().join("tmp");
        fs::create_dir(&drawer).unwrap();
        open_to_all(&drawer, 0o1777);
        assert!(matches!(Store::open(&drawer), Err(Error::Shared { .. })));
        assert_eq!(mode(&drawer), 0o1777);
        open_to_all(dir.path(), 0o700);
        Store::open(dir.path()).unwrap();
    }
}
