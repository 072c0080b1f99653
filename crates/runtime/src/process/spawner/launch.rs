//! Turns one `Launch` into a running process: mounts and files into its slot, pipes, clone. Runs on a spawning thread.
//! Failures are the attempt's end, worded for people, never an error of ours.

use std::{
    ffi::CString,
    fs::{self, File, Permissions},
    io::{self, Seek, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::fs::{OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use octoflow_model::time::Time;

use super::slot::{Maker, Slot};
use crate::process::{
    clone::{self, Failure, Plan, Stack, Step},
    hostpath::HostPaths,
    memory,
    sys::{self, ns},
    view::{Inside, View},
    wire::{Bind, Ended, HostMounts, Launch, PodPlan, Wire as _},
};
use crate::shortage::Shortage;

/// A process that was just started.
pub(crate) struct Spawned {
    pub(crate) pid: i32,
    pub(crate) at: Time,
    pub(crate) stdout: OwnedFd,
    /// `None` for a terminal, which has one stream only.
    pub(crate) stderr: Option<OwnedFd>,
    /// Spare descriptor, held for its log.
    pub(crate) reserve: OwnedFd,
}

/// Descriptors that no task may take, so that an engine can connect and get what it asks for. New descriptors always
/// have the lowest free number, so the number of one tells how many are left.
const HEADROOM: u64 = 6;
/// Descriptors that a start takes beyond its workspace, plus the headroom.
pub(crate) const ROOM_FOR_A_START: u64 = HEADROOM + 10;

/// Checks that so many descriptors are left.
pub(crate) fn leave_room(null: &File, room: u64) -> Result<(), Ended> {
    reserve(null, room).map(drop)
}

/// Reserves a descriptor if `room` more are left.
fn reserve(null: &File, room: u64) -> Result<OwnedFd, Ended> {
    let none = |error: io::Error| Ended::Environment(format!("no descriptors are left for it: {error}"));
    let reserve = null.as_fd().try_clone_to_owned().map_err(none)?;
    if u64::from(reserve.as_raw_fd().unsigned_abs()) + room >= sys::descriptor_limit() {
        return Err(none(io::Error::from_raw_os_error(libc::EMFILE)));
    }
    Ok(reserve)
}

/// Fills a slot with what the task expects: volumes and files.
pub(crate) fn populate(launch: &Launch, slot: Option<&mut Slot>, maker: Option<&Maker>) -> Result<(), Ended> {
    let host;
    let view = match (slot, maker) {
        (Some(slot), Some(maker)) => {
            if let (Some(hosts), None) = (&launch.hosts, slot.hosts()) {
                // Before anything else is mounted.
                bind(hosts, slot, maker)?;
                slot.keep_hosts(hosts);
            }
            let mut mounts: Vec<&Bind> = launch.mounts.iter().collect();
            mounts.sort_by_key(|mount| Path::new(&mount.path).components().count());
            for mount in mounts {
                let of_machine = launch.host.as_ref().filter(|host| host.points.contains(&mount.path));
                bind_judged(mount, of_machine.map(|host| rule(host)).as_ref(), slot, maker)?;
            }
            create_termination_file(launch, slot, maker);
            slot.view()
        }
        _ if launch.files.is_empty() => return Ok(()),
        _ => {
            host = View::host().map_err(|error| Ended::Environment(format!("the root cannot be opened: {error}")))?;
            &host
        }
    };
    for file in &launch.files {
        let path = Inside::new(&file.path, "/").map_err(Ended::Environment)?;
        view.write_file(path.path(), &file.contents.0, file.mode)
            .map_err(|error| Ended::Environment(format!("the file `{}` could not be placed: {error}", file.path)))?;
    }
    Ok(())
}

/// Creates the empty file for the termination message, whatever the machine has at its path. If that is impossible, the
/// task runs without.
fn create_termination_file(launch: &Launch, slot: &mut Slot, maker: &Maker) {
    let Some(name) = launch.termination.as_ref().and_then(|termination| termination.path.as_deref()) else { return };
    let path = Path::new(name);
    if slot.termination() == Some(path) || launch.files.iter().any(|file| Path::new(&file.path) == path) {
        return;
    }
    // A file in a volume must not be truncated, and a user may not be able to replace what the machine has there.
    let in_volume = launch.mounts.iter().any(|mount| path.starts_with(&mount.path));
    if in_volume || slot.view().write_file(path, b"", 0o666).is_err() {
        let file = slot.dir().join("words");
        let laid = File::create(&file).and_then(|file| file.set_permissions(Permissions::from_mode(0o666)));
        let source = Some(file.to_string_lossy().into_owned());
        let (path, scratch) = (name.to_owned(), String::new());
        let mount = Bind { path, source, scratch, make: false, sub_path: None, read_only: false };
        let _ = laid.is_ok() && bind(&mount, slot, maker).is_ok();
    }
}

fn rule(host: &HostMounts) -> HostPaths {
    match &host.below {
        None => HostPaths::Any,
        Some(prefixes) => HostPaths::Below(prefixes.iter().map(PathBuf::from).collect()),
    }
}

/// Mounts a directory (or file) of the machine inside the slot.
pub(crate) fn bind(mount: &Bind, slot: &mut Slot, maker: &Maker) -> Result<(), Ended> {
    bind_judged(mount, None, slot, maker)
}

/// Mounts a path that a manifest named: the opened file is checked, so that no link leads elsewhere.
fn bind_judged(mount: &Bind, rule: Option<&HostPaths>, slot: &mut Slot, maker: &Maker) -> Result<(), Ended> {
    let failed = |what: &str, error: &io::Error| {
        Ended::Environment(format!("the volume at `{}` could not be mounted: {what}: {error}", mount.path))
    };
    let scratch = slot.dir().join("scratch").join(&mount.scratch);
    let source = mount.source.as_deref().map_or(scratch.as_path(), Path::new);
    if mount.make || mount.source.is_none() {
        fs::create_dir_all(source).map_err(|error| failed("making its directory", &error))?;
    }
    let mut handle: OwnedFd = File::options()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(source)
        .map_err(|error| failed(&format!("opening `{}`", source.display()), &error))?
        .into();
    if let Some(sub_path) = &mount.sub_path {
        let below = Inside::new(sub_path, "/").map_err(Ended::Environment)?;
        let root = View::new(handle);
        let existing = sys::open_inside(root.as_fd(), &cstring(&below.path().to_string_lossy())?, libc::O_PATH, 0);
        handle = existing
            .or_else(|_| root.make_dir(below.path()))
            .map_err(|error| failed(&format!("making `{sub_path}` in it"), &error))?;
    }
    let file = File::from(handle.try_clone().map_err(|error| failed("looking at it", &error))?);
    let hidden = match rule {
        Some(rule) => rule.check_opened(&file, maker.data()).map_err(Ended::Environment)?,
        None => None,
    };
    let directory = file.metadata().map_err(|error| failed("looking at it", &error))?.is_dir();
    let copy = ns::detached_copy(handle.as_fd(), c"", true).map_err(|error| failed("copying the mount", &error))?;
    if mount.read_only {
        ns::make_read_only(copy.as_fd(), true).map_err(|error| failed("making it read-only", &error))?;
    }
    let path = Inside::new(&mount.path, "/").map_err(Ended::Environment)?;
    let point =
        slot.view().mount_point(path.path(), directory).map_err(|error| failed("making the mount point", &error))?;
    slot.attach(&copy, &point, maker).map_err(|error| failed("mounting it", &error))?;
    let Some(below) = hidden else { return Ok(()) };
    let hide = || -> io::Result<()> {
        let data = slot.view().mount_point(&path.path().join(below), true)?;
        slot.attach(&ns::new_mount(c"tmpfs", libc::MOUNT_ATTR_RDONLY)?, &data, maker)
    };
    hide().map_err(|error| failed("hiding the data directory in it", &error))
}

/// Starts the process.
pub(crate) fn start(
    launch: &Launch,
    inside: Option<(&Slot, &Maker)>,
    mark: &str,
    null: &File,
    stack: &mut Stack,
) -> Result<Spawned, Ended> {
    let slot = inside.map(|(slot, _)| slot);
    let no_streams = |error: io::Error| Ended::Environment(format!("no pipes for its output: {error}"));
    let (stdin, stdout, stderr);
    let plan = launch.pod_plan.as_deref().map(plan_of).transpose()?;
    let (our_stdout, our_stderr) = if launch.tty {
        let (ours, theirs) = sys::terminal().map_err(|error| Ended::Environment(format!("no terminal: {error}")))?;
        (stdin, stdout, stderr) = (theirs.try_clone(), theirs.try_clone(), theirs);
        (ours, None)
    } else {
        let (out_read, out_write) = sys::pipe().map_err(no_streams)?;
        let (err_read, err_write) = sys::pipe().map_err(no_streams)?;
        let input = plan.map_or_else(|| null.as_fd().try_clone_to_owned(), Ok);
        (stdin, stdout, stderr) = (input, Ok(out_write), err_write);
        (out_read, Some(err_read))
    };
    let (stdin, stdout) = (stdin.map_err(no_streams)?, stdout.map_err(no_streams)?);
    // The log opens its file with the first output, and that must not fail for lack of a descriptor.
    let reserve = reserve(null, HEADROOM)?;
    let mut env = cstrings(&launch.env)?;
    env.push(cstring(mark)?);
    // The supervisor puts its containers into their groups.
    let members = launch.pod_plan.iter().flat_map(|pod_plan| &pod_plan.members);
    let inherited: Vec<RawFd> = members.filter_map(|member| member.launch.group).collect();
    let hostname = launch.hostname.as_deref().filter(|_| slot.is_some()).map(cstring).transpose()?;
    let plan = Plan {
        hostname: hostname.as_deref(),
        namespace: slot.map(|slot| slot.namespace().as_fd()),
        processes: inside.and_then(|(slot, maker)| Some((slot.processes()?.init(), maker.home_processes()))),
        stdin: stdin.as_fd(),
        stdout: stdout.as_fd(),
        stderr: stderr.as_fd(),
        terminal: launch.tty,
        group: launch.group,
        inherited: &inherited,
        // Where a cgroup enforces the limit, processes need none of their own.
        data_limit: launch.memory_limit.filter(|_| launch.group.is_none()).map(memory::data_limit),
        // An ordinary user's task has none of them in the machine's namespaces.
        confined: slot.is_some() && sys::effective_uid() == 0,
        dir: &cstring(&launch.dir)?,
        programs: &cstrings(&launch.programs)?,
        args: &cstrings(&launch.args)?,
        env: &env,
    };
    let at = sys::now();
    let outcome = match clone::spawn(&plan, stack) {
        Err(Failure::Child(Step::Directory, error)) if error.kind() == io::ErrorKind::NotFound => {
            make_working_dir(launch, slot)?;
            clone::spawn(&plan, stack)
        }
        other => other,
    };
    let pid = outcome.map_err(|failure| explain(&failure, launch))?;
    Ok(Spawned { pid, at, stdout: our_stdout, stderr: our_stderr, reserve })
}

/// Returns a supervisor's plan as a memory file, which becomes its standard input.
fn plan_of(pod_plan: &PodPlan) -> Result<OwnedFd, Ended> {
    let mut bytes = Vec::new();
    pod_plan.put(&mut bytes);
    let write = || -> io::Result<OwnedFd> {
        let mut file = File::from(sys::memory_file(c"octoflow-pod")?);
        file.write_all(&bytes)?;
        file.rewind()?;
        Ok(file.into())
    };
    write().map_err(|error| Ended::Environment(format!("the plan of its containers could not be handed over: {error}")))
}

/// Creates a missing working directory inside a slot. Without isolation it must exist.
fn make_working_dir(launch: &Launch, slot: Option<&Slot>) -> Result<(), Ended> {
    let failed = |error: io::Error| {
        Ended::Environment(format!("the working directory `{}` could not be made: {error}", launch.dir))
    };
    let dir = Inside::new(&launch.dir, "/").map_err(Ended::NotStarted)?;
    match slot {
        Some(slot) => slot.view().make_dir(dir.path()).map(drop).map_err(failed),
        None => Err(Ended::NotStarted(format!("the working directory `{}` does not exist", launch.dir))),
    }
}

/// Returns the shortage that prevented a start.
pub(crate) fn shortage(why: &Ended) -> Option<Shortage> {
    match why {
        Ended::Environment(why) => Shortage::in_text(why),
        // When exec fails, the kernel reports a lack of memory in the same way as a program that is too large for the
        // machine; only these two shortages are certainly temporary.
        Ended::NotStarted(why) => {
            Shortage::in_text(why).filter(|short| matches!(short, Shortage::Descriptors | Shortage::Processes))
        }
        Ended::Code(_) | Ended::Signal(_) | Ended::OutOfMemory | Ended::Evicted(_) => None,
    }
}

fn explain(failure: &Failure, launch: &Launch) -> Ended {
    let called = &launch.called;
    match failure {
        Failure::Clone(error) => Ended::Environment(format!("no process could be made: {error}")),
        Failure::Child(Step::Exec, error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) if !called.contains('/') => {
                Ended::NotStarted(format!("exec: \"{called}\": executable file not found in $PATH"))
            }
            Some(libc::ENOENT | libc::ENOTDIR) => {
                Ended::NotStarted(format!("exec: \"{called}\": stat {called}: no such file or directory"))
            }
            Some(libc::EACCES) => Ended::NotStarted(format!("exec: \"{called}\": permission denied")),
            Some(libc::ENOEXEC) => Ended::NotStarted(format!("exec: \"{called}\": exec format error")),
            Some(libc::E2BIG) => Ended::NotStarted(format!("exec: \"{called}\": argument list too long")),
            _ => Ended::NotStarted(format!("exec: \"{called}\": {error}")),
        },
        Failure::Child(Step::Directory, error) => {
            Ended::NotStarted(format!("the working directory `{}` cannot be entered: {error}", launch.dir))
        }
        Failure::Child(step, error) => {
            let what = match step {
                Step::Namespace => "its private file system could not be entered",
                Step::Terminal => "its terminal could not be set up",
                Step::Streams => "its standard streams could not be set up",
                Step::Memory => "its limit of memory could not be set",
                Step::Privileges => "its privileges could not be limited",
                Step::Directory | Step::Exec => "it could not be started",
            };
            Ended::Environment(format!("{what}: {error}"))
        }
    }
}

fn cstring(text: &str) -> Result<CString, Ended> {
    CString::new(text).map_err(|_| Ended::NotStarted(format!("{text:?} contains a NUL byte")))
}

fn cstrings(texts: &[String]) -> Result<Vec<CString>, Ended> {
    texts.iter().map(|text| cstring(text)).collect()
}
