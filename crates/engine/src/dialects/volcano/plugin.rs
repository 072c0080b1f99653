//! Plugins of a job: what each adds to its pods and publishes as objects. Pure functions of the manifest: environment
//! variables, files, names of hosts, annotations, commands. Nothing is drawn or stored here.

mod arguments;
mod distributed;
mod ssh;
mod svc;

use std::sync::Arc;

use octoflow_model::{
    RunId,
    podspec::PodContainer,
    submission::KeyPair,
    task::{EnvValue, File, Labels},
    volcano::JobSpec,
};
use serde_json::Value;

pub(super) use arguments::PluginArguments;
pub(super) use distributed::{MPI_ROLES, PYTORCH_ROLES, RAY_ROLES, TENSORFLOW_ROLES};
pub(super) use svc::MAX_LISTED;

use super::{defaults, program::Program};

/// The plugins there are.
pub(super) const NAMES: [&str; 8] = ["env", "svc", "ssh", "pytorch", "tensorflow", "mpi", "ray", "hcclrank"];

/// The plugins of a job with their arguments, defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plugins {
    env: bool,
    svc: Option<PluginArguments>,
    /// True if variables list the hosts.
    lists_hosts: bool,
    ssh: Option<PluginArguments>,
    pytorch: Option<PluginArguments>,
    tensorflow: Option<PluginArguments>,
    mpi: Option<PluginArguments>,
    ray: Option<PluginArguments>,
    hcclrank: bool,
}

/// What plugins add to one pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PodAdditions {
    /// Variables of all containers. One of the manifest with the same name wins.
    pub variables: Vec<(String, EnvValue)>,
    pub files: Vec<File>,
    pub annotations: Labels,
    /// Containers that run before those of the pod.
    pub before: Vec<PodContainer>,
    /// A container and the shell command it runs in place of its own.
    pub command: Option<(String, String)>,
    /// Ports that its containers open, by name.
    pub ports: Vec<(&'static str, u16)>,
}

impl PodAdditions {
    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.variables.push((name.to_owned(), EnvValue::Plain(value.into())));
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.reveal())
    }
}

impl Plugins {
    /// Reads the plugins of a job. `Err` is a sentence; admission has refused it before.
    pub(super) fn read(spec: &JobSpec) -> Result<Self, String> {
        let of = |name: &str| match spec.plugins.get(name) {
            Some(arguments) => PluginArguments::read(name, arguments.as_deref().unwrap_or_default()).map(Some),
            None => Ok(None),
        };
        let has = |name: &str| spec.plugins.contains_key(name);
        Ok(Self {
            env: has("env"),
            svc: of("svc")?,
            lists_hosts: of("svc")?.is_some_and(|arguments| arguments.is_on("inject-hosts-env")),
            ssh: of("ssh")?,
            pytorch: of("pytorch")?,
            tensorflow: of("tensorflow")?,
            mpi: of("mpi")?,
            ray: of("ray")?,
            hcclrank: has("hcclrank"),
        })
    }

    /// Returns the hosts file through which pods find each other by name, if they may.
    pub(super) fn hosts(&self, run: RunId, job: &str, program: &Program) -> Option<Arc<str>> {
        self.svc.is_some().then(|| svc::hosts(run, job, program))
    }

    /// Returns what is added to a pod of a task.
    pub(super) fn additions(
        &self,
        program: &Program,
        job: &str,
        task: usize,
        index: u32,
        keys: Option<&KeyPair>,
    ) -> Result<PodAdditions, String> {
        let mut added = PodAdditions::default();
        self.indices(&mut added, index);
        if self.svc.is_some() {
            svc::add(&mut added, program, job);
        }
        if let Some(arguments) = &self.ssh {
            ssh::add(&mut added, arguments, program, job, keys);
        }
        self.roles(&mut added, program, job, task, index)?;
        Ok(added)
    }

    /// Returns what is added to a pod as Kubernetes shows it: lists of hosts and keys are in objects that it mounts.
    pub(super) fn shown(&self, program: &Program, job: &str, task: usize, index: u32) -> PodAdditions {
        let mut added = PodAdditions::default();
        self.indices(&mut added, index);
        // Admission has refused a job whose roles are wrong.
        let _ = self.roles(&mut added, program, job, task, index);
        added
    }

