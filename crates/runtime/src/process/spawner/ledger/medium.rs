//! Storage of a ledger: one file that is replaced atomically or written at an offset. A trait, so that tests can make
//! every single call fail.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

pub(crate) trait Medium {
    /// Returns the content; `None` if there is no file.
    fn read(&mut self) -> io::Result<Option<Vec<u8>>>;
    /// Replaces the content atomically. With `synced` it survives a crash of the machine.
    fn replace(&mut self, bytes: &[u8], synced: bool) -> io::Result<()>;
    /// Writes bytes at an offset. After an error any part of them may have been written.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

pub(crate) struct OnDisk {
    path: PathBuf,
    /// The file as it was last replaced by this process.
    file: Option<File>,
}

impl OnDisk {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { path: dir.join("ledger"), file: None }
    }

    fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::Error::other("the ledger was not written yet"))
    }
}

impl Medium for OnDisk {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn replace(&mut self, bytes: &[u8], synced: bool) -> io::Result<()> {
        let fresh = self.path.with_extension("new");
        let write = || -> io::Result<File> {
            let mut file = File::create(&fresh)?;
            file.write_all(bytes)?;
            if synced {
                file.sync_all()?;
            }
            fs::rename(&fresh, &self.path)?;
            if synced {
                File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()?;
            }
            Ok(file)
        };
        match write() {
            Ok(file) => {
                self.file = Some(file);
                Ok(())
            }
            Err(error) => {
                // A partial file would only take space that is short already.
                let _ = fs::remove_file(&fresh);
                Err(error)
            }
        }
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file()?.write_all_at(bytes, offset)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file()?.set_len(length)
    }
}
