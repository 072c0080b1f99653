//! The discovery file `server.json` in the data directory, by which local commands find the server. Removed at
//! shutdown; one left by a crash is recognised by its process.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::Error;

const FILE: &str = "server.json";

/// Location of the server of a data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerFile {
    pub url: String,
    pub address: String,
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot: a recycled process id is not mistaken for the server.
    pub started: u64,
    pub version: String,
    /// Unix socket, on which the server's own user and root need no token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// SHA-256 fingerprint of the certificate, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Certificate, if it was generated here and is self-signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

impl ServerFile {
    /// Returns the running server of this data directory, if there is one.
    pub fn find(data_dir: &Path) -> Option<Self> {
        let file: Self = serde_json::from_slice(&fs::read(data_dir.join(FILE)).ok()?).ok()?;
        (began(file.pid) == Some(file.started)).then_some(file)
    }

    /// Returns the path of the discovery file.
    pub(crate) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join(FILE)
    }

    pub(crate) fn write(
        data_dir: &Path,
        url: String,
        address: String,
        tls: Option<(String, Option<PathBuf>)>,
        socket: Option<PathBuf>,
    ) -> Result<ServerFileGuard, Error> {
        let pid = std::process::id();
        let (fingerprint, ca_file) = tls.map_or((None, None), |(print, path)| (Some(print), path));
        let started = began(pid).unwrap_or_default();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let file = Self { url, address, pid, started, version, socket, fingerprint, ca_file };
        let (path, draft) = (Self::path(data_dir), data_dir.join(format!("{FILE}.new")));
        let text = serde_json::to_vec_pretty(&file).expect("its keys are text");
        // Written atomically, so that readers never see a partial file.
        let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path));
        written.map_err(|source| Error::File { doing: "write", path: path.clone(), source })?;
        Ok(ServerFileGuard(path))
    }
}

/// Guard that removes the discovery file when dropped.
#[derive(Debug)]
pub(crate) struct ServerFileGuard(PathBuf);

impl Drop for ServerFileGuard {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %self.0.display(), "a file could not be removed");
        }
    }
}

/// Returns the start time of a process, in clock ticks since boot.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program name is in parentheses and may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_found_while_its_process_lives_and_not_after() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ServerFile::find(dir.path()), None);
        let (url, address) = ("http://127.0.0.1:1".to_owned(), "127.0.0.1:1".to_owned());
        let lit = ServerFile::write(dir.path(), url, address, None, None).unwrap();
        let found = ServerFile::find(dir.path()).unwrap();
        assert_eq!((found.pid, found.url.as_str()), (std::process::id(), "http://127.0.0.1:1"));
        let stale = ServerFile { started: found.started + 1, ..found };
        fs::write(ServerFile::path(dir.path()), serde_json::to_vec(&stale).unwrap()).unwrap();
        assert_eq!(ServerFile::find(dir.path()), None, "another process with the same number");
        drop(lit);
        assert!(!dir.path().join(FILE).exists());
    }
}
