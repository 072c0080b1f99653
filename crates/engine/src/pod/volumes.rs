//! Volumes: directories to mount, and ConfigMaps and Secrets projected as files.

use octoflow_model::{
    podspec::{ProjectedItem, Volume, VolumeMount},
    task::{File, Mount, MountSource},
};

use super::PodContext;
use crate::engine::Keyed;

/// Default permission bits of a projected file.
const PROJECTED_MODE: u32 = 0o644;

impl PodContext<'_> {
    fn claim(&self, name: &str) -> MountSource {
        MountSource::Claim { namespace: self.namespace.to_owned(), name: name.to_owned() }
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
        let namespace = self.namespace;
        let Some(data) = self.shared.keyed(kind, namespace, name) else {
            let message = format!(
                "volume '{}': '{name}' not found in namespace '{namespace}'; give the file that defines it along with it",
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

/// Mounts a volume into a container.
pub(crate) fn mount_volume(
    context: &PodContext<'_>,
    volume: &Volume,
    mount: &VolumeMount,
    files: &mut Vec<File>,
    mounts: &mut Vec<Mount>,
) -> Result<(), String> {
    if volume.empty_dir.is_some() {
        mounts.push(directory(mount, MountSource::Scratch { name: volume.name.clone() }));
    } else if let Some(claim) = &volume.persistent_volume_claim {
        let mut made = directory(mount, context.claim(&claim.claim_name));
        made.read_only |= claim.read_only;
        mounts.push(made);
    } else if let Some(host) = &volume.host_path {
        mounts.push(directory(mount, MountSource::Host { path: host.path.clone() }));
    } else if let Some(map) = &volume.config_map {
        let mode = map.default_mode.unwrap_or(PROJECTED_MODE);
        files.extend(context.projected(Keyed::ConfigMap, &map.name, &map.items, mode, map.optional, mount)?);
    } else if let Some(secret) = &volume.secret {
        let mode = secret.default_mode.unwrap_or(PROJECTED_MODE);
        let (name, items) = (&secret.secret_name, &secret.items);
        files.extend(context.projected(Keyed::Secret, name, items, mode, secret.optional, mount)?);
    } else {
        return Err(format!("volume '{}' has a source that cannot be mounted here", volume.name));
    }
    Ok(())
}

pub(crate) fn directory(mount: &VolumeMount, source: MountSource) -> Mount {
    Mount {
        path: mount.mount_path.clone(),
        source,
        sub_path: mount.sub_path.clone().filter(|path| !path.is_empty()),
        read_only: mount.read_only,
    }
}
