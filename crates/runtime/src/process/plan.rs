//! Turns a task into what the spawner needs: program, environment, files and mounts. Everything is decided here, so
//! that the spawner only obeys. Touches no file of the task.

mod pod;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use octoflow_model::{
    ids::AttemptId,
    order::Exit,
    task::{Archive, ArtifactSource, File, Mount, MountSource, Task, TaskContainer},
};

use super::{
    entrypoint::ProgramTable,
    environment::BaseEnvironment,
    hostpath::{self, HostPaths},
    hosts,
    view::Inside,
    wire::{Bind, Bytes, DIR_PLACEHOLDER, FileToWrite, HostMounts, Launch, TerminationSource},
};

/// Configuration of the runtime that planning needs.
pub(crate) struct PlanContext {
    pub(crate) data: PathBuf,
    pub(crate) base: BaseEnvironment,
    pub(crate) programs: ProgramTable,
    pub(crate) host_paths: HostPaths,
    /// Folders shown at their paths although their surroundings are hidden there.
    pub(crate) visible: Vec<String>,
    /// Limit of the private file system for tasks without one.
    pub(crate) storage_limit: Option<u64>,
    /// Bytes of the data directory's file system that tasks leave free; `None` means the default.
    pub(crate) space_floor: Option<u64>,
}

pub(crate) struct Planned {
    pub(crate) launch: Box<Launch>,
    /// True if artifacts must be staged between preparation and start.
    pub(crate) stage: bool,
    /// Without isolation: paths of the machine itself that inputs need. They must be free.
    pub(crate) occupied: Vec<PathBuf>,
}

/// Returns the directory that relative paths start at, as the task sees it.
pub(crate) fn working_dir(task: &Task) -> &str {
    task.main.working_dir.as_deref().unwrap_or("/")
}

/// Reason why an attempt cannot be planned, and the container that it concerns.
#[derive(Debug)]
pub(crate) struct PlanError {
    pub(crate) exit: Exit,
    pub(crate) member: Option<usize>,
}

impl From<Exit> for PlanError {
    fn from(exit: Exit) -> Self {
        Self { exit, member: None }
    }
}

/// Plans an attempt. `hosts` is the task's hosts file, if it has one.
pub(crate) fn plan(
    attempt: AttemptId,
    task: &Task,
    hosts: Option<&Path>,
    isolated: bool,
    context: &PlanContext,
) -> Result<Planned, PlanError> {
    let progress = task.progress.as_ref().map(|variable| (variable.as_str(), progress_file(isolated)));
    let known = hosts.map(|file| if isolated { place_of_hosts(task).to_owned() } else { file.display().to_string() });
    let own_env = own_env(progress, known.as_deref(), isolated);
    let mut launch = match &task.pod {
        None => run(attempt, &task.main, &own_env, isolated, context)?,
        Some(pod) => pod::supervisor(attempt, task, pod, &own_env, isolated, context)?,
    };
    launch.termination = termination(task, isolated)?;
    launch.storage_limit = storage_limit(task).or(context.storage_limit);
    launch.keep = !task.wanted.parameters.is_empty() || !task.wanted.artifacts.is_empty();
    launch.hostname = task.hostname.clone().filter(|_| isolated);
    launch.progress = progress.map(|(_, path)| path.to_owned());
    if task.pod.is_none() {
        launch.grace_ms = millis(task.grace);
    }
    let mut occupied = Vec::new();
    for file in pod::files(task).map_err(Exit::Environment)?.into_iter().chain(raw_inputs(task)) {
        let path = Inside::new(&file.path, working_dir(task)).map_err(Exit::Environment)?;
        let mut laid = FileToWrite {
            path: path.path().to_string_lossy().into_owned(),
            mode: file.mode,
            contents: Bytes(file.contents),
        };
        if !isolated && !move_aside(&mut launch, &mut laid, &file.path) {
            occupied.push(path.path().to_owned());
        }
        launch.files.push(laid);
    }
    let mut stage = false;
    for input in &task.inputs {
        let path = Inside::new(&input.path, working_dir(task)).map_err(Exit::Environment)?;
        if is_stored(&input.source, input.archive) {
            stage = true;
            if !isolated {
                occupied.push(path.path().to_owned());
            }
        }
    }
    let mounts = pod::mounts(task).map_err(Exit::Environment)?;
    launch.host = host_mounts(&mounts, context)?;
    if isolated {
        launch.visible.clone_from(&context.visible);
    }
    launch.mounts =
        mounts.iter().filter_map(|mount| bind(mount, isolated, context).transpose()).collect::<Result<_, _>>()?;
    if let (Some(file), Some(path), true) = (hosts, known, isolated) {
        let (source, scratch) = (Some(file.to_string_lossy().into_owned()), String::new());
        let bind = Bind { path, source, scratch, make: false, sub_path: None, read_only: true };
        // A volume around it must be mounted first.
        let covered = launch.mounts.iter().any(|mount| Path::new(&bind.path).starts_with(&mount.path));
        if covered { launch.mounts.push(bind) } else { launch.hosts = Some(bind) }
    }
    Ok(Planned { launch: Box::new(launch), stage, occupied })
}

