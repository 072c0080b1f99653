//! Transfers artifacts between this machine and remote places: S3 buckets, web servers, git repositories, and keys of
//! the local store. Every connection goes through the egress guard; bytes are streamed and never held in memory.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use octoflow_model::{
    location::{LocalKey, Location},
    order::Fetched,
    task::{Archive, StoredArtifact},
};
use ureq::Agent;

use super::{
    pack::describe,
    store::{ArtifactWriter, Store},
    unpack::{ArtifactFile, starts_as_tree},
};
use crate::egress::{self, Policy};

mod git;
mod retry;
mod s3;
mod web;

use retry::{TransferError, with_retries};

pub struct ArtifactClient {
    store: Store,
    policy: Policy,
    agent: Agent,
}

/// Error of a transfer. All messages are for the user and hold no credentials.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing at that location.
    #[error("{0}")]
    Absent(String),
    #[error("{0}")]
    Failed(String),
}

/// Cancellation check: returns false once the result is no longer wanted.
pub(crate) type IsWanted<'a> = &'a dyn Fn() -> bool;

impl ArtifactClient {
    pub fn new(data_dir: &Path, policy: Policy) -> Self {
        let agent = egress::agent(&policy);
        Self { store: Store::new(data_dir), policy, agent }
    }

    /// Sets how many bytes of the file system artifacts leave free; `None` means the default.
    pub(crate) fn with_floor(mut self, floor: Option<u64>) -> Self {
        self.store.set_floor(floor);
        self
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Fetches an artifact, ready to be placed.
    pub(crate) fn fetch(&self, location: &Location, is_wanted: IsWanted<'_>) -> Result<(ArtifactFile, Fetched), Error> {
        match location {
            Location::Local(at) => self.local(at),
            Location::Http(web) => with_retries(is_wanted, || web::get(self, web, is_wanted)).map_err(Error::from),
            Location::Git(repository) => {
                with_retries(is_wanted, || git::check_out(self, repository, is_wanted)).map_err(Error::from)
            }
            Location::S3(bucket) => s3::Client::new(self, bucket)?.fetch(is_wanted),
        }
    }

    /// Uploads a saved artifact to another location.
    pub(crate) fn send(
        &self,
        location: &Location,
        artifact: &StoredArtifact,
        is_wanted: IsWanted<'_>,
    ) -> Result<(), Error> {
        let file = self.store.open(artifact).map_err(|error| Error::Failed(describe(error)))?;
        let is_tree = self.is_tree(artifact);
        match location {
            // A local key was written when the artifact was saved.
            Location::Local(_) => Ok(()),
            Location::S3(bucket) if is_tree => s3::Client::new(self, bucket)?.send_tree(file, is_wanted),
            Location::S3(bucket) => {
                s3::Client::new(self, bucket)?.send(&bucket.key, &file, 0..artifact.size, is_wanted)
            }
            Location::Http(_) if is_tree => Err(Error::Failed(
                "a directory cannot be sent over HTTP as it is; choose `archive: tar` or `zip`".to_owned(),
            )),
            Location::Http(web) => {
                with_retries(is_wanted, || web::put(self, web, &file, artifact.size)).map_err(Error::from)
            }
            Location::Git(_) => Err(Error::Failed("artifacts cannot be written to a git repository".to_owned())),
        }
    }

    /// Lists all keys that begin with the location's key, sorted.
    pub fn list(&self, location: &Location) -> Result<Vec<String>, Error> {
        match location {
            Location::Local(at) => self.store.list(at).map_err(|error| Error::Failed(describe(error))),
            Location::S3(bucket) => {
                let found = s3::Client::new(self, bucket)?.list(&bucket.key, &|| true)?;
                Ok(found.into_iter().map(|(key, _)| key).collect())
            }
            Location::Http(_) | Location::Git(_) => {
                Err(Error::Failed("only keys of a bucket or of the default repository can be listed".to_owned()))
            }
        }
    }

    /// Deletes an artifact of a namespace at the location it was uploaded to, and locally. A missing one is no error.
    pub fn delete(&self, away: Option<&Location>, namespace: &str, artifact: &StoredArtifact) -> Result<(), Error> {
        match away {
            // Objects below the key of a single object belong to others.
            Some(Location::S3(bucket)) => s3::Client::new(self, bucket)?.delete(self.is_tree(artifact), NO_RETRY)?,
            Some(Location::Http(web)) => with_retries(NO_RETRY, || web::delete(self, web))?,
            Some(Location::Git(_) | Location::Local(_)) | None => {}
        }
        let at = LocalKey { namespace: namespace.to_owned(), key: artifact.key.clone() };
        self.store.discard(&at, &artifact.digest).map_err(|error| Error::Failed(describe(error)))
    }

    /// Returns whether the artifact is a directory that was saved without an archive.
    fn is_tree(&self, artifact: &StoredArtifact) -> bool {
        artifact.archive == (Archive::Tar { level: Some(0) })
            && self.store.open(artifact).is_ok_and(|mut file| starts_as_tree(&mut file).unwrap_or(false))
    }

    fn local(&self, at: &LocalKey) -> Result<(ArtifactFile, Fetched), Error> {
        let failed = |error| Error::Failed(describe(error));
        if let Some(artifact) = self.store.get(at).map_err(failed)? {
            let fetched = Fetched { digest: artifact.digest.clone(), size: artifact.size };
            return Ok((ArtifactFile::stored(&self.store, &artifact).map_err(Error::Failed)?, fetched));
        }
        let below = LocalKey { namespace: at.namespace.clone(), key: format!("{}/", at.key.trim_end_matches('/')) };
        let keys = self.store.list(&below).map_err(failed)?;
        if keys.is_empty() {
            return Err(Error::Absent(format!("there is no artifact with the key `{}`", at.key)));
        }
        let mut tree = Tree::begin(&self.store)?;
        for key in keys {
            let one = LocalKey { namespace: at.namespace.clone(), key };
            let Some(artifact) = self.store.get(&one).map_err(failed)? else { continue };
            let mut file = self.store.open(&artifact).map_err(failed)?;
            tree.add(&one.key[below.key.len()..], artifact.size, &mut file)?;
        }
        tree.finish()
    }

    fn entry(&self) -> Result<ArtifactWriter<'_>, TransferError> {
        self.store.begin().map_err(|error| TransferError::permanent(describe(error)))
    }
}

