//! The one-writer rule of a data directory: an advisory lock on `<data-dir>/lock` with the holder's pid inside.
//! The kernel drops the lock with the process, so a crash never leaves it behind; the pid is only for messages.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::Error;

#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    pub(crate) fn take(data_dir: &Path) -> Result<Self, Error> {
        let path = data_dir.join("lock");
        let failed = |source: io::Error| Error::File { doing: "lock", path: path.clone(), source: Arc::new(source) };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // A holder that has not written its pid yet is still a holder.
                let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(Error::Locked { data_dir: PathBuf::from(data_dir), holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
        // Only for messages, and a full disk must not keep anybody from opening what is there.
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The pid is a courtesy: if it cannot be wiped the next holder overwrites it.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}
