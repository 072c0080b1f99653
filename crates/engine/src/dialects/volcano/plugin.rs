//! Plugins of a job: what each adds to its pods. Pure functions of the manifest: environment variables, files, names of
//! hosts, annotations, commands. Nothing is drawn or stored here.

mod arguments;
mod distributed;
mod ssh;
mod svc;

use std::sync::Arc;

use octoflow_model::{
    RunId,
    podspec::PodContainer,
    task::{EnvValue, File, Labels},
    volcano::JobSpec,
};

pub(super) use arguments::PluginArguments;
pub(super) use distributed::{MPI_ROLES, PYTORCH_ROLES, RAY_ROLES, TENSORFLOW_ROLES};

use super::program::Program;

/// The plugins there are.
pub(super) const NAMES: [&str; 8] = ["env", "svc", "ssh", "pytorch", "tensorflow", "mpi", "ray", "hcclrank"];

/// The plugins of a job with their arguments, defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plugins {
    env: bool,
    svc: bool,
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
            svc: has("svc"),
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
        self.svc.then(|| svc::hosts(run, job, program))
    }

    /// Returns what is added to a pod of a task.
    pub(super) fn additions(
        &self,
        program: &Program,
        job: &str,
        task: usize,
        index: u32,
    ) -> Result<PodAdditions, String> {
        let mut added = PodAdditions::default();
        if self.env {
            added.set("VK_TASK_INDEX", index.to_string());
            added.set("VC_TASK_INDEX", index.to_string());
        }
        if self.svc {
            svc::add(&mut added, program, job);
        }
        if let Some(arguments) = &self.ssh {
            ssh::add(&mut added, arguments, program, job);
        }
        let place = distributed::Place { program, job, task, index };
        if let Some(arguments) = &self.pytorch {
            distributed::pytorch(&mut added, arguments, &place);
        }
        if let Some(arguments) = &self.tensorflow {
            distributed::tensorflow(&mut added, arguments, &place);
        }
        if let Some(arguments) = &self.mpi {
            distributed::mpi(&mut added, arguments, &place);
        }
        if let Some(arguments) = &self.ray {
            distributed::ray(&mut added, arguments, &place)?;
        }
        if self.hcclrank {
            let own = rank_of(program, task).or_else(|| added.value("RANK").map(str::to_owned));
            let rank = own.unwrap_or_else(|| index.to_string());
            added.annotations.insert("hccl/rankIndex".to_owned(), rank);
        }
        Ok(added)
    }
}

/// Returns the `RANK` that the manifest gives a task's pods.
fn rank_of(program: &Program, task: usize) -> Option<String> {
    let containers = program.spec(task).template.spec.containers.iter();
    let mut all = containers.flat_map(|container| &container.container.env);
    all.find(|variable| variable.name == "RANK").and_then(|variable| variable.value.clone()).map(|text| text.0)
}

#[cfg(test)]
mod tests;
