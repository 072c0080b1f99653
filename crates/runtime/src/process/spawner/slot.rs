//! A slot is a prepared private file system for one task at a time: a mount namespace whose root is a writable layer
//! over the machine's own root. Creating one costs about as much as a process; entering one costs a single call. So a
//! slot that a task left unchanged is reused, and one that was written to is cleaned or discarded.

use std::{
    collections::BTreeSet,
    ffi::{CString, OsStr},
    fs::{self, File, Permissions},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::{
    device::TerminationFile,
    layers::{self, Layers, LeadingDirs},
    mounts::{self, ExtraMount, MountForm},
    pidns::{Namespace, Namespaces},
    user::{self, Survey},
};
use crate::process::{
    sys::{self, dir, ns},
    view::{self, View, by_handle, text},
    wire::Bind,
};

/// Error of creating a slot, with the step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{step}")]
pub(crate) struct Error {
    step: String,
    source: io::Error,
}

impl Error {
    /// Returns the step and the reason in one line, for people.
    pub(crate) fn explain(&self) -> String {
        format!("{}: {}", self.step, self.source)
    }
}

fn at(step: &str) -> impl FnOnce(io::Error) -> Error + '_ {
    move |source| Error { step: step.to_owned(), source }
}

/// Creates slots. Shared by all spawning threads, each of which must have its own root and working directory.
pub(crate) struct Maker {
    work: PathBuf,
    data: PathBuf,
    /// Prefix of every slot's name, so that two spawners in one data directory never collide.
    instance: String,
    next: AtomicU64,
    home: OwnedFd,
    home_root: OwnedFd,
    /// Set if the spawner runs inside a user namespace of its own.
    user: Option<Survey>,
    extra_mounts: Vec<ExtraMount>,
    /// `None` where the machine refuses PID namespaces.
    processes: Option<Namespaces>,
}

/// Directory of scripts. Nearly every script task has a file here and nowhere else, so it is in memory, where a file
/// costs a fraction of what it costs in the layer. If the machine has such a directory, that one is kept.
const STAGING: &str = "/argo";

impl Maker {
    /// Pass `unprivileged` if the spawner runs inside a user namespace of its own.
    pub(crate) fn new(
        data: &Path,
        instance: &str,
        unprivileged: bool,
        processes: Option<Namespaces>,
    ) -> io::Result<Self> {
        let table = fs::read_to_string("/proc/self/mountinfo")?;
        let mut user = if unprivileged { Some(user::survey(&table)?) } else { None };
        let extra_mounts = match &mut user {
            Some(survey) => std::mem::take(&mut survey.extra_mounts),
            None => mounts::extra_mounts(&table, data, Path::is_dir),
        };
        Ok(Self {
            work: data.join("work"),
            data: data.to_owned(),
            instance: instance.to_owned(),
            next: AtomicU64::new(0),
            home: File::open("/proc/thread-self/ns/mnt")?.into(),
            home_root: File::open("/")?.into(),
            user,
            extra_mounts,
            processes,
        })
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Returns whether a thread that created a process in a slot can create none outside of slots any more.
    pub(crate) fn is_one_way(&self) -> bool {
        self.processes.is_some() && self.home_processes().is_none()
    }

    /// Returns the PID namespace to return to after a process was created in a slot's.
    pub(crate) fn home_processes(&self) -> Option<BorrowedFd<'_>> {
        self.processes.as_ref().and_then(Namespaces::home)
    }

