//! Volumes: directories to mount, and ConfigMaps and Secrets laid down as files.

use octoflow_model::{
    NodeIx,
    argo::{
        Container, Template, Volume,
        template::VolumeMount,
        workflow::{ProjectedItem, Workflow},
    },
    task::{File, Mount, MountSource},
};

use crate::{
    argo::{
        scope::Scope,
        substitute::{Missing, fill_value},
        turn::Turn,
    },
    engine::Keyed,
};

/// Permission bits of a projected file when nothing else is said.
const PROJECTED_MODE: u32 = 0o644;

impl Turn<'_> {
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
        for mount in &container.volume_mounts {
            if self.run.program.workflow.claims(&mount.name) {
                mounts.push(directory(mount, self.claim(&format!("{}-{}", self.run.state.name, mount.name))));
                continue;
            }
            let volume = template.volumes.iter().chain(&shared).find(|volume| volume.name == mount.name);
            let volume = volume.ok_or_else(|| format!("volumeMount '{}' names no volume", mount.name))?;
            self.mount_volume(volume, mount, files, mounts)?;
        }
        Ok(())
    }

    /// The workflow's volumes, with this node's variables put in.
    fn shared_volumes(&self, at: NodeIx) -> Result<Vec<Volume>, String> {
        let Some(raw) = &self.run.program.volumes else { return Ok(Vec::new()) };
        let locals = self.locals(at);
        let inputs = self.run.state.node(at).inputs.as_deref();
        let scope = Scope { inputs, locals: &locals, ..Scope::of_node(self.run, self.now, at).about("volumes") };
        let filled = fill_value(raw, &scope, Missing::Keep).map_err(|error| error.to_string())?;
        serde_json::from_value(filled).map_err(|error| format!("spec.volumes: {error}"))
    }

    fn claim(&self, name: &str) -> MountSource {
        MountSource::Claim { namespace: self.run.state.namespace.to_string(), name: name.to_owned() }
    }

    fn mount_volume(
        &self,
        volume: &Volume,
        mount: &VolumeMount,
        files: &mut Vec<File>,
        mounts: &mut Vec<Mount>,
    ) -> Result<(), String> {
        if volume.empty_dir.is_some() {
            mounts.push(directory(mount, MountSource::Scratch { name: volume.name.clone() }));
        } else if let Some(claim) = &volume.persistent_volume_claim {
            let mut made = directory(mount, self.claim(&claim.claim_name));
            made.read_only |= claim.read_only;
            mounts.push(made);
        } else if let Some(host) = &volume.host_path {
            mounts.push(directory(mount, MountSource::Host { path: host.path.clone() }));
        } else if let Some(map) = &volume.config_map {
            let mode = map.default_mode.unwrap_or(PROJECTED_MODE);
            files.extend(self.projected(Keyed::ConfigMap, &map.name, &map.items, mode, map.optional, mount)?);
        } else if let Some(secret) = &volume.secret {
            let mode = secret.default_mode.unwrap_or(PROJECTED_MODE);
            files.extend(self.projected(
                Keyed::Secret,
                &secret.secret_name,
                &secret.items,
                mode,
                secret.optional,
                mount,
            )?);
        } else {
            return Err(format!("volume '{}' has a source that cannot be mounted here", volume.name));
        }
        Ok(())
    }

    fn projected(
        &self,
        kind: Keyed,
        name: &str,
        items: &[ProjectedItem],
        mode: u32,
        optional: bool,
        mount: &VolumeMount,
    ) -> Result<Vec<File>, String> {
        let namespace = &self.run.state.namespace;
        let Some(data) = self.world.keyed(kind, namespace, name) else {
            let message = format!(
                "volume '{}': '{name}' not found in namespace '{namespace}'; give the file that defines it along with the workflow",
                mount.name
            );
            return if optional { Ok(Vec::new()) } else { Err(message) };
        };
        let chosen: Vec<(&str, &str, u32)> = if items.is_empty() {
            data.entries.keys().map(|key| (key.as_str(), key.as_str(), mode)).collect()
        } else {
            items.iter().map(|item| (item.key.as_str(), item.path.as_str(), item.mode.unwrap_or(mode))).collect()
        };
        let mut files = Vec::new();
        for (key, path, mode) in chosen {
            let contents =
                data.entries.get(key).ok_or_else(|| format!("volume '{}': '{name}' has no key '{key}'", mount.name))?;
            let path = match &mount.sub_path {
                Some(sub_path) if sub_path == path => mount.mount_path.clone(),
                Some(_) => continue,
                None => format!("{}/{path}", mount.mount_path.trim_end_matches('/')),
            };
            files.push(File { path, contents: contents.clone(), mode });
        }
        Ok(files)
    }
}

fn directory(mount: &VolumeMount, source: MountSource) -> Mount {
    Mount {
        path: mount.mount_path.clone(),
        source,
        sub_path: mount.sub_path.clone().filter(|path| !path.is_empty()),
        read_only: mount.read_only,
    }
}

trait Claims {
    fn claims(&self, name: &str) -> bool;
}

impl Claims for Workflow {
    /// The name is that of a claim made for the run.
    fn claims(&self, name: &str) -> bool {
        self.spec.volume_claim_templates.iter().any(|claim| claim.metadata.name.as_deref() == Some(name))
    }
}