/// Cancellation check that prevents retries: a failed deletion is attempted again by a later sweep.
const NO_RETRY: IsWanted<'static> = &|| false;

/// Builds one directory from several objects.
struct Tree<'a> {
    tarball: tar::Builder<ArtifactWriter<'a>>,
}

impl<'a> Tree<'a> {
    fn begin(store: &'a Store) -> Result<Self, Error> {
        let entry = store.begin().map_err(|error| Error::Failed(describe(error)))?;
        let mut tree = Self { tarball: tar::Builder::new(entry) };
        tree.dir(super::pack::TREE)?;
        Ok(tree)
    }

    fn dir(&mut self, name: &str) -> Result<(), Error> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        self.tarball.append_data(&mut header, name, io::empty()).map_err(|error| named(name, &error))
    }

    fn add(&mut self, name: &str, size: u64, bytes: &mut dyn Read) -> Result<(), Error> {
        // Some tools create an empty object to represent a directory.
        if name.is_empty() {
            return Ok(());
        }
        if name.ends_with('/') {
            return self.dir(&format!("./{name}"));
        }
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(size);
        let mut exact = bytes.take(size);
        self.tarball.append_data(&mut header, format!("./{name}"), &mut exact).map_err(|error| named(name, &error))?;
        if exact.limit() > 0 {
            return Err(Error::Failed(format!("`{name}` ended before its {size} bytes")));
        }
        Ok(())
    }

    fn finish(self) -> Result<(ArtifactFile, Fetched), Error> {
        let entry = self.tarball.into_inner().map_err(|error| Error::Failed(error.to_string()))?;
        let held = entry.into_temp().map_err(|error| Error::Failed(describe(error)))?;
        let fetched = Fetched { digest: held.digest, size: held.size };
        Ok((ArtifactFile { file: held.file, size: held.size, own: false, maybe_tree: true }, fetched))
    }
}

fn named(name: &str, error: &io::Error) -> Error {
    Error::Failed(format!("`{name}`: {error}"))
}

/// Returns a range of a file as a request body; a retry starts from its beginning.
fn file_range(file: &File, range: &std::ops::Range<u64>) -> io::Result<io::Take<File>> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(range.start))?;
    Ok(file.take(range.end - range.start))
}

/// Limit of one transfer; nothing that a manifest can name is larger.
const MAX_BYTES: u64 = 1 << 40;

/// Copies until the end or until cancelled.
fn copy_while_wanted(from: &mut dyn Read, to: &mut dyn Write, is_wanted: IsWanted<'_>) -> Result<u64, TransferError> {
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(TransferError::retryable(format!("the transfer was interrupted: {error}"))),
        };
        total += count as u64;
        if !is_wanted() {
            return Err(TransferError::permanent("the transfer was cancelled".to_owned()));
        }
        if total > MAX_BYTES {
            return Err(TransferError::permanent(format!("it is larger than {MAX_BYTES} bytes")));
        }
        to.write_all(&buffer[..count])
            .map_err(|error| TransferError::permanent(format!("it could not be written: {error}")))?;
    }
}

/// A private directory for the duration of a transfer.
struct ScratchDir(PathBuf);

impl ScratchDir {
    fn new(store: &Store) -> io::Result<Self> {
        use std::{
            os::unix::fs::DirBuilderExt,
            sync::atomic::{AtomicU64, Ordering},
        };
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let incoming = store.incoming()?;
        let path = incoming.join(format!("room-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // What cannot be removed is swept with the store's other leftovers.
        let _ = crate::process::view::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests;
