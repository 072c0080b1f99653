//! The content-addressed store: content by its digest. Writing the same content twice stores one copy. `keys` owns
//! which keys reference it; content is deleted only when no key does any more.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use octoflow_model::{location::LocalKey, task::StoredArtifact};
use sha2::{Digest, Sha256};

use super::medium::{DiskFiles, FileWriter};
use crate::space::{Free, Space};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is not a digest of the form sha256:<64 hex digits>")]
    NotADigest(String),
    #[error("the artifact {digest} is lost: it is not in the store")]
    Missing { digest: String },
    #[error("the artifact {digest} is lost: {found} of its {size} bytes are in the store")]
    Incomplete { digest: String, size: u64, found: u64 },
    #[error("the artifact store could not {verb}")]
    Disk { verb: &'static str, source: io::Error },
    #[error("the artifact with the key `{key}` is lost: what the store knows about it cannot be read: {why}")]
    Damaged { key: String, why: String },
}

#[derive(Clone, Debug)]
pub struct Store {
    pub(super) dir: PathBuf,
    pub(super) disk: DiskFiles,
    /// Bytes of the file system that are left free; `None` means the default.
    floor: Option<u64>,
}

/// Bytes written between two checks of the free space.
const CHECK_EVERY: u64 = 4 << 20;

/// Age from which an incomplete transfer is certainly dead.
const STALE_AFTER: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// Distinguishes incomplete files of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Store {
    pub fn new(data_dir: &Path) -> Self {
        Self { dir: data_dir.join("artifacts"), disk: DiskFiles::new(data_dir), floor: None }
    }

    #[cfg(test)]
    pub(super) fn over(data_dir: &Path, disk: DiskFiles) -> Self {
        Self { dir: data_dir.join("artifacts"), disk, floor: Some(0) }
    }

    pub(super) fn set_floor(&mut self, floor: Option<u64>) {
        self.floor = floor;
    }

    /// Opens the stored content.
    pub fn open(&self, artifact: &StoredArtifact) -> Result<File, Error> {
        let failed = |source| Error::Disk { verb: "open an artifact", source };
        match File::open(self.path(&artifact.digest)?) {
            Ok(file) => {
                let (digest, size) = (&artifact.digest, artifact.size);
                let found = file.metadata().map_err(failed)?.len();
                if found == size { Ok(file) } else { Err(Error::Incomplete { digest: digest.clone(), size, found }) }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::Missing { digest: artifact.digest.clone() })
            }
            Err(source) => Err(failed(source)),
        }
    }

    /// Stores the content of `read`; returns digest and size.
    pub fn keep(&self, read: &mut dyn Read) -> Result<(String, u64), Error> {
        let mut entry = self.begin()?;
        io::copy(read, &mut entry).map_err(|source| Error::Disk { verb: "write an artifact", source })?;
        entry.finish()
    }

    pub(super) fn path(&self, digest: &str) -> Result<PathBuf, Error> {
        let hex = digest
            .strip_prefix("sha256:")
            .filter(|hex| {
                hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
            })
            .ok_or_else(|| Error::NotADigest(digest.to_owned()))?;
        Ok(self.dir.join("sha256").join(&hex[..2]).join(hex))
    }

    /// Returns the directory of incomplete files.
    pub(super) fn incoming(&self) -> io::Result<PathBuf> {
        let dir = self.dir.join("incoming");
        self.disk.create_dirs(&dir)?;
        Ok(dir)
    }

    /// Deletes the incomplete files of transfers that died long ago.
    pub(crate) fn clear_leftovers(&self) {
        for entry in fs::read_dir(self.dir.join("incoming")).into_iter().flatten().flatten() {
            let touched = entry.metadata().and_then(|about| about.modified()).ok();
            let age = touched.and_then(|at| at.elapsed().ok()).unwrap_or_default();
            if age > STALE_AFTER && fs::remove_file(entry.path()).is_err() {
                // It may be a directory; what cannot be removed is retried by the next engine.
                let _ = crate::process::view::remove_dir(&entry.path());
            }
        }
    }

    /// Starts an artifact whose content is written piece by piece.
    pub(crate) fn begin(&self) -> Result<ArtifactWriter<'_>, Error> {
        let failed = |source| Error::Disk { verb: "begin an artifact", source };
        let dir = self.incoming().map_err(failed)?;
        let space = Space::of(&dir, self.floor).map_err(failed)?;
        has_room(&space).map_err(failed)?;
        // Older than any content that gets a key; see `keys`.
        self.disk.open_lock(&self.dir.join("lock")).map_err(failed)?;
        let path = dir.join(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let file = self.disk.create(&path).map_err(failed)?;
        Ok(ArtifactWriter {
            store: self,
            path,
            file: io::BufWriter::with_capacity(64 * 1024, file),
            hash: Sha256::new(),
            size: 0,
            space,
            check_at: CHECK_EVERY,
        })
    }
}

