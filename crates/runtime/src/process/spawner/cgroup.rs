//! Cgroups: a memory limit for all processes of a container together. Created only for containers that have a limit,
//! where the machine allows it; elsewhere each process has a limit of its own (`memory`). Supports both versions of
//! cgroups. Leftovers of a crash are removed by the next spawner.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Prefix of our groups, followed by the pid of the spawner.
const PREFIX: &str = "octoflow-";

/// Smallest limit; a smaller one would not let any program start. Docker has the same minimum.
const MIN_LIMIT: u64 = 6 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The group of this spawner, in which groups of containers are created.
pub(crate) struct Groups {
    /// Directory of the spawner's group, which contains only groups.
    own: PathBuf,
    version: Version,
    next: AtomicU64,
    /// Groups that could not be removed yet.
    left: Mutex<Vec<PathBuf>>,
}

/// The group that this process is in, according to the kernel.
#[derive(Debug, PartialEq, Eq)]
struct CurrentGroup {
    dir: PathBuf,
    version: Version,
}

impl Groups {
    /// Creates the group of this spawner. `Err` says why that is impossible, for people.
    pub(crate) fn open() -> Result<Self, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"));
        let current = find(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)?;
        let parents = match current.version {
            Version::One => vec![current.dir],
            Version::Two => parents(&current.dir),
        };
        let mut why = String::new();
        for parent in parents {
            match Self::open_in(&parent, current.version) {
                Ok(groups) => return Ok(groups),
                Err(error) => why = format!("no group can be made in {}: {error}", parent.display()),
            }
        }
        Err(why)
    }

    fn open_in(parent: &Path, version: Version) -> io::Result<Self> {
        remove_dead_groups(parent);
        if version == Version::Two {
            give_children_memory(parent)?;
        }
        let own = parent.join(format!("{PREFIX}{}", process::id()));
        match fs::create_dir(&own) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let groups = Self { own, version, next: AtomicU64::new(0), left: Mutex::default() };
        if version == Version::Two {
            give_children_memory(&groups.own)?;
        }
        // Whether a limit can really be set shows with the first one.
        match groups.make(MIN_LIMIT) {
            Ok(group) => groups.remove(group),
            Err(error) => {
                groups.close();
                return Err(error);
            }
        }
        Ok(groups)
    }

    pub(crate) fn version(&self) -> u8 {
        match self.version {
            Version::One => 1,
            Version::Two => 2,
        }
    }

    /// Creates a group whose processes share a limit of `limit` bytes.
    pub(crate) fn make(&self, limit: u64) -> io::Result<Group> {
        self.remove_left();
        let dir = self.own.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir(&dir)?;
        match set_limit(&dir, self.version, limit) {
            Ok(joined) => Ok(Group { dir, version: self.version, joined }),
            Err(error) => {
                let _ = fs::remove_dir(&dir);
                Err(error)
            }
        }
    }

    /// Removes a group whose processes are gone.
    pub(crate) fn remove(&self, group: Group) {
        let dir = group.dir.clone();
        drop(group);
        if fs::remove_dir(&dir).is_err() {
            // The kernel needs a moment longer for the last of them.
            self.left.lock().unwrap_or_else(PoisonError::into_inner).push(dir);
        }
    }

    /// Removes everything before the process exits. Groups in use are removed by the next spawner.
    pub(crate) fn close(&self) {
        remove_tree(&self.own);
    }

    fn remove_left(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if !left.is_empty() {
            left.retain(|dir| matches!(fs::remove_dir(dir), Err(error) if error.kind() != io::ErrorKind::NotFound));
        }
    }
}

/// The group of one container.
pub(crate) struct Group {
    dir: PathBuf,
    version: Version,
    /// Writing a zero here moves the writing process into the group, with all its later children.
    joined: File,
}

impl Group {
    pub(crate) fn joining(&self) -> BorrowedFd<'_> {
        self.joined.as_fd()
    }

    /// Returns whether the kernel killed a process of the group for lack of memory.
    pub(crate) fn was_oom_killed(&self) -> bool {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        fs::read_to_string(self.dir.join(file)).is_ok_and(|text| kills(&text) > 0)
    }
}

