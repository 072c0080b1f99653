//! Keys of the store: names that users give to artifacts, each pointing to content, and for all content the keys that
//! reference it. A key is never a path: whatever it says, its file stays below the directory of its namespace.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use octoflow_model::{location::LocalKey, task::StoredArtifact};
use sha2::{Digest, Sha256};

use super::{
    medium::DiskFiles,
    store::{Error, Store, hex},
};
use crate::process::plan::as_file_name;

/// Limit of a file name, with room for a prefix.
const MAX_PART: usize = 200;
/// Path length below the store beyond which a key is stored under its digest instead: whole paths are limited too, to
/// 4096 bytes on Linux, and the data directory has a path of its own.
const MAX_PATH: usize = 3000;
/// Directory of such keys. No key creates a directory of this name, because a percent sign is followed by two hex
/// digits.
const LONG: &str = "%long";
/// Reference for content that is older than keys: unknown users may rely on it.
const UNKNOWN: &str = "unknown";

impl Store {
    /// Returns the artifact that was saved last under a key.
    pub fn get(&self, at: &LocalKey) -> Result<Option<StoredArtifact>, Error> {
        match self.disk.read(&self.key_path(at)) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| Error::Damaged { key: at.key.clone(), why: error.to_string() }),
            Err(error) if is_absent(&error) => Ok(None),
            Err(source) => Err(Error::Disk { verb: "look up a key", source }),
        }
    }

    /// Lists all keys that begin with this one, sorted. An empty key lists the namespace.
    pub fn list(&self, at: &LocalKey) -> Result<Vec<String>, Error> {
        let failed = |source| Error::Disk { verb: "list keys", source };
        let (dirs, long) = (self.dirs(at), self.long_keys(at));
        // Long keys are stored elsewhere, but below the directory of the whole namespace.
        let mut waiting = if long.starts_with(&dirs) { vec![dirs] } else { vec![dirs, long] };
        let mut keys = Vec::new();
        while let Some(dir) = waiting.pop() {
            let entries = match fs::read_dir(&dir) {
                Ok(entries) => entries,
                Err(error) if is_absent(&error) => continue,
                Err(source) => return Err(failed(source)),
            };
            for entry in entries {
                let entry = entry.map_err(failed)?;
                if entry.file_type().map_err(failed)?.is_dir() {
                    waiting.push(entry.path());
                    continue;
                }
                let text = fs::read(entry.path()).map_err(failed)?;
                // Keys are written atomically, so this file is not ours; listing ignores it.
                let Ok(artifact) = serde_json::from_slice::<StoredArtifact>(&text) else { continue };
                if artifact.key.starts_with(&at.key) {
                    keys.push(artifact.key);
                }
            }
        }
        keys.sort();
        Ok(keys)
    }

    /// Deletes an artifact: its key, and its content unless another key references it. A missing one is no error.
    pub fn discard(&self, at: &LocalKey, digest: &str) -> Result<(), Error> {
        let failed = |source| Error::Disk { verb: "delete an artifact", source };
        let _guard = self.lock()?;
        let points_here = match self.get(at) {
            Ok(found) => found.is_some_and(|found| found.digest == digest),
            // It finds nothing any more, so nobody misses it.
            Err(Error::Damaged { .. }) => true,
            Err(error) => return Err(error),
        };
        if points_here {
            absent_is_fine(self.disk.remove_file(&self.key_path(at))).map_err(failed)?;
        }
        self.drop_reference(at, digest)
    }

    /// Writes the file of a key, durable and without its name yet.
    pub(super) fn write_key(&self, at: &LocalKey, artifact: &StoredArtifact) -> Result<KeyFile<'_>, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let failed = |source| Error::Disk { verb: "keep a key", source };
        let name = format!("key-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let about = StoredArtifact { key: at.key.clone(), ..artifact.clone() };
        let text = serde_json::to_vec(&about).expect("a stored artifact is plain data");
        let key_file = KeyFile { disk: &self.disk, path: self.dir.join("incoming").join(name) };
        let mut file = self.disk.create(&key_file.path).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync()).map_err(failed)?;
        Ok(key_file)
    }

    /// Points a key to stored content, durably. The caller holds the lock. The reference is durable before the key and
    /// the key before the earlier content goes, so that at any time a key finds what it names.
    pub(super) fn set_key(&self, at: &LocalKey, artifact: &StoredArtifact, key_file: KeyFile<'_>) -> Result<(), Error> {
        let failed = |source| Error::Disk { verb: "keep a key", source };
        let before = match self.get(at) {
            Ok(before) => before,
            // A damaged key is replaced like any other.
            Err(Error::Damaged { .. }) => None,
            Err(error) => return Err(error),
        };
        let holders = self.holders(&artifact.digest)?;
        let fresh = fs::read_dir(&holders).map_or(true, |mut entries| entries.next().is_none());
        // Content without references that is older than the lock file was saved without a key.
        let unknown = fresh && self.is_older(&artifact.digest)?;
        self.disk.create_dirs(&holders).map_err(failed)?;
        if unknown {
            self.disk.create(&holders.join(UNKNOWN)).map_err(failed)?;
        }
        self.disk.create(&holders.join(reference_name(at))).map_err(failed)?;
        self.disk.sync_names(&holders, false).map_err(failed)?;
        let path = self.key_path(at);
        let dir = path.parent().expect("a key lies in a directory");
        self.disk.create_dirs(dir).map_err(failed)?;
        self.disk.rename(&key_file.path, &path).map_err(failed)?;
        self.disk.sync_names(dir, true).map_err(failed)?;
        match before {
            Some(before) if before.digest != artifact.digest => self.drop_reference(at, &before.digest),
            _ => Ok(()),
        }
    }

    /// Removes a reference to content; the last one deletes the content.
    fn drop_reference(&self, at: &LocalKey, digest: &str) -> Result<(), Error> {
        let failed = |source| Error::Disk { verb: "delete an artifact", source };
        let holders = self.holders(digest)?;
        let held = match self.disk.remove_file(&holders.join(reference_name(at))) {
            Ok(()) => true,
            Err(error) if is_absent(&error) => false,
            Err(source) => return Err(failed(source)),
        };
        // A key that never referenced the content cannot delete it.
        if !held {
            return Ok(());
        }
        match self.disk.remove_dir(&holders) {
            Ok(()) => absent_is_fine(self.disk.remove_file(&self.path(digest)?)).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            Err(source) => Err(failed(source)),
        }
    }

    fn is_older(&self, digest: &str) -> Result<bool, Error> {
        let failed = |source| Error::Disk { verb: "look at an artifact", source };
        let bytes = fs::metadata(self.path(digest)?).and_then(|about| about.modified()).map_err(failed)?;
        let begun = fs::metadata(self.dir.join("lock")).and_then(|about| about.modified()).map_err(failed)?;
        Ok(bytes < begun)
    }

    /// Locks the store while keys and content change together, also against other processes.
    pub(super) fn lock(&self) -> Result<File, Error> {
        let failed = |source| Error::Disk { verb: "be locked", source };
        self.disk.create_dirs(&self.dir).map_err(failed)?;
        let file = self.disk.open_lock(&self.dir.join("lock")).map_err(failed)?;
        while let Err(error) = file.lock() {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(failed(error));
            }
        }
        Ok(file)
    }

    fn holders(&self, digest: &str) -> Result<PathBuf, Error> {
        let bytes = self.path(digest)?;
        let hex = bytes.file_name().expect("bytes lie in a file").to_owned();
        Ok(self.dir.join("holders").join(&hex.to_string_lossy()[..2]).join(hex))
    }

    fn key_path(&self, at: &LocalKey) -> PathBuf {
        let last = at.key.rsplit('/').next().unwrap_or_default();
        let mut path = self.dirs(at);
        let name = as_file_name(last);
        let (long, short) = name.split_at(name.len().saturating_sub(1) / MAX_PART * MAX_PART);
        path.extend(pieces(long));
        // A prefix that no other name has: `a` and `a/b` are both possible keys.
        path.push(format!("={short}"));
        let below = path.as_os_str().len() - self.dir.as_os_str().len();
        if below > MAX_PATH { self.long_keys(at).join(format!("={}", reference_name(at))) } else { path }
    }

    fn long_keys(&self, at: &LocalKey) -> PathBuf {
        self.namespace_dir(at).join(LONG)
    }

    fn namespace_dir(&self, at: &LocalKey) -> PathBuf {
        let mut path = self.dir.join("keys");
        path.extend(pieces(&as_file_name(&at.namespace)));
        path
    }

    /// Returns the directory of a key: everything before its last slash.
    fn dirs(&self, at: &LocalKey) -> PathBuf {
        let mut path = self.namespace_dir(at);
        let above = at.key.rsplit_once('/').map_or("", |(above, _)| above);
        if at.key.contains('/') {
            for part in above.split('/') {
                path.extend(pieces(&as_file_name(part)));
                path.push("+");
            }
        }
        path
    }
}