    /// Returns the objects that every pod mounts: a ConfigMap or a Secret by name, and where.
    pub(super) fn mounted(&self, job: &str) -> Vec<MountedObject> {
        let svc = self.svc.as_ref().map(|_| MountedObject {
            name: format!("{job}-svc"),
            path: svc::FOLDER.to_owned(),
            secret_mode: None,
        });
        let ssh = self.ssh.as_ref().map(|arguments| {
            let (path, mode) = ssh::folder(arguments);
            MountedObject { name: format!("{job}-ssh"), path: path.to_owned(), secret_mode: Some(mode) }
        });
        svc.into_iter().chain(ssh).collect()
    }

    /// Returns the variables that are keys of the ConfigMap of `svc`.
    pub(super) fn listed(&self, program: &Program) -> Vec<String> {
        if self.lists_hosts { svc::variables(program) } else { Vec::new() }
    }

    /// Reports whether pods are found by their names.
    pub(super) fn names_pods(&self) -> bool {
        self.svc.is_some()
    }

    fn indices(&self, added: &mut PodAdditions, index: u32) {
        if self.env {
            added.set("VK_TASK_INDEX", index.to_string());
            added.set("VC_TASK_INDEX", index.to_string());
        }
    }

    /// Adds what tells the pods of a distributed program who is who.
    fn roles(
        &self,
        added: &mut PodAdditions,
        program: &Program,
        job: &str,
        task: usize,
        index: u32,
    ) -> Result<(), String> {
        let place = distributed::MasterPosition { program, job, task, index };
        if let Some(arguments) = &self.pytorch {
            distributed::pytorch(added, arguments, &place);
        }
        if let Some(arguments) = &self.tensorflow {
            distributed::tensorflow(added, arguments, &place);
        }
        if let Some(arguments) = &self.mpi {
            distributed::mpi(added, arguments, &place);
        }
        if let Some(arguments) = &self.ray {
            distributed::ray(added, arguments, &place)?;
        }
        if self.hcclrank {
            let own = rank_of(program, task).or_else(|| added.value("RANK").map(str::to_owned));
            let rank = own.unwrap_or_else(|| index.to_string());
            added.annotations.insert("hccl/rankIndex".to_owned(), rank);
        }
        Ok(())
    }
}

impl Plugins {
    /// Returns what the plugins publish as objects.
    pub(super) fn published(&self, program: &Program, job: &str, keys: Option<&KeyPair>) -> Vec<Published> {
        let mut all = Vec::new();
        if let Some(arguments) = &self.svc {
            all.extend(svc::published(arguments, program, job));
        }
        if let Some(arguments) = &self.ssh {
            let entries = ssh::entries(arguments, program, job, keys);
            all.push(Published::Secret { name: format!("{job}-ssh"), entries });
        }
        if let Some(arguments) = &self.ray {
            all.push(distributed::head_service(arguments, job));
        }
        all
    }
}

/// An object of a plugin that pods mount: a Secret if it has a mode, else a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MountedObject {
    pub name: String,
    pub path: String,
    pub secret_mode: Option<u32>,
}

/// An object that a plugin publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Published {
    ConfigMap {
        name: String,
        entries: Vec<(String, String)>,
    },
    Secret {
        name: String,
        entries: Vec<(String, String)>,
    },
    Service {
        name: String,
        /// The only pod it is for; `None`: all of them.
        selector: Option<(String, u32)>,
        /// True if pods that are not ready are found too.
        unready: bool,
        ports: Vec<(String, u16)>,
    },
}

/// Reports whether a job needs keys for ssh that its arguments do not give.
pub(super) fn wants_keys(manifest: &Value) -> bool {
    let Ok(job) = defaults::read(manifest) else { return false };
    let Some(arguments) = job.spec.plugins.get("ssh") else { return false };
    let read = PluginArguments::read("ssh", arguments.as_deref().unwrap_or_default());
    read.is_ok_and(|arguments| ssh::given(&arguments).is_none())
}

/// Returns the `RANK` that the manifest gives a task's pods.
fn rank_of(program: &Program, task: usize) -> Option<String> {
    let containers = program.spec(task).template.spec.containers.iter();
    let mut all = containers.flat_map(|container| &container.container.env);
    all.find(|variable| variable.name == "RANK").and_then(|variable| variable.value.clone()).map(|text| text.0)
}

#[cfg(test)]
mod tests;