    /// Creates a new slot. The calling thread enters another namespace meanwhile and is back when this returns.
    /// `termination` is a path below `/dev` that the task may write to; `visible` are folders shown at their paths
    /// although their surroundings are hidden.
    pub(crate) fn make(&self, termination: Option<&Path>, visible: &[String]) -> Result<Slot, Error> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.make_in(&self.work.join(format!("{}-{number}", self.instance)), true, termination, visible)
    }

    /// Mounts a slot over a directory that an earlier spawner left, so that outputs can be read from it.
    pub(crate) fn restore(&self, dir: &Path) -> Result<Slot, Error> {
        self.make_in(dir, false, None, &[])
    }

    fn make_in(&self, dir: &Path, anew: bool, termination: Option<&Path>, visible: &[String]) -> Result<Slot, Error> {
        fs::create_dir_all(dir).map_err(at("making the work directory"))?;
        ns::unshare(libc::CLONE_NEWNS).map_err(at("making a mount namespace"))?;
        let made = self.set_up(dir, anew, termination, visible);
        ns::enter_mounts(self.home.as_fd()).map_err(at("returning from the new mount namespace"))?;
        ns::root_at(self.home_root.as_fd()).map_err(at("returning to the old root"))?;
        made
    }

    /// Sets up the slot. Runs inside the new namespace.
    fn set_up(&self, dir: &Path, anew: bool, termination: Option<&Path>, visible: &[String]) -> Result<Slot, Error> {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        ns::mount(c"none", c"/", None, private, c"").map_err(at("making the mounts private"))?;
        let dir_text = text(dir.as_os_str()).map_err(at("naming the work directory"))?;
        ns::change_dir(&dir_text).map_err(at("entering the work directory"))?;

        let staged = !Path::new(STAGING).exists();
        let seeded = self.lay_root()?;
        if let Err(on_disk) = self.mount_root() {
            if !anew {
                return Err(on_disk);
            }
            // The data directory's file system cannot carry an overlay (it is one itself, or a network share).
            ns::mount(c"octoflow", c".", Some(c"tmpfs"), libc::MS_NOSUID, c"mode=0755")
                .and_then(|()| ns::change_dir(&dir_text))
                .map_err(|_| Error { step: on_disk.step.clone(), source: clone_of(&on_disk.source) })?;
            self.lay_root()?;
            self.mount_root().map_err(|_| on_disk)?;
        }
        let mut layers = Layers::default();
        for (index, other) in self.extra_mounts.iter().enumerate() {
            self.show(index, other, &mut layers)?;
        }
        let leading_dirs = self.show_folders(visible, &mut layers)?;
        let make = self.processes.as_ref().filter(|_| anew);
        let mut processes = make.map(Namespaces::make).transpose().map_err(at("making a PID namespace"))?;
        let termination_file = self.mount_kernel_views(processes.as_mut(), termination)?;
        if staged {
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            ns::mount(c"octoflow", c"root/argo", Some(c"tmpfs"), flags, c"mode=0755").map_err(at("making /argo"))?;
        }
        self.hide_data()?;
        let upper = open_dir("upper")?;
        let upper_about = attributes(&upper, self.user.is_some()).map_err(at("looking at the private layer"))?;
        ns::change_dir(c"root").and_then(|()| ns::pivot_here()).map_err(at("moving to the new root"))?;

        let root = sys::open_at(self.home_root.as_fd(), c"/", libc::O_PATH | libc::O_DIRECTORY, 0)
            .map_err(at("opening the new root"))?;
        // Through the old root: the new `/proc` may not contain this thread.
        let of_thread = |path| sys::open_at(self.home_root.as_fd(), path, libc::O_RDONLY, 0).map(File::from);
        let namespace = of_thread(c"proc/thread-self/ns/mnt").map_err(at("opening the new namespace"))?;
        Ok(Slot {
            dir: dir.to_owned(),
            view: View::new(root),
            mark: namespace.metadata().map_err(at("looking at the new namespace"))?.ino(),
            namespace: namespace.into(),
            processes,
            table: of_thread(c"proc/thread-self/mountinfo").map_err(at("opening the mount table"))?,
            upper,
            upper_about,
            memory: ["/dev/shm", STAGING]
                .into_iter()
                .filter(|dir| *dir != STAGING || staged)
                .map(|dir| File::open(dir).map_err(at("opening a directory in memory")))
                .collect::<Result<_, _>>()?,
            seeded,
            termination_file,
            hosts: None,
            layers,
            leading_dirs,
            strict: self.user.is_some(),
            spent: false,
            visible: visible.to_vec(),
            first_used: None,
        })
    }

    /// Creates the directories of the layer; returns the names that belong there.
    fn lay_root(&self) -> Result<BTreeSet<CString>, Error> {
        for name in ["upper", "work", "root", "upper/tmp"] {
            make_dir(name)?;
        }
        fs::set_permissions("upper", Permissions::from_mode(0o755)).map_err(at("opening the private layer"))?;
        fs::set_permissions("upper/tmp", Permissions::from_mode(0o1777)).map_err(at("opening the private /tmp"))?;
        let mut seeded = BTreeSet::from([CString::from(c"tmp")]);
        if !Path::new(STAGING).exists() {
            make_dir("upper/argo")?;
            seeded.insert(CString::from(c"argo"));
        }
        match &self.user {
            Some(survey) => seeded.extend(lay_for_user(survey)?),
            None => ns::set_attribute(c"upper/tmp", c"trusted.overlay.opaque", b"y")
                .map_err(at("hiding the machine's /tmp"))?,
        }
        forget_volatile(Path::new(""));
        Ok(seeded)
    }

    fn mount_root(&self) -> Result<(), Error> {
        if self.user.is_some() {
            return ns::mount(c"upper", c"root", None, libc::MS_BIND, c"").map_err(at("binding a root of our own"));
        }
        let options = self.options("lowerdir=/,upperdir=upper,workdir=work");
        ns::mount(c"octoflow", c"root", Some(c"overlay"), 0, &options).map_err(at("laying a private layer over /"))
    }

    /// Returns the mount options. Nothing in the layer must survive a power cut, so the kernel need not sync it.
    fn options(&self, base: &str) -> CString {
        let tail = if self.user.is_some() { ",volatile,userxattr" } else { ",volatile" };
        CString::new(format!("{base}{tail}")).expect("options have no NUL")
    }

    /// Shows one more mount of the machine below the new root. One that has vanished meanwhile is skipped.
    fn show(&self, index: usize, other: &ExtraMount, layers: &mut Layers) -> Result<(), Error> {
        let below = Path::new("root").join(other.point.strip_prefix("/").unwrap_or(&other.point));
        let step = format!("showing {}", other.point.display());
        if !below.exists() {
            return Ok(());
        }
        let target = text(below.as_os_str()).map_err(at(&step))?;
        let plain = !other.point.as_os_str().as_encoded_bytes().iter().any(|byte| b",:\\".contains(byte));
        if other.form == MountForm::Overlay && plain {
            let layer = format!("layer{index}");
            for name in [layer.clone(), format!("{layer}/upper"), format!("{layer}/work")] {
                make_dir(&name)?;
            }
            forget_volatile(Path::new(&layer));
            let lower = other.point.display();
            let options = self.options(&format!("lowerdir={lower},upperdir={layer}/upper,workdir={layer}/work"));
            if ns::mount(c"octoflow", &target, Some(c"overlay"), 0, &options).is_ok() {
                return layers.add(&layer).map_err(at(&step));
            }
        }
        match self.bind(other.point.as_os_str(), &target, true) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !other.point.exists() => Ok(()),
            bound => bound.map_err(at(&step)),
        }
    }

    /// Shows folders of the machine below directories that are otherwise hidden. One that has vanished is skipped.
    fn show_folders(&self, folders: &[String], layers: &mut Layers) -> Result<LeadingDirs, Error> {
        let mut leading_dirs = LeadingDirs::default();
        for (index, folder) in folders.iter().enumerate() {
            let point = PathBuf::from(folder);
            if !point.is_dir() {
                continue;
            }
            let below = Path::new("root").join(point.strip_prefix("/").unwrap_or(&point));
            let made = fs::create_dir_all(below).and_then(|()| match point.strip_prefix("/tmp") {
                Ok(folder) => leading_dirs.add(Path::new("upper/tmp"), folder),
                Err(_) => Ok(()),
            });
            made.map_err(at("making room for a folder that is shown"))?;
            self.show(self.extra_mounts.len() + index, &ExtraMount { point, form: MountForm::Overlay }, layers)?;
        }
        Ok(leading_dirs)
    }

    /// Binds a tree of the machine, with everything mounted in it.
    fn bind(&self, source: &OsStr, target: &CString, read_only: bool) -> io::Result<()> {
        let copy = ns::detached_copy(self.home_root.as_fd(), &text(source)?, true)?;
        if read_only {
            ns::make_read_only(copy.as_fd(), true)?;
        }
        let here = File::open(".")?;
        let target = sys::open_at(here.as_fd(), target, libc::O_PATH, 0)?;
        ns::attach(copy.as_fd(), target.as_fd())
    }

    /// Mounts the kernel's file systems. Devices are the machine's own; what could change the machine is read-only,
    /// shared memory is private, and so are processes where the machine allows it.
    fn mount_kernel_views(
        &self,
        processes: Option<&mut Namespace>,
        termination: Option<&Path>,
    ) -> Result<Option<TerminationFile>, Error> {
        let bind = |path: &str, read_only: bool| {
            self.bind(OsStr::new(path), &CString::new(format!("root{path}")).expect("a constant"), read_only)
        };
        match processes.and_then(Namespace::take_proc) {
            Some(own) => show_proc(&own).map_err(at("showing /proc"))?,
            None => {
                bind("/proc", false).map_err(at("showing /proc"))?;
                bind("/proc/sys", true).map_err(at("showing /proc/sys"))?;
            }
        }
        bind("/sys", true).map_err(at("showing /sys"))?;
        let termination_file = match termination {
            Some(path) => Some(
                TerminationFile::create(path, &self.home_root).map_err(at("making the termination message file"))?,
            ),
            None => {
                // Device nodes on a read-only mount still work; only new entries are refused.
                bind("/dev", true).map_err(at("showing /dev"))?;
                None
            }
        };
        if Path::new("/dev/pts").is_dir() {
            bind("/dev/pts", false).map_err(at("showing /dev/pts"))?;
        }
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        ns::mount(c"octoflow", c"root/dev/shm", Some(c"tmpfs"), flags, c"mode=1777").map_err(at("private /dev/shm"))?;
        Ok(termination_file)
    }

    /// Hides the data directory, which holds the logs, Secrets and tokens of everyone. Below `/tmp` it is hidden
    /// already.
    fn hide_data(&self) -> Result<(), Error> {
        let below = Path::new("root").join(self.data.strip_prefix("/").unwrap_or(&self.data));
        if !below.is_dir() {
            return Ok(());
        }
        text(below.as_os_str())
            .and_then(|target| ns::mount(c"octoflow", &target, Some(c"tmpfs"), libc::MS_RDONLY, c"size=4k,mode=0755"))
            .map_err(at("hiding the data directory"))
    }
}

