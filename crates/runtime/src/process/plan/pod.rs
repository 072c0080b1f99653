//! Plans a task of several containers: the supervisor's plan for each, and what they share. They share one file system,
//! so two of them may only want the same thing at one path.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{
    ids::AttemptId,
    order::Exit,
    pod::{self, Check, Part, Pod, Probe},
    task::{File, Mount, Task, TaskContainer},
};

use super::{PlanContext, PlanError, millis, run};
use crate::process::{
    pod::{NAME, POD_ARGUMENT},
    wire::{Launch, Member, PodPlan, WireCheck, WireProbe},
};

/// Time that the supervisor gets beyond the grace period of its containers before it is killed itself.
const MARGIN: Duration = Duration::from_secs(5);

/// Returns the launch of a supervisor, which contains those of all containers.
pub(super) fn supervisor(
    attempt: AttemptId,
    task: &Task,
    pod: &Pod,
    own_env: &[(String, String)],
    isolated: bool,
    context: &PlanContext,
) -> Result<Launch, PlanError> {
    let mut members = Vec::with_capacity(pod.members.len());
    for (at, member) in pod.members.iter().enumerate() {
        let launch = run(attempt, &member.container, own_env, isolated, context)
            .map_err(|exit| PlanError { exit, member: Some(at) })?;
        let probe = match &member.probe {
            Some(probe) => {
                let planned = self::probe(attempt, member, probe, isolated, context);
                Some(Box::new(planned.map_err(|exit| PlanError { exit, member: Some(at) })?))
            }
            None => None,
        };
        let name = member.container.name.clone();
        let speaks_for_all = member.part == Part::Main && name == task.main.name;
        let label = (!speaks_for_all).then(|| name.clone());
        members.push(Member { name, part: member.part, label, after: member.after.clone(), probe, launch });
    }
    let pod_plan = PodPlan { members, retries: pod.retries, pause_ms: millis(pod.pause), grace_ms: millis(task.grace) };
    Ok(Launch {
        attempt,
        isolated,
        keep: false,
        tty: false,
        // The supervisor is ours; each container has its own limit.
        memory_limit: None,
        storage_limit: None,
        grace_ms: millis(task.grace.saturating_add(MARGIN)),
        called: NAME.to_owned(),
        // The very file that the spawner runs, whatever has become of its name and whatever the task sees in its place.
        programs: vec!["/proc/self/exe".to_owned()],
        args: vec![NAME.to_owned(), POD_ARGUMENT.to_owned()],
        env: Vec::new(),
        dir: "/".to_owned(),
        files: Vec::new(),
        mounts: Vec::new(),
        progress: None,
        hosts: None,
        hostname: None,
        termination: None,
        pod_plan: Some(Box::new(pod_plan)),
        host: None,
        visible: Vec::new(),
        group: None,
    })
}

/// Plans a readiness probe. A command is looked up as the container's own would be.
fn probe(
    attempt: AttemptId,
    member: &pod::Member,
    probe: &Probe,
    isolated: bool,
    context: &PlanContext,
) -> Result<WireProbe, Exit> {
    let check = match &probe.check {
        Check::Exec { command } => {
            let container = TaskContainer { command: command.clone(), args: Vec::new(), ..member.container.clone() };
            let launch = run(attempt, &container, &[], isolated, context)?;
            WireCheck::Exec(launch.programs, launch.args)
        }
        Check::Tcp { address, port } => WireCheck::Tcp(format!("{address}:{port}")),
        Check::Http { address, port, path, headers } => {
            let own = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
            let mut request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
            if !own("host") {
                request.push_str(&format!("Host: {address}:{port}\r\n"));
            }
            if !own("user-agent") {
                request.push_str("User-Agent: octoflow-probe\r\n");
            }
            for (name, value) in headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("connection")) {
                request.push_str(&format!("{name}: {value}\r\n"));
            }
            request.push_str("\r\n");
            WireCheck::Http(format!("{address}:{port}"), request)
        }
    };
    Ok(WireProbe {
        check,
        delay_ms: millis(probe.delay),
        period_ms: millis(probe.period),
        timeout_ms: millis(probe.timeout),
        successes: probe.successes,
        failures: probe.failures,
    })
}

/// Returns the files of all containers. `Err` is a sentence for the user.
pub(super) fn files(task: &Task) -> Result<Vec<File>, String> {
    let Some(pod) = &task.pod else { return Ok(task.files.clone()) };
    let mut all: BTreeMap<&str, &File> = BTreeMap::new();
    let mut found = Vec::new();
    for file in task.files.iter().chain(pod.members.iter().flat_map(|member| &member.files)) {
        match all.insert(&file.path, file) {
            None => found.push(file.clone()),
            Some(before) if before == file => {}
            Some(_) => return Err(clash("want different files", &file.path)),
        }
    }
    Ok(found)
}

/// Returns the mounts of all containers. `Err` is a sentence for the user.
pub(super) fn mounts(task: &Task) -> Result<Vec<Mount>, String> {
    let Some(pod) = &task.pod else { return Ok(task.mounts.clone()) };
    let mut found: Vec<Mount> = Vec::new();
    for mount in task.mounts.iter().chain(pod.members.iter().flat_map(|member| &member.mounts)) {
        let path = mount.path.trim_end_matches('/');
        match found.iter_mut().find(|other| other.path.trim_end_matches('/') == path) {
            None => found.push(mount.clone()),
            Some(other) if other.source == mount.source && other.sub_path == mount.sub_path => {
                // One of them must be able to write, and both see the same mount.
                other.read_only &= mount.read_only;
            }
            Some(_) => return Err(clash("mount different volumes", &mount.path)),
        }
    }
    Ok(found)
}

fn clash(what: &str, path: &str) -> String {
    format!(
        "two containers {what} at `{path}`: the containers of one task share one file system here; give them different \
         paths"
    )
}

#[cfg(test)]
mod tests {
    use octoflow_model::task::MountSource;

    use super::*;

    fn mount(path: &str, scratch: &str, read_only: bool) -> Mount {
        let source = MountSource::Scratch { name: scratch.to_owned() };
        Mount { path: path.to_owned(), source, sub_path: None, read_only }
    }

    fn pod(mounts: Vec<Mount>) -> Task {
        let member = pod::Member {
            part: Part::Sidecar,
            container: TaskContainer::default(),
            files: Vec::new(),
            mounts,
            after: Vec::new(),
            probe: None,
        };
        Task { pod: Some(Box::new(Pod { members: vec![member], ..Pod::default() })), ..Task::default() }
    }

    #[test]
    fn one_volume_at_one_path_is_mounted_once_and_writable_when_anybody_writes() {
        let task = Task { mounts: vec![mount("/a", "v", false)], ..pod(vec![mount("/a/", "v", true)]) };
        let found = mounts(&task).unwrap();
        assert_eq!(found, [mount("/a", "v", false)]);
    }

    #[test]
    fn two_volumes_at_one_path_are_refused_with_the_path() {
        let task = Task { mounts: vec![mount("/a", "v", false)], ..pod(vec![mount("/a", "w", false)]) };
        assert!(mounts(&task).unwrap_err().contains("`/a`"));
    }
}