/// The file of a key before it has its name. Dropped without one it leaves nothing.
pub(super) struct KeyFile<'a> {
    disk: &'a DiskFiles,
    path: PathBuf,
}

impl Drop for KeyFile<'_> {
    fn drop(&mut self) {
        let _ = self.disk.remove_file(&self.path);
    }
}

fn pieces(name: &str) -> impl Iterator<Item = &str> {
    name.as_bytes().chunks(MAX_PART).map(|piece| std::str::from_utf8(piece).expect("file names of ours are ASCII"))
}

fn reference_name(at: &LocalKey) -> String {
    let mut hash = Sha256::new();
    hash.update(at.namespace.as_bytes());
    hash.update([0]);
    hash.update(at.key.as_bytes());
    hex(&hash.finalize())
}

fn is_absent(error: &io::Error) -> bool {
    // A path that is too long does not exist: such a key is stored elsewhere.
    let too_long = io::ErrorKind::InvalidFilename;
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) || error.kind() == too_long
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if is_absent(&error) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(key: &str) -> LocalKey {
        LocalKey { namespace: "ns".to_owned(), key: key.to_owned() }
    }

    fn save(store: &Store, key: &str, text: &str) -> StoredArtifact {
        let mut entry = store.begin().unwrap();
        entry.write_all(text.as_bytes()).unwrap();
        entry.finish_as(&at(key), StoredArtifact { key: key.to_owned(), ..StoredArtifact::default() }).unwrap()
    }

    #[test]
    fn a_key_finds_what_was_saved_last_under_it_and_only_in_its_namespace() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let first = save(&store, "a/b", "1");
        let second = save(&store, "a/b", "2");
        assert_eq!(store.get(&at("a/b")).unwrap(), Some(second));
        assert!(matches!(store.open(&first), Err(Error::Missing { .. })), "nobody points to the first bytes any more");
        assert_eq!(store.get(&at("a")).unwrap(), None);
        assert_eq!(store.get(&LocalKey { namespace: "other".to_owned(), key: "a/b".to_owned() }).unwrap(), None);
    }

    #[test]
    fn keys_are_listed_by_prefix_whatever_they_hold() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let long = format!("a/{}", "x".repeat(900));
        let odd = ["a", "a/b", "a/b/c", "a/bc", "a//b", "/a", "a/", "../../escape", "a/ä b", "="];
        for key in odd.iter().copied().chain([long.as_str()]) {
            assert!(save(&store, key, key).size > 0);
        }
        let mut all: Vec<&str> = odd.iter().copied().chain([long.as_str()]).collect();
        all.sort_unstable();
        assert_eq!(store.list(&at("")).unwrap(), all);
        assert_eq!(store.list(&at("a/b")).unwrap(), ["a/b", "a/b/c", "a/bc"]);
        assert_eq!(store.list(&at("a/b/")).unwrap(), ["a/b/c"]);
        for key in all {
            assert_eq!(store.get(&at(key)).unwrap().unwrap().key, key);
        }
        let outside: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(outside.len(), 1, "everything is below the store's directory");
    }

    #[test]
    fn a_key_may_be_longer_than_any_path() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let keys = ["a/".repeat(3000), "b".repeat(9000), format!("a/{}", "ä".repeat(2000)), "c/".repeat(120) + "d"];
        for key in &keys {
            let saved = save(&store, key, key);
            assert_eq!(store.get(&at(key)).unwrap(), Some(saved));
        }
        save(&store, "a/short", "1");
        assert_eq!(store.list(&at("a/")).unwrap(), [keys[0].as_str(), "a/short", keys[2].as_str()]);
        assert_eq!(store.list(&at("")).unwrap().len(), 5);
        assert_eq!(store.list(&at(&keys[1])).unwrap(), [keys[1].as_str()], "also one that is too long for a path");
        for key in keys {
            let digest = store.get(&at(&key)).unwrap().unwrap().digest;
            store.discard(&at(&key), &digest).unwrap();
            assert_eq!(store.get(&at(&key)).unwrap(), None);
        }
    }

    #[test]
    fn a_key_whose_file_is_empty_is_said_to_be_lost_and_is_saved_and_deleted_like_any_other() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let saved = save(&store, "a", "1");
        File::create(store.key_path(&at("a"))).unwrap();
        let lost = store.get(&at("a")).unwrap_err();
        assert!(lost.to_string().contains("is lost"), "{lost}");
        assert_eq!(store.get(&at("a")).ok(), None);
        let again = save(&store, "a", "1");
        assert_eq!((store.get(&at("a")).unwrap(), &again), (Some(again.clone()), &saved));
        File::create(store.key_path(&at("a"))).unwrap();
        store.discard(&at("a"), &saved.digest).unwrap();
        assert_eq!(store.get(&at("a")).unwrap(), None);
    }

    #[test]
    fn bytes_go_with_the_last_key_that_points_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let one = save(&store, "one", "same");
        let two = save(&store, "two", "same");
        store.discard(&at("one"), &one.digest).unwrap();
        store.discard(&at("one"), &one.digest).unwrap();
        assert!(store.open(&two).is_ok() && store.get(&at("one")).unwrap().is_none());
        store.discard(&at("two"), &two.digest).unwrap();
        assert!(matches!(store.open(&two), Err(Error::Missing { .. })));
        assert_eq!(store.list(&at("")).unwrap(), [""; 0]);
    }

    #[test]
    fn bytes_saved_without_a_key_are_never_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let (digest, size) = store.keep(&mut &b"old"[..]).unwrap();
        // As if an earlier version had saved it.
        let path = store.path(&digest).unwrap();
        let past = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        File::options().write(true).open(path).unwrap().set_modified(past).unwrap();
        let new = save(&store, "new", "old");
        assert_eq!((&new.digest, new.size), (&digest, size));
        store.discard(&at("new"), &digest).unwrap();
        assert!(store.open(&new).is_ok());
    }
}