/// Returns the sum of the containers' limits, if they have any.
fn storage_limit(task: &Task) -> Option<u64> {
    let members = task.pod.iter().flat_map(|pod| &pod.members).map(|member| &member.container);
    let all = members.chain(task.pod.is_none().then_some(&task.main));
    all.filter_map(|container| container.storage_limit).reduce(u64::saturating_add)
}

/// Returns the file in which a task may report its progress. With isolation it is in the directory of scripts, which is
/// private and in memory.
fn progress_file(isolated: bool) -> &'static str {
    if isolated { "/argo/progress" } else { "\0room/.progress" }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Returns where an isolated task finds its hosts file. What the task itself puts at the usual path stays there.
fn place_of_hosts(task: &Task) -> &'static str {
    let members = task.pod.iter().flat_map(|pod| &pod.members);
    let files = task.files.iter().chain(members.clone().flat_map(|member| &member.files)).map(|file| &file.path);
    let mounts = task.mounts.iter().chain(members.flat_map(|member| &member.mounts)).map(|mount| &mount.path);
    let inputs = task.inputs.iter().map(|input| &input.path);
    let mut taken = files.chain(mounts).chain(inputs).map(Path::new);
    if taken.any(|path| path == Path::new(hosts::MACHINE)) { "/run/octoflow/hosts" } else { hosts::MACHINE }
}

fn termination(task: &Task, isolated: bool) -> Result<Option<TerminationSource>, Exit> {
    let Some(wanted) = &task.wanted.message else { return Ok(None) };
    // Without isolation the path is one of the machine itself, which every other task may write to as well. The author
    // of the message would be unknown, so only the end of the output is used.
    let path = wanted.path.as_deref().filter(|_| isolated);
    let path = path.map(|path| Inside::new(path, working_dir(task))).transpose().map_err(Exit::Environment)?;
    let path = path.map(|path| path.path().to_string_lossy().into_owned());
    Ok(Some(TerminationSource { path, tail: wanted.tail }))
}

/// Returns the variables that octoflow adds to the environment of every container.
fn own_env(progress: Option<(&str, &str)>, hosts: Option<&str>, isolated: bool) -> Vec<(String, String)> {
    let mut own = Vec::new();
    if !isolated {
        // Without isolation a private directory is the task's working directory and its TMPDIR.
        own.push(("TMPDIR".to_owned(), DIR_PLACEHOLDER.to_owned()));
    }
    own.extend(progress.map(|(variable, path)| (variable.to_owned(), path.to_owned())));
    own.extend(hosts.map(|path| (hosts::VARIABLE.to_owned(), path.to_owned())));
    own
}