/// Limits the group in `dir`, and opens the file through which processes join it.
fn set_limit(dir: &Path, version: Version, limit: u64) -> io::Result<File> {
    let limit = limit.max(MIN_LIMIT).to_string();
    match version {
        Version::One => {
            write(&dir.join("memory.limit_in_bytes"), &limit)?;
            // Exists only where the kernel counts swap.
            write_if_there(&dir.join("memory.memsw.limit_in_bytes"), &limit)?;
        }
        Version::Two => {
            write(&dir.join("memory.max"), &limit)?;
            write_if_there(&dir.join("memory.swap.max"), "0")?;
            // The whole container is killed if one of its processes must be.
            write_if_there(&dir.join("memory.oom.group"), "1")?;
        }
    }
    File::options().write(true).open(dir.join("cgroup.procs"))
}

fn kills(text: &str) -> u64 {
    let counts = text.lines().filter_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok());
    counts.sum()
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(text.as_bytes())
}

fn write_if_there(path: &Path, text: &str) -> io::Result<()> {
    if path.exists() { write(path, text) } else { Ok(()) }
}

/// Enables memory limits for the groups below this one.
fn give_children_memory(dir: &Path) -> io::Result<()> {
    let has = |file: &str| {
        fs::read_to_string(dir.join(file)).map(|text| text.split_whitespace().any(|word| word == "memory"))
    };
    if has("cgroup.subtree_control")? {
        return Ok(());
    }
    if !has("cgroup.controllers")? {
        return Err(io::Error::other("memory is not delegated to it"));
    }
    write(&dir.join("cgroup.subtree_control"), "+memory")
}

/// Returns the groups in which ours can be created. In version two a group with processes cannot have groups with
/// limits, so the parent is tried as well, unless that would escape a limit that was set for us.
fn parents(own: &Path) -> Vec<PathBuf> {
    let limited = fs::read_to_string(own.join("memory.max")).is_ok_and(|text| text.trim() != "max");
    let above = own.parent().filter(|above| !limited && above.join("cgroup.procs").exists());
    [own.to_owned()].into_iter().chain(above.map(Path::to_owned)).collect()
}

/// Removes the groups of dead spawners.
fn remove_dead_groups(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let spawner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if spawner.is_some_and(|spawner| !Path::new("/proc").join(spawner.to_string()).exists()) {
            remove_tree(&entry.path());
        }
    }
}

/// Removes groups as directories, with their files; groups with processes stay.
fn remove_tree(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
    let _ = fs::remove_dir(dir);
}

