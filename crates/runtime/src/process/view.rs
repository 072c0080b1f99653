//! A task's file system as seen from outside: the kernel resolves paths below its root, including links. Nothing here
//! may follow a link out of the root or touch a pseudo file system such as /proc.

use std::{
    ffi::{CString, OsStr},
    fs::{self, File, Metadata},
    io::{self, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::{
            ffi::OsStrExt,
            fs::{FileTypeExt, PermissionsExt},
        },
    },
    path::{Component, Path, PathBuf},
};

use super::sys;

/// Pseudo file systems of the kernel: reading there would show *our* process, writing would change the machine.
const PSEUDO: [i64; 12] = [
    libc::PROC_SUPER_MAGIC,
    libc::SYSFS_MAGIC,
    libc::CGROUP_SUPER_MAGIC,
    libc::CGROUP2_SUPER_MAGIC,
    libc::DEBUGFS_MAGIC,
    libc::TRACEFS_MAGIC,
    libc::SECURITYFS_MAGIC,
    libc::SELINUX_MAGIC,
    libc::BPF_FS_MAGIC,
    libc::DEVPTS_SUPER_MAGIC,
    libc::NSFS_MAGIC,
    BINFMTFS_MAGIC,
];

const BINFMTFS_MAGIC: i64 = 0x4249_4e4d;

/// A path that may be used inside a view: absolute, without `..`, without NUL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inside(PathBuf);

impl Inside {
    /// Checks a path. Relative paths start at `dir`.
    pub(crate) fn new(path: &str, dir: &str) -> Result<Self, String> {
        let whole = Path::new("/").join(dir).join(path);
        if path.is_empty() {
            return Err("the path is empty".to_owned());
        }
        if path.contains('\0') {
            return Err(format!("the path {path:?} contains a NUL byte"));
        }
        let mut clean = PathBuf::from("/");
        for part in whole.components() {
            match part {
                Component::Normal(name) => clean.push(name),
                Component::RootDir | Component::CurDir => {}
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(format!("the path `{path}` contains `..`, which is not allowed here"));
                }
            }
        }
        Ok(Self(clean))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, more: &Path) -> Self {
        Self(self.0.join(more))
    }
}

/// A file found in a view: an `O_PATH` handle and its metadata. Links were followed inside the root.
pub(crate) struct Found {
    handle: OwnedFd,
    pub(crate) about: Metadata,
}

impl Found {
    /// Opens a regular file or a directory for reading. Never blocks and never has a side effect, because devices and
    /// pipes are refused before they are opened.
    pub(crate) fn open(&self) -> io::Result<File> {
        if !self.about.is_file() && !self.about.is_dir() {
            return Err(io::Error::other("it is neither a file nor a directory"));
        }
        if PSEUDO.contains(&sys::file_system(self.handle.as_fd())?) {
            return Err(io::Error::other("it is part of a kernel file system"));
        }
        File::open(by_handle(&self.handle))
    }

    /// Returns the target of a link, unresolved.
    pub(crate) fn link_target(&self) -> io::Result<PathBuf> {
        sys::read_link(self.handle.as_fd())
    }
}

pub(crate) struct View {
    root: OwnedFd,
}