/// One private file system.
pub(crate) struct Slot {
    dir: PathBuf,
    view: View,
    /// Number of the mount namespace, which identifies the processes of this slot.
    mark: u64,
    namespace: OwnedFd,
    /// PID namespace of its tasks, one after the other.
    processes: Option<Namespace>,
    /// The open mount table, which signals changes.
    table: File,
    upper: File,
    upper_about: Attributes,
    /// Directories in memory.
    memory: Vec<File>,
    /// Names in the private layer that existed before any task.
    seeded: BTreeSet<CString>,
    /// File for the termination message below `/dev`.
    termination_file: Option<TerminationFile>,
    /// Hosts file that is mounted.
    hosts: Option<Bind>,
    /// Folders that are visible although their surroundings are hidden.
    visible: Vec<String>,
    layers: Layers,
    leading_dirs: LeadingDirs,
    /// True if the root is a plain directory, in which any change at all counts.
    strict: bool,
    /// True if something was mounted, for a task or by one; such a slot is used once.
    spent: bool,
    /// Time at which the first task ended here.
    first_used: Option<Instant>,
}

/// How long one slot may serve a steady stream of tasks.
const BURST: Duration = Duration::from_secs(2);

impl Slot {
    pub(crate) fn namespace(&self) -> &OwnedFd {
        &self.namespace
    }

