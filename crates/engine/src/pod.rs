//! Converts containers as Kubernetes writes them to ones a runtime can run: environment, volumes, resource quantities.
//! Every dialect that has pods builds its tasks with this; it knows none of them.

pub(crate) mod address;
pub(crate) mod check;
pub(crate) mod demand;
pub(crate) mod ended;
mod environment;
pub(crate) mod fields;
pub(crate) mod member;
pub(crate) mod quantity;
mod volumes;

use octoflow_model::{podspec::Container, task};

use crate::engine::SharedState;

pub(crate) use environment::keyed;
pub(crate) use quantity::{thousandths, together};
pub(crate) use volumes::{directory, mount_volume};

/// Name of a container that has none.
pub(crate) const MAIN: &str = "main";
/// Default grace period between SIGTERM and SIGKILL, in seconds.
pub(crate) const GRACE_S: u64 = 30;

/// Context of a pod's containers: shared objects, the namespace and the pod's own fields.
#[derive(Clone, Copy)]
pub(crate) struct PodContext<'a> {
    pub(crate) shared: &'a SharedState,
    pub(crate) namespace: &'a str,
    /// Returns the value of a pod field such as `metadata.name`, if it has one.
    pub(crate) field: &'a dyn Fn(&str) -> Option<String>,
}

impl PodContext<'_> {
    /// Converts a container; its environment starts with the `first` variables.
    pub(crate) fn container(
        &self,
        container: &Container,
        first: Vec<(String, task::EnvValue)>,
    ) -> Result<task::TaskContainer, String> {
        let env = self.environment(container, first)?;
        let expand = |text: &String| environment::expand(text, &env);
        Ok(task::TaskContainer {
            name: container.name.clone().unwrap_or_else(|| MAIN.to_owned()),
            image: container.image.clone(),
            command: container.command.iter().map(expand).collect(),
            args: container.args.iter().map(expand).collect(),
            working_dir: container.working_dir.clone().filter(|path| !path.is_empty()),
            tty: container.tty,
            memory_limit: quantity::memory_limit(container)?,
            storage_limit: quantity::storage_limit(container)?,
            env,
        })
    }
}
