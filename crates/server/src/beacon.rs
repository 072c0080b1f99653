//! A file in the data directory that says where the server is, so that commands on this machine find it.
//! It is gone when the server is; one that a crash left behind is recognised by its process.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::Error;

const FILE: &str = "server.json";

/// Where a server of this data directory is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Beacon {
    pub url: String,
    pub address: String,
    pub pid: u32,
    /// When the process began, in the system's own count: a number given again to another process does not fool us.
    pub started: u64,
    pub version: String,
    /// The unix socket, on which the server's own user and root need no token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// Of the certificate, as SHA-256 in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The certificate itself, if it was made here and is signed by nobody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

impl Beacon {
    /// The server of this data directory, if there is one alive.
    pub fn find(data_dir: &Path) -> Option<Self> {
        let beacon: Self = serde_json::from_slice(&fs::read(data_dir.join(FILE)).ok()?).ok()?;
        (began(beacon.pid) == Some(beacon.started)).then_some(beacon)
    }

    /// Where it is written down.
    pub(crate) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join(FILE)
    }

    pub(crate) fn light(
        data_dir: &Path,
        url: String,
        address: String,
        tls: Option<(String, Option<PathBuf>)>,
        socket: Option<PathBuf>,
    ) -> Result<Lit, Error> {
        let pid = std::process::id();
        let (fingerprint, ca_file) = tls.map_or((None, None), |(print, path)| (Some(print), path));
        let started = began(pid).unwrap_or_default();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let beacon = Self { url, address, pid, started, version, socket, fingerprint, ca_file };
        let (path, draft) = (Self::path(data_dir), data_dir.join(format!("{FILE}.new")));
        let text = serde_json::to_vec_pretty(&beacon).expect("a beacon has only keys that are text");
        // In one step, so that nobody reads half of it.
        let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path));
        written.map_err(|source| Error::File { doing: "write", path: path.clone(), source })?;
        Ok(Lit(path))
    }
}

/// Put out when dropped.
#[derive(Debug)]
pub(crate) struct Lit(PathBuf);

impl Drop for Lit {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %self.0.display(), "a file could not be removed");
        }
    }
}

/// When a process began, in ticks since the machine did.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses and may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beacon_is_found_while_its_process_lives_and_not_after() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Beacon::find(dir.path()), None);
        let (url, address) = ("http://127.0.0.1:1".to_owned(), "127.0.0.1:1".to_owned());
        let lit = Beacon::light(dir.path(), url, address, None, None).unwrap();
        let found = Beacon::find(dir.path()).unwrap();
        assert_eq!((found.pid, found.url.as_str()), (std::process::id(), "http://127.0.0.1:1"));
        let stale = Beacon { started: found.started + 1, ..found };
        fs::write(Beacon::path(dir.path()), serde_json::to_vec(&stale).unwrap()).unwrap();
        assert_eq!(Beacon::find(dir.path()), None, "another process with the same number");
        drop(lit);
        assert!(!dir.path().join(FILE).exists());
    }
}
