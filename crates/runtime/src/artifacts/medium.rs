//! The file layer of the artifact store: every call that changes the disk, one by one, so that tests can fail each of
//! them and drop what was not synced. It never decides what is stored where.

use std::{
    collections::HashSet,
    fmt,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Calls to the operating system. A file or directory entry survives a power cut only once it was synced.
pub(super) trait FileOps: Send + Sync + fmt::Debug {
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Creates an empty file, or empties an existing one.
    fn create(&self, path: &Path) -> io::Result<File>;
    /// Opens the lock file, and creates it if it is missing.
    fn open_lock(&self, path: &Path) -> io::Result<File>;
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    fn write(&self, file: &File, path: &Path, bytes: &[u8]) -> io::Result<usize>;
    /// Makes the content of a file durable, not its name.
    fn sync(&self, file: &File, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
}

#[derive(Debug)]
struct OnDisk;

impl FileOps for OnDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir(dir)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        File::options().read(true).write(true).create(true).truncate(true).open(path)
    }

    fn open_lock(&self, path: &Path) -> io::Result<File> {
        File::options().write(true).create(true).truncate(false).open(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn write(&self, mut file: &File, _: &Path, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn sync(&self, file: &File, _: &Path) -> io::Result<()> {
        file.sync_data()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match File::open(dir)?.sync_all() {
            // Some network file systems cannot sync a directory; its names are then as durable as they get.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
    }
}

/// The medium with what every caller needs: interrupted calls are repeated, and directories are made durable.
#[derive(Clone, Debug)]
pub(super) struct DiskFiles {
    medium: Arc<dyn FileOps>,
    /// Directory that exists for certain: nothing above it is synced.
    top: PathBuf,
    /// Directories whose names are durable up to `top`. They are never removed.
    durable: Arc<Mutex<HashSet<PathBuf>>>,
}

/// Directories remembered as durable. One more forgets them all, which costs some syncs.
const MAX_REMEMBERED: usize = 4096;

impl DiskFiles {
    pub(super) fn new(top: &Path) -> Self {
        Self::over(Arc::new(OnDisk), top)
    }

    pub(super) fn over(medium: Arc<dyn FileOps>, top: &Path) -> Self {
        Self { medium, top: top.to_owned(), durable: Arc::default() }
    }

    fn call<T>(&self, mut call: impl FnMut(&dyn FileOps) -> io::Result<T>) -> io::Result<T> {
        loop {
            match call(&*self.medium) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    /// Creates a directory and those above it. They are durable after `sync_names`.
    pub(super) fn create_dirs(&self, dir: &Path) -> io::Result<()> {
        let created = match self.call(|medium| medium.create_dir(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create_dirs(dir.parent().ok_or(error)?)?;
                self.call(|medium| medium.create_dir(dir))
            }
            created => created,
        };
        match created {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            created => created,
        }
    }

    /// Makes the names in a directory durable, and its own name up to the top. With `stays` the directory is one that
    /// is never removed.
    pub(super) fn sync_names(&self, dir: &Path, stays: bool) -> io::Result<()> {
        self.call(|medium| medium.sync_dir(dir))?;
        let mut fresh = Vec::new();
        let mut at = dir;
        while at != self.top && !self.durable().contains(at) {
            let Some(above) = at.parent() else { break };
            self.call(|medium| medium.sync_dir(above))?;
            if stays || at != dir {
                fresh.push(at.to_owned());
            }
            at = above;
        }
        let mut durable = self.durable();
        if durable.len() + fresh.len() > MAX_REMEMBERED {
            durable.clear();
        }
        durable.extend(fresh);
        Ok(())
    }

    fn durable(&self) -> std::sync::MutexGuard<'_, HashSet<PathBuf>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn create(&self, path: &Path) -> io::Result<FileWriter> {
        let file = self.call(|medium| medium.create(path))?;
        Ok(FileWriter { disk: self.clone(), path: path.to_owned(), file })
    }

    pub(super) fn open_lock(&self, path: &Path) -> io::Result<File> {
        self.call(|medium| medium.open_lock(path))
    }

    pub(super) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.call(|medium| medium.read(path))
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(|medium| medium.rename(from, to))
    }

    pub(super) fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.call(|medium| medium.remove_file(path))
    }

    pub(super) fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.call(|medium| medium.remove_dir(dir))
    }
}

/// A file being written through the medium.
pub(super) struct FileWriter {
    disk: DiskFiles,
    path: PathBuf,
    file: File,
}

impl FileWriter {
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.disk.call(|medium| medium.sync(&self.file, &self.path))
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.call(|medium| medium.write(&self.file, &self.path, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests;