/// An artifact being written. Dropped before it is finished it leaves nothing.
pub(crate) struct ArtifactWriter<'a> {
    store: &'a Store,
    path: PathBuf,
    file: io::BufWriter<FileWriter>,
    hash: Sha256,
    size: u64,
    space: Space,
    check_at: u64,
}

/// Fails if the free space is below the floor, which is reserved for the engine's records.
fn has_room(space: &Space) -> io::Result<()> {
    if space.measure().is_some_and(Free::is_low) { Err(io::Error::from_raw_os_error(libc::ENOSPC)) } else { Ok(()) }
}

impl ArtifactWriter<'_> {
    /// Makes the content durable under its digest.
    pub(crate) fn finish(mut self) -> Result<(String, u64), Error> {
        let digest = self.sync_content()?;
        let _guard = self.store.lock()?;
        self.publish(&digest)?;
        Ok((digest, self.size))
    }

    /// Makes the content durable and points a key to it. Nobody can delete the content in between.
    pub(crate) fn finish_as(mut self, at: &LocalKey, about: StoredArtifact) -> Result<StoredArtifact, Error> {
        let digest = self.sync_content()?;
        let artifact = StoredArtifact { digest, size: self.size, ..about };
        let key_file = self.store.write_key(at, &artifact)?;
        let _guard = self.store.lock()?;
        self.publish(&artifact.digest)?;
        self.store.set_key(at, &artifact, key_file)?;
        Ok(artifact)
    }

    /// Does not store the content: it can be read while the result is held, and disappears afterwards.
    pub(crate) fn into_temp(mut self) -> Result<TempArtifact, Error> {
        let failed = |source| Error::Disk { verb: "write down what was fetched", source };
        self.file.flush().map_err(failed)?;
        let digest = self.digest();
        let file = self.file.get_ref().file().try_clone().map_err(failed)?;
        Ok(TempArtifact { file, digest, size: self.size })
    }

    fn digest(&mut self) -> String {
        format!("sha256:{}", hex(&std::mem::take(&mut self.hash).finalize()))
    }

    /// Syncs the file. Everything slow happens before the lock is taken.
    fn sync_content(&mut self) -> Result<String, Error> {
        let failed = |source| Error::Disk { verb: "keep an artifact", source };
        self.file.flush().map_err(failed)?;
        let digest = self.digest();
        if !self.is_stored(&self.store.path(&digest)?) {
            // Once the digest is returned the content must survive a power cut.
            self.file.get_ref().sync().map_err(failed)?;
        }
        Ok(digest)
    }

    /// Returns whether the content is there in full. Whatever else has its name is the rest of a damage.
    fn is_stored(&self, target: &Path) -> bool {
        fs::metadata(target).is_ok_and(|about| about.is_file() && about.len() == self.size)
    }

    /// Gives the content its name, and makes the name durable.
    fn publish(&mut self, digest: &str) -> Result<(), Error> {
        let failed = |source| Error::Disk { verb: "keep an artifact", source };
        let target = self.store.path(digest)?;
        let dir = target.parent().expect("a path in the store has a parent");
        let disk = &self.store.disk;
        if !self.is_stored(&target) {
            self.file.get_ref().sync().map_err(failed)?;
            disk.create_dirs(dir).map_err(failed)?;
            disk.rename(&self.path, &target).map_err(failed)?;
        }
        // Also for content that was there: whoever named it may have died before its name was durable.
        disk.sync_names(dir, true).map_err(failed)
    }
}