/// Finds the group for memory limits in the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn find(groups: &str, mounts: &str) -> Result<CurrentGroup, String> {
    let one = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "memory").then_some(path)
    });
    let (version, path) = match one {
        Some(path) => (Version::One, path),
        None => {
            let two = groups.lines().find_map(|line| line.strip_prefix("0::"));
            (Version::Two, two.ok_or("this process is in no control group")?)
        }
    };
    let dir = mounts.lines().find_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        let mut head = head.split(' ').skip(3);
        let (root, point) = (head.next()?, head.next()?);
        let (kind, options) = (tail.split(' ').next()?, tail.rsplit(' ').next()?);
        let fits = match version {
            Version::One => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
            Version::Two => kind == "cgroup2",
        };
        let below = Path::new(path).strip_prefix(root).ok().filter(|_| fits)?;
        Some(Path::new(point).join(below))
    });
    let dir = dir.ok_or("control groups for memory are not mounted here")?;
    Ok(CurrentGroup { dir, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_either_version_is_found() {
        let one = "9:memory:/a/b\n8:cpu,cpuacct:/\n0::/x\n";
        let mounts = "\
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
        let current = |version, dir: &str| Ok(CurrentGroup { dir: dir.into(), version });
        assert_eq!(find(one, mounts), current(Version::One, "/sys/fs/cgroup/memory/a/b"));
        let two = "0::/user.slice/me.scope\n";
        assert_eq!(find(two, mounts), current(Version::Two, "/sys/fs/cgroup/unified/user.slice/me.scope"));
        let below = "41 31 0:38 /user.slice /cg rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(find(two, below), current(Version::Two, "/cg/me.scope"), "a part of the tree is mounted");
        assert!(find(two, "").is_err() && find("", mounts).is_err());
    }

    /// Returns a directory that stands in for a group of version two, with the files that the kernel would create.
    fn stand_in(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    fn said(dir: &Path, file: &str) -> String {
        fs::read_to_string(dir.join(file)).unwrap()
    }

    #[test]
    fn a_group_of_version_two_limits_memory_and_swap_and_dies_as_one() {
        let files = ["memory.max", "memory.swap.max", "memory.oom.group", "cgroup.procs"].map(|name| (name, ""));
        let dir = stand_in(&files);
        set_limit(dir.path(), Version::Two, 64 << 20).unwrap();
        let found = ["memory.max", "memory.swap.max", "memory.oom.group"].map(|name| said(dir.path(), name));
        assert_eq!(found, ["67108864", "0", "1"]);
        let without_swap = stand_in(&[("memory.max", ""), ("cgroup.procs", "")]);
        set_limit(without_swap.path(), Version::Two, 1).unwrap();
        assert_eq!(said(without_swap.path(), "memory.max"), MIN_LIMIT.to_string());
        assert!(
            set_limit(stand_in(&[]).path(), Version::Two, 64 << 20).is_err(),
            "nothing is limited, and that is told"
        );
    }

    #[test]
    fn groups_below_get_memory_only_where_it_is_delegated() {
        let dir = stand_in(&[("cgroup.controllers", "cpu memory\n"), ("cgroup.subtree_control", "cpu\n")]);
        give_children_memory(dir.path()).unwrap();
        assert!(said(dir.path(), "cgroup.subtree_control").starts_with("+memory"));
        let given = stand_in(&[("cgroup.controllers", "memory\n"), ("cgroup.subtree_control", "memory\n")]);
        give_children_memory(given.path()).unwrap();
        assert_eq!(said(given.path(), "cgroup.subtree_control"), "memory\n", "it was there");
        let refused = stand_in(&[("cgroup.controllers", "cpu\n"), ("cgroup.subtree_control", "")]);
        assert!(give_children_memory(refused.path()).unwrap_err().to_string().contains("not delegated"));
    }

    #[test]
    fn a_limit_that_was_set_for_us_is_not_left() {
        let above = stand_in(&[("cgroup.procs", "")]);
        let own = above.path().join("me");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("memory.max"), "max\n").unwrap();
        assert_eq!(parents(&own), [own.clone(), above.path().to_owned()]);
        fs::write(own.join("memory.max"), "1073741824\n").unwrap();
        assert_eq!(parents(&own), std::slice::from_ref(&own));
        fs::remove_file(above.path().join("cgroup.procs")).unwrap();
        fs::write(own.join("memory.max"), "max\n").unwrap();
        assert_eq!(parents(&own), [own], "what is above is no group");
    }

    #[test]
    fn only_groups_of_dead_spawners_are_removed() {
        let dir = stand_in(&[]);
        // No process has this pid: it is above the maximum of Linux.
        let names = ["octoflow-4194305".to_owned(), format!("octoflow-{}", process::id()), "octoflow-x".to_owned()];
        for name in &names {
            fs::create_dir_all(dir.path().join(name).join("0")).unwrap();
        }
        remove_dead_groups(dir.path());
        assert_eq!(names.map(|name| dir.path().join(name).exists()), [false, true, true]);
    }

    #[test]
    fn processes_that_ran_out_of_memory_are_counted_in_either_version() {
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), 2);
        assert_eq!(kills("low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 1\n"), 1);
        assert_eq!(kills("oom 3\noom_kill 0\n"), 0);
    }
}