    pub(crate) fn processes(&self) -> Option<&Namespace> {
        self.processes.as_ref()
    }

    /// Kills the processes that a task left, after its main process was reaped. Returns whether nothing runs any more.
    pub(crate) fn end_processes(&mut self) -> bool {
        self.processes.as_mut().is_none_or(Namespace::clear)
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn mark(&self) -> u64 {
        self.mark
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the termination message file below `/dev` that it was created with.
    pub(crate) fn termination(&self) -> Option<&Path> {
        self.termination_file.as_ref().map(TerminationFile::path)
    }

    pub(crate) fn visible(&self) -> &[String] {
        &self.visible
    }

    pub(crate) fn hosts(&self) -> Option<&Bind> {
        self.hosts.as_ref()
    }

    /// Records that the only mount in a new slot is this hosts file, which does not prevent reuse: tasks with the same
    /// hosts may follow each other here.
    pub(crate) fn keep_hosts(&mut self, hosts: &Bind) {
        self.hosts = Some(hosts.clone());
        self.spent = false;
        // The table signals this mount too, once; that signal is consumed here.
        ns::mounts_changed(self.table.as_fd());
    }

    /// Attaches a detached mount inside the slot.
    pub(crate) fn attach(&mut self, mount: &OwnedFd, point: &OwnedFd, home: &Maker) -> io::Result<()> {
        self.spent = true;
        ns::enter_mounts(self.namespace.as_fd())?;
        let attached = ns::attach(mount.as_fd(), point.as_fd());
        ns::enter_mounts(home.home.as_fd())?;
        ns::root_at(home.home_root.as_fd())?;
        attached
    }

    /// Returns whether the last task left it unchanged.
    pub(crate) fn is_clean(&mut self) -> bool {
        // The table signals a change only once, so it is remembered.
        self.spent |= ns::mounts_changed(self.table.as_fd());
        self.spent |= self.processes.as_ref().is_some_and(|processes| !processes.is_usable());
        !self.spent && self.looks_clean().unwrap_or(false)
    }

    /// Returns whether a task may still get it. The kernel caches what a task looked up below the layer, also what did
    /// not exist; when the machine's own files change, a used slot may not see it. So a slot serves one busy period,
    /// and not for long.
    pub(crate) fn is_fresh(&self, now: Instant, busy_since: Instant) -> bool {
        self.first_used.is_none_or(|first| first >= busy_since && now.duration_since(first) < BURST)
    }

    /// Records that a task has used it.
    pub(crate) fn mark_used(&mut self, now: Instant) {
        self.first_used.get_or_insert(now);
    }

    fn looks_clean(&self) -> io::Result<bool> {
        let mut seen = 0;
        let known = dir::all(self.upper.as_fd(), |name| {
            seen += 1;
            self.seeded.contains(name)
        })?;
        Ok(known
            && seen == self.seeded.len()
            && attributes(&self.upper, self.strict)? == self.upper_about
            && self.seeded.iter().filter(|name| !self.strict || is_tmp(name)).all(|name| self.is_empty_below(name))
            && self.memory.iter().all(|open| dir::is_empty(open.as_fd()).unwrap_or(false))
            && self.termination_file.as_ref().is_none_or(TerminationFile::is_clean)
            && self.layers.are_untouched(&self.upper)?)
    }

    fn is_empty_below(&self, name: &CString) -> bool {
        let dir = sys::open_at(self.upper.as_fd(), name, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW, 0);
        dir.and_then(|dir| {
            let dir = File::from(dir);
            if is_tmp(name) {
                return Ok(dir.metadata()?.mode() & 0o7777 == 0o1777 && self.leading_dirs.are_all_in(&dir)?);
            }
            dir::is_empty(dir.as_fd())
        })
        .unwrap_or(false)
    }

    /// Removes what a task left, through its own view so that the kernel's caches stay correct. Returns whether the
    /// slot is clean; if the task changed what the machine has too, only a new slot will do.
    pub(crate) fn clean(&mut self) -> bool {
        // Writes to other layers cannot be undone.
        let cleanable = !self.spent && self.layers.are_untouched(&self.upper).unwrap_or(false);
        cleanable && self.remove_changes().is_ok() && self.is_clean()
    }

    fn remove_changes(&self) -> io::Result<()> {
        self.termination_file.as_ref().map(TerminationFile::reset).transpose()?;
        for dir in &self.memory {
            view::clear(File::open(by_handle(dir))?.into())?;
        }
        for entry in fs::read_dir(by_handle(&self.upper))? {
            let name = entry?.file_name();
            let at_top = Path::new("/").join(&name);
            let name = text(&name)?;
            let is_tmp = is_tmp(&name);
            if self.seeded.contains(&name) && !is_tmp {
                continue;
            }
            if !is_tmp && fs::symlink_metadata(&at_top).is_ok() {
                return Err(io::Error::other("the machine has something of this name too"));
            }
            let root = self.view.as_fd();
            if is_tmp {
                let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
                self.leading_dirs.clear_around(sys::open_at(root, &name, flags, 0)?)?;
            } else {
                layers::remove(root, &name)?;
            }
        }
        Ok(())
    }

    /// Removes the slot with its directory.
    pub(crate) fn discard(self) {
        let dir = self.dir.clone();
        // The namespace ends with its last descriptor, and only then is the layer ours alone.
        drop(self);
        // What cannot be removed now is removed by the next spawner, which sweeps the work directory.
        let _ = view::remove_dir(&dir);
    }
}

/// Mounts a namespace's own `/proc`, with `/proc/sys` read-only.
fn show_proc(own: &OwnedFd) -> io::Result<()> {
    let here = File::open(".")?;
    let at = |path| sys::open_at(here.as_fd(), path, libc::O_PATH, 0);
    ns::attach(own.as_fd(), at(c"root/proc")?.as_fd())?;
    let switches = ns::detached_copy(here.as_fd(), c"root/proc/sys", true)?;
    ns::make_read_only(switches.as_fd(), true)?;
    ns::attach(switches.as_fd(), at(c"root/proc/sys")?.as_fd())
}

fn make_dir(name: &str) -> Result<(), Error> {
    match fs::create_dir(name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(at("making the private layer")(error)),
        _ => Ok(()),
    }
}

fn open_dir(name: &str) -> Result<File, Error> {
    File::open(name).map_err(at("opening the private layer"))
}

/// Properties of a directory that must not change: mode, owner, and where it matters the time of the last change.
type Attributes = (u32, u32, u32, (i64, i64));

fn attributes(dir: &File, strict: bool) -> io::Result<Attributes> {
    let about = dir.metadata()?;
    let changed = if strict { (about.ctime(), about.ctime_nsec()) } else { (0, 0) };
    Ok((about.mode(), about.uid(), about.gid(), changed))
}

fn is_tmp(name: &CString) -> bool {
    name.as_c_str() == c"tmp"
}

/// Creates the skeleton of the machine's root; returns the names at its top.
fn lay_for_user(survey: &Survey) -> Result<Vec<CString>, Error> {
    let failed = at("making a root of our own");
    let own = |path: &Path| Path::new("upper").join(path.strip_prefix("/").unwrap_or(path));
    let lay = || -> io::Result<Vec<CString>> {
        let exists_already = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        };
        for dir in &survey.dirs {
            fs::create_dir(own(dir)).or_else(exists_already)?;
        }
        for (link, target) in &survey.links {
            std::os::unix::fs::symlink(target, own(link)).or_else(exists_already)?;
        }
        let all = survey.dirs.iter().chain(survey.links.iter().map(|(link, _)| link));
        let at_top = all.filter(|path| path.parent() == Some(Path::new("/")));
        at_top.filter_map(|path| path.file_name()).map(text).collect()
    };
    lay().map_err(failed)
}

fn clone_of(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error)
}

/// Removes the kernel's mark of a `volatile` layer, which would refuse to be mounted again.
fn forget_volatile(layer: &Path) {
    let _ = view::remove_dir(&layer.join("work").join("work").join("incompat"));
}
