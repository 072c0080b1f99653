//! Detects that the files of an open database were deleted, moved or replaced. Such a database can be written without
//! any error, and everything written is lost with the process.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{Error, database::connect};

/// Identity of the database and its log when they were opened.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    data_dir: PathBuf,
    /// Paths with their device and inode.
    files: Vec<(PathBuf, (u64, u64))>,
}

impl OpenFiles {
    pub(crate) fn of(data_dir: &Path) -> Self {
        let database = connect::database(data_dir);
        let log = connect::log(&database);
        let files = [database, log].into_iter();
        let files = files.filter_map(|path| identity(&path).ok().map(|identity| (path, identity))).collect();
        Self { data_dir: data_dir.to_owned(), files }
    }

    /// Fails if a file is gone or was replaced. A file that cannot be inspected is accepted; a write will fail if
    /// something is wrong.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let lost = |what| {
            let proof = "this process has it open".to_owned();
            Err(Error::Lost { data_dir: self.data_dir.clone(), what, proof })
        };
        for (path, opened) in &self.files {
            match identity(path) {
                Ok(found) if found == *opened => {}
                Ok(_) => return lost("another file has taken the place of the database or its log"),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return lost("the file of the database or of its log was deleted or moved");
                }
                Err(_) => {}
            }
        }
        Ok(())
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|about| (about.dev(), about.ino()))
}