/// Plans the start of one container: program, environment and directory. Files and mounts belong to the attempt.
fn run(
    attempt: AttemptId,
    container: &TaskContainer,
    own_env: &[(String, String)],
    isolated: bool,
    context: &PlanContext,
) -> Result<Launch, Exit> {
    let (env, path) = context.base.with(own_env, &container.env);
    let args = context.programs.args(container).map_err(Exit::NotStarted)?;
    let program = context.programs.find(args, &path).map_err(Exit::NotStarted)?;
    let dir = match (&container.working_dir, isolated) {
        (Some(dir), _) => Inside::new(dir, "/").map_err(Exit::NotStarted)?.path().to_string_lossy().into_owned(),
        (None, true) => "/".to_owned(),
        (None, false) => DIR_PLACEHOLDER.to_owned(),
    };
    Ok(Launch {
        attempt,
        isolated,
        keep: false,
        tty: container.tty,
        memory_limit: container.memory_limit,
        storage_limit: None,
        grace_ms: 0,
        called: program.args[0].clone(),
        programs: program.places,
        args: program.args,
        env,
        dir,
        files: Vec::new(),
        mounts: Vec::new(),
        progress: None,
        hosts: None,
        hostname: None,
        termination: None,
        pod_plan: None,
        host: None,
        visible: Vec::new(),
        group: None,
    })
}

/// Returns whether an input must be unpacked or copied, rather than written as a file.
pub(crate) fn is_stored(source: &ArtifactSource, archive: Option<Archive>) -> bool {
    match source {
        ArtifactSource::Stored { .. } | ArtifactSource::Remote { .. } => true,
        // Raw text that claims to be an archive is handled where archives are.
        ArtifactSource::Raw { .. } => matches!(archive, Some(Archive::Tar { .. } | Archive::Zip)),
    }
}

/// Returns raw artifacts as files.
fn raw_inputs(task: &Task) -> impl Iterator<Item = File> + '_ {
    task.inputs.iter().filter_map(|input| match &input.source {
        ArtifactSource::Raw { data } if !is_stored(&input.source, input.archive) => Some(File {
            path: input.path.clone(),
            contents: data.clone().into_bytes(),
            mode: input.mode.unwrap_or(0o644),
        }),
        ArtifactSource::Raw { .. } | ArtifactSource::Stored { .. } | ArtifactSource::Remote { .. } => None,
    })
}

