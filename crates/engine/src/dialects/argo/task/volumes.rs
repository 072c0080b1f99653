//! Mounts volumes into a template's container: its own, the workflow's, and the claims made for the run.

use octoflow_model::{
    NodeIx,
    argo::{Template, workflow::Workflow},
    podspec::{Container, Volume},
    task::{File, Mount, MountSource},
};

use crate::{
    dialects::argo::{
        scope::Scope,
        substitute::{Missing, fill_value},
        view::View,
    },
    pod::{PodContext, directory, mount_volume},
};

impl View<'_> {
    pub(super) fn mount_volumes(
        &self,
        at: NodeIx,
        template: &Template,
        container: &Container,
        files: &mut Vec<File>,
        mounts: &mut Vec<Mount>,
    ) -> Result<(), String> {
        if container.volume_mounts.is_empty() {
            return Ok(());
        }
        let shared = self.shared_volumes(at)?;
        let field = |_: &str| None;
        let context = PodContext { shared: self.world, namespace: &self.run.state.head.namespace, field: &field };
        for mount in &container.volume_mounts {
            if self.run.program.workflow.claims(&mount.name) {
                let (namespace, name) =
                    (self.run.state.head.namespace.to_string(), format!("{}-{}", self.run.state.head.name, mount.name));
                mounts.push(directory(mount, MountSource::Claim { namespace, name }));
                continue;
            }
            let volume = template.volumes.iter().chain(&shared).find(|volume| volume.name == mount.name);
            let volume = volume.ok_or_else(|| format!("volumeMount '{}' names no volume", mount.name))?;
            mount_volume(&context, volume, mount, files, mounts)?;
        }
        Ok(())
    }

    /// Returns the workflow's volumes, with this node's variables filled in.
    fn shared_volumes(&self, at: NodeIx) -> Result<Vec<Volume>, String> {
        let Some(raw) = &self.run.program.volumes else { return Ok(Vec::new()) };
        let locals = self.locals(at);
        let inputs = self.run.state.node(at).inputs.as_deref();
        let scope = Scope { inputs, locals: &locals, ..Scope::of_node(self.run, self.now, at).about("volumes") };
        let filled = fill_value(raw, &scope, Missing::Keep).map_err(|error| error.to_string())?;
        serde_json::from_value(filled).map_err(|error| format!("spec.volumes: {error}"))
    }
}

trait Claims {
    fn claims(&self, name: &str) -> bool;
}

impl Claims for Workflow {
    /// Whether the name is that of a claim made for the run.
    fn claims(&self, name: &str) -> bool {
        self.spec.volume_claim_templates.iter().any(|claim| claim.metadata.name.as_deref() == Some(name))
    }
}
