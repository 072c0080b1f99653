//! From a container as Kubernetes writes it to one a runtime can run: environment, volumes, amounts. Every dialect that
//! has pods builds its tasks with this; it knows none of them.

pub(crate) mod check;
mod environment;
pub(crate) mod fields;
mod quantity;
mod volumes;

use octoflow_model::{podspec::Container, task};

use crate::engine::World;

pub(crate) use environment::keyed;
pub(crate) use quantity::{thousandths, together};
pub(crate) use volumes::{directory, mount_volume};

/// What a container without a name is called.
pub(crate) const MAIN: &str = "main";
/// How long a task gets to end after the polite signal, when its manifest does not say.
pub(crate) const GRACE_S: u64 = 30;

/// Where a pod stands: what it can refer to, and what its fields are.
#[derive(Clone, Copy)]
pub(crate) struct PodContext<'a> {
    pub(crate) world: &'a World,
    pub(crate) namespace: &'a str,
    /// The value of a field of the pod, such as `metadata.name`; nothing where it has none.
    pub(crate) field: &'a dyn Fn(&str) -> Option<String>,
}

impl PodContext<'_> {
    /// The container with its environment, which begins with the `first` variables.
    pub(crate) fn container(
        &self,
        container: &Container,
        first: Vec<(String, task::EnvValue)>,
    ) -> Result<task::Container, String> {
        let env = self.environment(container, first)?;
        let expand = |text: &String| environment::expand(text, &env);
        Ok(task::Container {
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