impl View {
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self { root }
    }

    /// Returns the descriptor of the root.
    pub(crate) fn into_root(self) -> OwnedFd {
        self.root
    }

    /// Returns a view of the machine itself.
    pub(crate) fn host() -> io::Result<Self> {
        Ok(Self { root: File::open("/")?.into() })
    }

    pub(crate) fn find(&self, path: &Path) -> io::Result<Option<Found>> {
        match sys::open_inside(self.root.as_fd(), &text(path.as_os_str())?, libc::O_PATH, 0) {
            Ok(handle) => {
                let handle = File::from(handle);
                let about = handle.metadata()?;
                Ok(Some(Found { handle: handle.into(), about }))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the file at a path, without following a link at its end.
    pub(crate) fn look(&self, path: &Path) -> io::Result<Found> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        let handle = File::from(sys::open_inside(self.root.as_fd(), &text(path.as_os_str())?, flags, 0)?);
        let about = handle.metadata()?;
        Ok(Found { handle: handle.into(), about })
    }

    /// Opens a directory, and creates it and its parents if they are missing.
    pub(crate) fn make_dir(&self, path: &Path) -> io::Result<OwnedFd> {
        let open = |path: &Path| {
            sys::open_inside(self.root.as_fd(), &text(path.as_os_str())?, libc::O_PATH | libc::O_DIRECTORY, 0)
        };
        let dir = match open(path) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (mut so_far, mut dir) = (PathBuf::from("/"), open(Path::new("/"))?);
                for part in path.components().skip(1) {
                    so_far.push(part);
                    dir = match open(&so_far) {
                        Ok(next) => next,
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {
                            refuse_pseudo(&dir)?;
                            sys::make_dir_at(dir.as_fd(), &text(part.as_os_str())?, 0o755)?;
                            let made = open(&so_far)?;
                            // The mode at creation is reduced by our umask.
                            fs::set_permissions(by_handle(&made), fs::Permissions::from_mode(0o755))?;
                            made
                        }
                        Err(error) => return Err(error),
                    };
                }
                dir
            }
            Err(error) => return Err(error),
        };
        refuse_pseudo(&dir)?;
        Ok(dir)
    }

    /// Creates or truncates a file; creates its parents.
    pub(crate) fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        let (parent, name) = split(path)?;
        let dir = self.make_dir(parent)?;
        let create = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let file = match sys::open_at(dir.as_fd(), &text(name)?, create, mode) {
            Ok(file) => File::from(file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let found = self.find(path)?.ok_or(error)?;
                if !found.about.is_file() {
                    return Err(io::Error::other("something that is not a file is in its place"));
                }
                refuse_pseudo(&found.handle)?;
                File::options().write(true).truncate(true).open(by_handle(&found.handle))?
            }
            Err(error) => return Err(error),
        };
        // The mode at creation is reduced by our umask; the caller's mode counts.
        file.set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
        Ok(file)
    }

    pub(crate) fn write_file(&self, path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
        self.create(path, mode)?.write_all(contents)
    }

    /// Creates a symbolic link with any target: it is only ever followed inside the root.
    pub(crate) fn link(&self, path: &Path, target: &Path) -> io::Result<()> {
        let (parent, name) = split(path)?;
        let dir = self.make_dir(parent)?;
        sys::link_at(dir.as_fd(), &text(name)?, &text(target.as_os_str())?)
    }

    /// Makes sure that there is a file or directory to mount on.
    pub(crate) fn mount_point(&self, path: &Path, directory: bool) -> io::Result<OwnedFd> {
        if directory {
            return self.make_dir(path);
        }
        if self.find(path)?.is_none() {
            self.create(path, 0o644)?;
        }
        sys::open_inside(self.root.as_fd(), &text(path.as_os_str())?, libc::O_PATH, 0)
    }
}

impl AsFd for View {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

/// Returns a path of our own that leads to an open file, whatever namespace it is in.
pub(crate) fn by_handle(handle: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

pub(crate) fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a path contains a NUL byte"))
}

fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent()
        .zip(path.file_name())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the root itself cannot be replaced"))
}

fn refuse_pseudo(dir: &OwnedFd) -> io::Result<()> {
    if PSEUDO.contains(&sys::file_system(dir.as_fd())?) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is part of a kernel file system"));
    }
    Ok(())
}

/// Removes everything below an open directory, however deep it is, without recursion and without following links.
pub(crate) fn clear(dir: OwnedFd) -> io::Result<()> {
    struct Level {
        name: CString,
        left: Vec<CString>,
    }
    let subdirectories = |dir: &OwnedFd| -> io::Result<Vec<CString>> {
        let mut left = Vec::new();
        for entry in fs::read_dir(by_handle(dir))? {
            let entry = entry?;
            let name = text(&entry.file_name())?;
            if entry.file_type()?.is_dir() { left.push(name) } else { sys::remove_at(dir.as_fd(), &name, false)? }
        }
        Ok(left)
    };
    let mut here = dir;
    let mut levels = vec![Level { name: CString::default(), left: subdirectories(&here)? }];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.left.pop() {
            here = open_to_clear(&here, &name)?;
            levels.push(Level { name, left: subdirectories(&here)? });
            continue;
        }
        let done = levels.pop().expect("the loop looked at it");
        if !levels.is_empty() {
            here = sys::open_at(here.as_fd(), c"..", libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
            sys::remove_at(here.as_fd(), &done.name, true)?;
        }
    }
    Ok(())
}