/// Moves a file that is named as an argument (a script) into the attempt's own directory, without isolation, and adapts
/// the argument. Returns whether that was possible.
fn move_aside(launch: &mut Launch, laid: &mut FileToWrite, named: &str) -> bool {
    let name = Path::new(&laid.path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let aside = format!("{DIR_PLACEHOLDER}/.files/{}-{name}", launch.files.len());
    let mut moved = false;
    let members =
        launch.pod_plan.iter_mut().flat_map(|pod_plan| &mut pod_plan.members).map(|member| &mut member.launch);
    let members: Vec<&mut Launch> = members.collect();
    let runs = if members.is_empty() { vec![launch] } else { members };
    for run in runs {
        if !run.args.iter().any(|arg| arg == named || *arg == laid.path) {
            continue;
        }
        moved = true;
        for arg in run.args.iter_mut().filter(|arg| *arg == named || **arg == laid.path) {
            arg.clone_from(&aside);
        }
        if run.called == named || run.called == laid.path {
            run.programs = vec![aside.clone()];
        }
    }
    if moved {
        laid.path = aside;
    }
    moved
}

/// Returns the host paths among the mounts; they are checked here and again when they are mounted.
fn host_mounts(mounts: &[Mount], context: &PlanContext) -> Result<Option<Box<HostMounts>>, Exit> {
    let mut points = Vec::new();
    for mount in mounts {
        if let MountSource::Host { path } = &mount.source {
            let refused = |error: hostpath::HostPathRefused| Exit::Environment(error.to_string());
            context.host_paths.check(Path::new(path), &context.data).map_err(refused)?;
            points.push(mount_path(mount)?);
        }
    }
    let below = match &context.host_paths {
        HostPaths::Any => None,
        HostPaths::Below(prefixes) => {
            Some(prefixes.iter().map(|prefix| prefix.to_string_lossy().into_owned()).collect())
        }
    };
    Ok((!points.is_empty()).then(|| Box::new(HostMounts { points, below })))
}

fn mount_path(mount: &Mount) -> Result<String, Exit> {
    let path = Inside::new(&mount.path, "/").map_err(Exit::Environment)?;
    Ok(path.path().to_string_lossy().into_owned())
}

fn bind(mount: &Mount, isolated: bool, context: &PlanContext) -> Result<Option<Bind>, Exit> {
    let path = mount_path(mount)?;
    if !isolated {
        // The machine's own directory at its own path is there already.
        return match &mount.source {
            MountSource::Host { path: source } if *source == path && mount.sub_path.is_none() => Ok(None),
            MountSource::Host { .. } | MountSource::Scratch { .. } | MountSource::Claim { .. } => {
                Err(Exit::Environment(format!(
                    "the volume at `{path}` cannot be mounted without isolation; run with isolation or use the docker \
                     runtime"
                )))
            }
        };
    }
    let (source, scratch, make) = match &mount.source {
        MountSource::Scratch { name } => (None, as_file_name(name), true),
        MountSource::Claim { namespace, name } => {
            let dir = context.data.join("claims").join(as_file_name(namespace)).join(as_file_name(name));
            (Some(dir.to_string_lossy().into_owned()), String::new(), true)
        }
        MountSource::Host { path } => {
            let path = Inside::new(path, "/").map_err(Exit::Environment)?;
            (Some(path.path().to_string_lossy().into_owned()), String::new(), false)
        }
    };
    Ok(Some(Bind { path, source, scratch, make, sub_path: mount.sub_path.clone(), read_only: mount.read_only }))
}

/// Encodes a user's word as one component of a path: all but plainly harmless characters are written as hex.
pub(crate) fn as_file_name(word: &str) -> String {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let mut name = String::with_capacity(word.len());
    for byte in word.bytes() {
        if harmless(byte) || (byte == b'.' && !name.is_empty()) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    if name.is_empty() { "%".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use octoflow_model::{
        ids::{NodeIx, RunId},
        task::{ArtifactInput, TaskContainer, TerminationMessage},
    };

    use super::*;

    fn context() -> PlanContext {
        PlanContext {
            data: "/data".into(),
            base: BaseEnvironment::new([], Some("/bin"), &[]),
            programs: ProgramTable::new(BTreeMap::new()),
            host_paths: HostPaths::Any,
            visible: Vec::new(),
            storage_limit: None,
            space_floor: None,
        }
    }

    fn attempt() -> AttemptId {
        AttemptId { run: RunId(1), task: NodeIx(2), attempt: 3 }
    }

    fn script() -> Task {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Task {
            main: TaskContainer { command: texts(&["python", "/argo/staging/script"]), ..TaskContainer::default() },
            files: vec![File { path: "/argo/staging/script".to_owned(), contents: b"1".to_vec(), mode: 0o755 }],
            ..Task::default()
        }
    }

    #[test]
    fn a_script_stays_where_it_is_with_isolation_and_moves_aside_without() {
        let planned = plan(attempt(), &script(), None, true, &context()).unwrap();
        assert_eq!(planned.launch.args[1], "/argo/staging/script");
        assert_eq!(planned.launch.dir, "/");
        let planned = plan(attempt(), &script(), None, false, &context()).unwrap();
        assert_eq!(planned.launch.args[1], format!("{DIR_PLACEHOLDER}/.files/0-script"));
        assert_eq!(planned.launch.files[0].path, planned.launch.args[1]);
        assert_eq!(planned.launch.dir, DIR_PLACEHOLDER);
        assert!(planned.launch.env.contains(&format!("TMPDIR={DIR_PLACEHOLDER}")));
        assert!(planned.occupied.is_empty());
    }

    #[test]
    fn volumes_need_isolation() {
        let mut task = script();
        task.mounts.push(Mount {
            path: "/vol".to_owned(),
            source: MountSource::Claim { namespace: "../x".to_owned(), name: "..".to_owned() },
            sub_path: None,
            read_only: false,
        });
        let planned = plan(attempt(), &task, None, true, &context()).unwrap();
        assert_eq!(planned.launch.mounts[0].source.as_deref(), Some("/data/claims/%2e.%2fx/%2e."));
        assert!(matches!(refused(&task, false), Exit::Environment(_)));
    }

    fn refused(task: &Task, isolated: bool) -> Exit {
        plan(attempt(), task, None, isolated, &context()).err().unwrap().exit
    }

    #[test]
    fn dot_dot_is_refused_everywhere() {
        let mut task = script();
        task.files[0].path = "/tmp/../etc/passwd".to_owned();
        assert!(matches!(refused(&task, true), Exit::Environment(_)));
        let mut task = script();
        task.main.working_dir = Some("/a/../..".to_owned());
        assert!(matches!(refused(&task, true), Exit::NotStarted(_)));
    }

    #[test]
    fn raw_inputs_are_files_and_need_no_staging() {
        let mut task = script();
        task.inputs.push(ArtifactInput {
            name: "raw".to_owned(),
            path: "/in".to_owned(),
            source: ArtifactSource::Raw { data: "text".to_owned() },
            mode: Some(0o600),
            recurse_mode: false,
            archive: None,
        });
        let planned = plan(attempt(), &task, None, true, &context()).unwrap();
        assert!(!planned.stage);
        assert_eq!((planned.launch.files[1].path.as_str(), planned.launch.files[1].mode), ("/in", 0o600));
    }

    #[test]
    fn hosts_are_mounted_with_isolation_and_named_without() {
        let file = Path::new("/data/hosts/abc");
        let with_hosts =
            |task: &Task, isolated| plan(attempt(), task, Some(file), isolated, &context()).unwrap().launch;
        let launch = with_hosts(&script(), true);
        assert!(launch.env.contains(&"OCTOFLOW_HOSTS_FILE=/etc/hosts".to_owned()));
        let mount = launch.hosts.as_ref().unwrap();
        assert_eq!((mount.path.as_str(), mount.source.as_deref()), ("/etc/hosts", Some("/data/hosts/abc")));
        assert!(mount.read_only && launch.mounts.is_empty());
        let launch = with_hosts(&script(), false);
        assert!(launch.hosts.is_none() && launch.env.contains(&"OCTOFLOW_HOSTS_FILE=/data/hosts/abc".to_owned()));
        let mut own = script();
        own.files.push(File { path: "/etc/hosts".to_owned(), contents: Vec::new(), mode: 0o644 });
        let hosts = with_hosts(&own, true).hosts.unwrap();
        assert_eq!(hosts.path, "/run/octoflow/hosts", "the task's own file stays");
        let mut around = script();
        let source = MountSource::Scratch { name: "etc".to_owned() };
        around.mounts.push(Mount { path: "/etc".to_owned(), source, sub_path: None, read_only: false });
        let launch = with_hosts(&around, true);
        assert_eq!((launch.hosts, launch.mounts[1].path.as_str()), (None, "/etc/hosts"));
    }

    #[test]
    fn a_file_for_last_words_needs_isolation() {
        let mut task = script();
        task.wanted.message = Some(TerminationMessage { path: Some("log".to_owned()), tail: true });
        task.main.working_dir = Some("/home".to_owned());
        let termination =
            |isolated| plan(attempt(), &task, None, isolated, &context()).unwrap().launch.termination.unwrap();
        assert_eq!(termination(true), TerminationSource { path: Some("/home/log".to_owned()), tail: true });
        assert_eq!(termination(false), TerminationSource { path: None, tail: true });
        assert_eq!(plan(attempt(), &script(), None, true, &context()).unwrap().launch.termination, None);
    }

    #[test]
    fn words_become_names_that_cannot_climb_or_collide() {
        assert_eq!(as_file_name("my-claim.v1"), "my-claim.v1");
        assert_eq!(as_file_name(".."), "%2e.");
        assert_eq!(as_file_name("a/b"), "a%2fb");
        assert_ne!(as_file_name("a%2fb"), as_file_name("a/b"));
        assert_ne!(as_file_name(""), "");
    }
}