/// Content in transit from a remote location to a task. Its file has no name any more, so nothing is left behind.
#[derive(Debug)]
pub(crate) struct TempArtifact {
    pub(crate) file: File,
    pub(crate) digest: String,
    pub(crate) size: u64,
}

impl Write for ArtifactWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.size >= self.check_at {
            has_room(&self.space)?;
            self.check_at = self.size + CHECK_EVERY;
        }
        let count = self.file.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for ArtifactWriter<'_> {
    fn drop(&mut self) {
        // Gone already if it was renamed; otherwise an incomplete file belongs to nobody.
        let _ = self.store.disk.remove_file(&self.path);
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_by_their_digest_and_kept_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let (digest, size) = store.keep(&mut &b"hello"[..]).unwrap();
        assert_eq!(digest, "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        assert_eq!(store.keep(&mut &b"hello"[..]).unwrap(), (digest.clone(), size));
        let artifact = StoredArtifact { digest, size, ..StoredArtifact::default() };
        let mut text = String::new();
        store.open(&artifact).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        assert_eq!(fs::read_dir(dir.path().join("artifacts/incoming")).unwrap().count(), 0);
    }

    #[test]
    fn content_that_is_missing_or_cut_is_said_to_be_lost_and_is_repaired_by_the_next_to_save_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let (digest, size) = store.keep(&mut &b"hello"[..]).unwrap();
        let artifact = StoredArtifact { digest: digest.clone(), size, ..StoredArtifact::default() };
        File::create(store.path(&digest).unwrap()).unwrap();
        let lost = store.open(&artifact).unwrap_err();
        assert!(matches!(lost, Error::Incomplete { size: 5, found: 0, .. }), "{lost}");
        assert!(lost.to_string().contains("is lost"), "{lost}");
        store.keep(&mut &b"hello"[..]).unwrap();
        assert!(store.open(&artifact).is_ok());
        fs::remove_file(store.path(&digest).unwrap()).unwrap();
        assert!(store.open(&artifact).unwrap_err().to_string().contains("is lost"));
    }

    #[test]
    fn artifacts_leave_the_reserved_space_free() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::new(dir.path());
        store.set_floor(Some(u64::MAX / 2));
        let refused = store.keep(&mut &b"hello"[..]).unwrap_err();
        assert!(matches!(&refused, Error::Disk { source, .. } if source.kind() == io::ErrorKind::StorageFull));
        store.set_floor(Some(0));
        let mut entry = store.begin().unwrap();
        entry.space.set_floor(Some(u64::MAX / 2));
        let refused = io::copy(&mut io::repeat(7).take(2 * CHECK_EVERY), &mut entry).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        drop(entry);
        assert_eq!(fs::read_dir(dir.path().join("artifacts/incoming")).unwrap().count(), 0);
    }

    #[test]
    fn only_what_died_long_ago_is_thrown_away() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let young = store.begin().unwrap();
        let incoming = store.incoming().unwrap();
        let past = std::time::SystemTime::now() - 2 * STALE_AFTER;
        fs::write(incoming.join("old"), "").unwrap();
        fs::create_dir_all(incoming.join("room/work")).unwrap();
        for name in ["old", "room"] {
            File::open(incoming.join(name)).unwrap().set_modified(past).unwrap();
        }
        store.clear_leftovers();
        assert_eq!(fs::read_dir(&incoming).unwrap().count(), 1);
        drop(young);
    }

    #[test]
    fn a_digest_is_never_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        for digest in ["sha256:../../etc/passwd", "md5:00", "", &format!("sha256:{}", "A".repeat(64))] {
            let artifact = StoredArtifact { digest: digest.to_owned(), ..StoredArtifact::default() };
            assert!(matches!(store.open(&artifact), Err(Error::NotADigest(_))), "{digest}");
        }
        let absent = format!("sha256:{}", "a".repeat(64));
        let artifact = StoredArtifact { digest: absent, ..StoredArtifact::default() };
        assert!(matches!(store.open(&artifact), Err(Error::Missing { .. })));
    }
}
