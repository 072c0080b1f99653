//! A `/dev` with one more entry: the file for a task's termination message. The machine's own `/dev` is shared by all
//! tasks and takes no new entries, so such a task gets one that links to it, entry by entry. Runs inside the namespace
//! of a slot that is being created and changes nothing outside it.

use std::{
    fs::{self, File, Permissions},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use crate::process::{
    sys::ns,
    view::text,
    wire::{Launch, TerminationSource},
};

/// Where it is created.
const OURS: &str = "root/dev";

/// The machine's own `/dev`, below ours.
const MACHINE: &str = ".machine";

/// Entries that the slot itself mounts.
const MOUNTED: [&str; 2] = ["pts", "shm"];

/// Entries shown as devices rather than as links, for programs that look closely. The rest is too many.
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Mode of the file: any user of a container may write it.
const MODE: u32 = 0o666;

/// The file for the termination message in a slot.
pub(crate) struct TerminationFile {
    path: PathBuf,
    file: File,
    owner: (u32, u32),
}

/// Returns the path of the message if it can be written only in a slot made for it.
pub(crate) fn wanted(launch: &Launch) -> Option<&Path> {
    let Some(TerminationSource { path: Some(path), .. }) = &launch.termination else { return None };
    let below = Path::new(path).strip_prefix("/dev").ok()?;
    let first = below.iter().next()?;
    (!MOUNTED.iter().any(|name| first == *name)).then(|| Path::new(path.as_str()))
}

impl TerminationFile {
    /// Creates the whole `/dev` of the slot in the current directory, except for what the slot itself mounts.
    pub(crate) fn create(path: &Path, machine: &OwnedFd) -> io::Result<Self> {
        let below = path.strip_prefix("/dev").map_err(io::Error::other)?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        ns::mount(c"octoflow", c"root/dev", Some(c"tmpfs"), flags, c"mode=0755")?;
        let ours = Path::new(OURS);
        for name in MOUNTED.into_iter().chain([MACHINE]) {
            fs::create_dir(ours.join(name))?;
        }
        let devices = ns::detached_copy(machine.as_fd(), c"/dev", true)?;
        ns::make_read_only(devices.as_fd(), true)?;
        ns::attach(devices.as_fd(), handle(&ours.join(MACHINE))?.as_fd())?;
        for entry in fs::read_dir("/dev")? {
            let entry = entry?;
            let name = entry.file_name();
            let mine = ours.join(&name);
            // An entry of the machine with the name of the file, or of a directory that it is in, is hidden.
            if below.iter().next() == Some(&name) || MOUNTED.iter().any(|mounted| name == *mounted) {
                continue;
            }
            if entry.file_type()?.is_symlink() {
                symlink(fs::read_link(entry.path())?, mine)?;
            } else if NODES.iter().any(|node| name == *node) {
                File::create(&mine)?;
                let node = ns::detached_copy(machine.as_fd(), &text(entry.path().as_os_str())?, false)?;
                ns::attach(node.as_fd(), handle(&mine)?.as_fd())?;
            } else {
                symlink(Path::new(MACHINE).join(&name), mine)?;
            }
        }
        let inside = ours.join(below);
        fs::create_dir_all(inside.parent().unwrap_or(ours))?;
        File::create(&inside)?.set_permissions(Permissions::from_mode(MODE))?;
        // The file is bind-mounted onto itself, so that it alone stays writable.
        let writable = ns::detached_copy(handle(&inside)?.as_fd(), c"", false)?;
        ns::make_read_only(handle(ours)?.as_fd(), false)?;
        ns::attach(writable.as_fd(), handle(&inside)?.as_fd())?;
        let file = File::options().write(true).open(&inside)?;
        let about = file.metadata()?;
        Ok(Self { path: path.to_owned(), file, owner: (about.uid(), about.gid()) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether nothing was written and neither mode nor owner changed.
    pub(crate) fn is_clean(&self) -> bool {
        self.file.metadata().is_ok_and(|about| {
            about.len() == 0 && about.mode() & 0o7777 == MODE && (about.uid(), about.gid()) == self.owner
        })
    }

    pub(crate) fn reset(&self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.set_permissions(Permissions::from_mode(MODE))
    }
}

fn handle(path: &Path) -> io::Result<OwnedFd> {
    File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path).map(OwnedFd::from)
}