/// Opens a directory to clear it. A task may have removed the permissions of its own directories; as their owner we
/// restore them.
fn open_to_clear(parent: &OwnedFd, name: &CString) -> io::Result<OwnedFd> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
    match sys::open_at(parent.as_fd(), name, flags, 0) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let handle = sys::open_at(parent.as_fd(), name, libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW, 0)?;
            fs::set_permissions(by_handle(&handle), fs::Permissions::from_mode(0o700))?;
            sys::open_at(parent.as_fd(), name, flags, 0)
        }
        other => other,
    }
}

/// Removes a directory with everything in it; a missing one is no error.
pub(crate) fn remove_dir(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(dir) => {
            clear(dir.into())?;
            fs::remove_dir(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

pub(crate) fn is_socket(about: &Metadata) -> bool {
    about.file_type().is_socket()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn view(dir: &Path) -> View {
        View::new(File::open(dir).unwrap().into())
    }

    #[test]
    fn dot_dot_is_refused_and_relative_paths_start_at_the_directory() {
        assert!(Inside::new("/tmp/../etc/shadow", "/").is_err());
        assert!(Inside::new("", "/").is_err());
        assert!(Inside::new("a\0b", "/").is_err());
        assert_eq!(Inside::new("out/./x", "/home").unwrap().path(), Path::new("/home/out/x"));
        assert_eq!(Inside::new("/abs", "/home").unwrap().path(), Path::new("/abs"));
    }

    #[test]
    fn links_never_lead_out_of_the_root() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "no").unwrap();
        let inside = tempfile::tempdir().unwrap();
        symlink(outside.path(), inside.path().join("door")).unwrap();
        symlink("../../../../../..", inside.path().join("up")).unwrap();
        let view = view(inside.path());
        assert!(view.find(Path::new("/door/secret")).unwrap().is_none());
        let target = outside.path().join("secret");
        assert!(view.find(&Path::new("/up").join(target.strip_prefix("/").unwrap())).unwrap().is_none());
        view.write_file(Path::new("/up/new"), b"x", 0o600).unwrap();
        assert_eq!(fs::read(inside.path().join("new")).unwrap(), b"x");
    }

    #[test]
    fn a_pipe_is_seen_and_never_opened() {
        let dir = tempfile::tempdir().unwrap();
        let status = std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
        assert!(status.success());
        let found = view(dir.path()).find(Path::new("/pipe")).unwrap().unwrap();
        assert!(found.open().unwrap_err().to_string().contains("neither a file nor a directory"));
    }

    #[test]
    fn our_own_process_cannot_be_read_through_proc() {
        let found = View::host().unwrap().find(Path::new("/proc/self/environ")).unwrap().unwrap();
        assert!(found.open().unwrap_err().to_string().contains("kernel file system"));
        assert!(View::host().unwrap().create(Path::new("/proc/sys/x"), 0o600).is_err());
    }

    #[test]
    fn a_very_deep_tree_is_cleared() {
        let top = tempfile::tempdir().unwrap();
        let mut here: OwnedFd = File::open(top.path()).unwrap().into();
        for _ in 0..3000 {
            sys::make_dir_at(here.as_fd(), c"d", 0o700).unwrap();
            here = sys::open_at(here.as_fd(), c"d", libc::O_RDONLY | libc::O_DIRECTORY, 0).unwrap();
        }
        fs::write(by_handle(&here).join("leaf"), "x").unwrap();
        clear(File::open(top.path()).unwrap().into()).unwrap();
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
    }
}
