//! Plugins that tell the pods of a distributed program who is who: `pytorch`, `tensorflow`, `mpi`, `ray`.

use octoflow_model::podspec::{Container, PodContainer};
use serde_json::json;

use super::{PluginArguments, PodAdditions, Program, Published, svc};

/// Arguments that name tasks, by plugin; the first one of a list is required where the plugin needs a master.
pub(in crate::dialects::volcano) const PYTORCH_ROLES: &[&str] = &["master", "worker"];
pub(in crate::dialects::volcano) const TENSORFLOW_ROLES: &[&str] = &["ps", "worker", "chief", "evaluator"];
pub(in crate::dialects::volcano) const MPI_ROLES: &[&str] = &["master", "worker"];
pub(in crate::dialects::volcano) const RAY_ROLES: &[&str] = &["head", "worker"];

/// A pod among those of its job.
pub(super) struct MasterPosition<'a> {
    pub program: &'a Program,
    pub job: &'a str,
    pub task: usize,
    pub index: u32,
}

impl MasterPosition<'_> {
    fn named(&self, name: &str) -> Option<usize> {
        self.program.job.spec.tasks.iter().position(|task| task.name == name)
    }

    fn is_of(&self, name: &str) -> bool {
        self.program.spec(self.task).name == name
    }

    fn count(&self, name: &str) -> u32 {
        self.named(name).map_or(0, |task| self.program.tasks[task].count)
    }

    fn hosts(&self, name: &str) -> Vec<String> {
        let Some(task) = self.named(name) else { return Vec::new() };
        svc::names(self.job, name, &self.program.tasks[task])
    }

    fn hosts_with_port(&self, name: &str, port: &str) -> Vec<String> {
        self.hosts(name).into_iter().map(|host| format!("{host}:{port}")).collect()
    }
}

pub(super) fn pytorch(added: &mut PodAdditions, arguments: &PluginArguments, place: &MasterPosition<'_>) {
    let (master, worker) = (arguments.get("master"), arguments.get("worker"));
    let is_worker = place.is_of(worker);
    if !place.is_of(master) && !is_worker || place.count(master) == 0 {
        return;
    }
    let (address, port) = (svc::address_name(place.job, master, 0), arguments.get("port"));
    added.set("MASTER_ADDR", &*address);
    added.set("MASTER_PORT", port);
    added.set("WORLD_SIZE", (place.count(master) + place.count(worker)).to_string());
    added.ports.extend(opened("pytorchjob-port", port));
    added.set("RANK", if is_worker { place.index + 1 } else { place.index }.to_string());
    if is_worker && arguments.is_on("wait-master-enabled") {
        let seconds = arguments.get("wait-master-timeout");
        // A machine without nc may have a bash that connects by itself.
        let wait = format!(
            "up() {{ if command -v nc >/dev/null; then nc -z -w 1 {address} {port}; \
             else bash -c 'exec 3<>/dev/tcp/{address}/{port}' 2>/dev/null; fi; }}; i=0; until up; do i=$((i+1)); \
             if [ $i -ge {seconds} ]; then echo 'the master did not listen in {seconds} s'; exit 1; fi; sleep 1; done"
        );
        added.before.push(PodContainer {
            container: Container {
                name: Some("wait-for-master".to_owned()),
                image: arguments.get("wait-master-image").to_owned(),
                command: vec!["sh".to_owned(), "-c".to_owned(), wait],
                ..Container::default()
            },
            ..PodContainer::default()
        });
    }
}

pub(super) fn tensorflow(added: &mut PodAdditions, arguments: &PluginArguments, place: &MasterPosition<'_>) {
    // One pod alone is no cluster.
    if place.program.tasks.len() == 1 && place.program.pods == 1 {
        return;
    }
    let port = arguments.get("port");
    let mut cluster = serde_json::Map::new();
    for role in TENSORFLOW_ROLES {
        let hosts = place.hosts_with_port(arguments.get(role), port);
        if !hosts.is_empty() {
            cluster.insert((*role).to_owned(), json!(hosts));
        }
    }
    let Some(role) = TENSORFLOW_ROLES.iter().find(|role| place.is_of(arguments.get(role))) else { return };
    let config = json!({"cluster": cluster, "task": {"type": role, "index": place.index}});
    added.set("TF_CONFIG", config.to_string());
}

/// Returns a port that containers open.
fn opened(name: &'static str, port: &str) -> Option<(&'static str, u16)> {
    Some((name, port.parse().ok()?))
}

pub(super) fn mpi(added: &mut PodAdditions, arguments: &PluginArguments, place: &MasterPosition<'_>) {
    if ["master", "worker"].into_iter().any(|role| place.is_of(arguments.get(role))) {
        added.ports.extend(opened("mpijob-port", arguments.get("port")));
    }
    if place.is_of(arguments.get("master")) {
        added.set("MPI_HOST", place.hosts(arguments.get("worker")).join(","));
    }
}

/// Returns the Service by which the head of a ray cluster is found.
pub(super) fn head_service(arguments: &PluginArguments, job: &str) -> Published {
    let port = |name: &str, argument: &str| (name.to_owned(), arguments.get(argument).parse().unwrap_or(1));
    Published::Service {
        name: format!("{job}-head-svc"),
        selector: Some((arguments.get("head").to_owned(), 0)),
        unready: false,
        ports: vec![port("gcs", "port"), port("dashboard", "dashboardPort"), port("client-server", "clientPort")],
    }
}

pub(super) fn ray(
    added: &mut PodAdditions,
    arguments: &PluginArguments,
    place: &MasterPosition<'_>,
) -> Result<(), String> {
    let head = arguments.get("head");
    if place.count(head) == 0 {
        return Err(format!("plugin ray needs a task `{head}` with a pod"));
    }
    let port = arguments.get("port");
    if place.is_of(head) {
        let (dashboard, client) = (arguments.get("dashboardPort"), arguments.get("clientPort"));
        let command = format!(
            "ray start --head --block --dashboard-host=0.0.0.0 --port={port} --dashboard-port={dashboard} \
             --ray-client-server-port={client}"
        );
        added.command = Some((arguments.get("headContainer").to_owned(), command));
    } else if place.is_of(arguments.get("worker")) {
        let address = svc::address_name(place.job, head, 0);
        let command = format!("ray start --block --address={address}:{port}");
        added.command = Some((arguments.get("workerContainer").to_owned(), command));
    }
    Ok(())
}
