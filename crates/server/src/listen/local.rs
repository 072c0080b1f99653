//! The unix socket of a data directory, and its peers. Permissions of the directory keep others out; the kernel says
//! which user a peer is. It serves the same routes as the TCP socket.

use std::{
    fs::{self, File, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::{fs::PermissionsExt, net},
    },
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

use crate::Error;

/// File name in the data directory.
const NAME: &str = "server.sock";

/// Limit of socket paths: 108 bytes with the terminating zero.
const MAX_PATH_LENGTH: usize = 107;

/// User at the other end of the unix socket, as reported by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalUser {
    pub uid: u32,
    /// True for the server's own user and root, who could read the data directory and stop the server anyway.
    pub is_owner: bool,
}

/// Listening socket; its file is removed when it is dropped.
pub(crate) struct LocalSocket {
    listener: UnixListener,
    path: PathBuf,
    own_uid: u32,
}

impl LocalSocket {
    /// Listens in the data directory. The caller holds its lock, so an existing socket was left by a crash.
    pub(crate) fn bind(data_dir: &Path) -> Result<Self, Error> {
        let path = std::path::absolute(data_dir.join(NAME)).unwrap_or_else(|_| data_dir.join(NAME));
        Self::bind_at(path.clone()).map_err(|source| Error::File { doing: "listen on", path, source })
    }

    fn bind_at(path: PathBuf) -> io::Result<Self> {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = reach(&path, |short| net::UnixListener::bind(short))?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let (one, _other) = net::UnixStream::pair()?;
        one.set_nonblocking(true)?;
        let own_uid = UnixStream::from_std(one)?.peer_cred()?.uid();
        Ok(Self { listener: UnixListener::from_std(listener)?, path, own_uid })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts the next connection, with its user.
    pub(crate) async fn accept(&self) -> io::Result<(UnixStream, LocalUser)> {
        let (stream, _) = self.listener.accept().await?;
        let uid = stream.peer_cred()?.uid();
        Ok((stream, LocalUser { uid, is_owner: uid == 0 || uid == self.own_uid }))
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %self.path.display(), "a socket could not be removed");
        }
    }
}

/// Connects to the socket of a server on this machine, however long its path is.
pub fn connect(path: &Path) -> io::Result<net::UnixStream> {
    reach(path, |short| net::UnixStream::connect(short))
}

/// Calls with a path that is short enough: the socket's own, or one through a descriptor of its directory.
fn reach<T>(path: &Path, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= MAX_PATH_LENGTH {
        return call(path);
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a socket is a file in a directory"));
    };
    let dir = File::open(dir)?;
    call(&PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_private_knows_its_caller_and_goes_with_its_server() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(120)).join("e".repeat(120));
        fs::create_dir_all(&deep).unwrap();
        for dir in [dir.path(), &deep] {
            fs::write(dir.join(NAME), "left behind").unwrap();
            let socket = LocalSocket::bind(dir).unwrap();
            let path = socket.path().to_owned();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let _client = connect(&path).unwrap();
            let (_, user) = socket.accept().await.unwrap();
            assert!(user.is_owner, "{user:?}");
            drop(socket);
            assert!(!path.exists());
        }
    }
}
