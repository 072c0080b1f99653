//! Volumes of a job: which claim each is, which of them must be there before a pod is created, and their mounts.

use octoflow_model::{
    task::{Mount, MountSource},
    volcano::JobVolume,
};

use super::{ident, run::Run};
use crate::engine::{Keyed, SharedState};

/// What a volume of a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VolumeSource {
    /// A claim that somebody else makes.
    Named(String),
    /// A claim that is made for the job under this name, unless there is one.
    Made(String),
    /// A directory of each pod.
    Empty,
}

/// Returns what a volume is. A claim that has no name gets one from the job.
pub(super) fn source(volume: &JobVolume, index: usize, job: &str, uid: &str) -> VolumeSource {
    let name = volume.volume_claim_name.clone().filter(|name| !name.is_empty());
    match (name, &volume.volume_claim) {
        (Some(name), None) => VolumeSource::Named(name),
        (Some(name), Some(_)) => VolumeSource::Made(name),
        (None, Some(_)) => VolumeSource::Made(ident::claim_name(job, uid, index)),
        (None, None) => VolumeSource::Empty,
    }
}

impl Run {
    /// Iterates over the volumes with what they are.
    pub(super) fn volumes(&self) -> impl Iterator<Item = (&JobVolume, VolumeSource)> {
        let head = &self.state.head;
        let all = self.program.job.spec.volumes.iter().enumerate();
        all.map(|(index, volume)| (volume, source(volume, index, &head.name, &head.uid)))
    }

    /// Returns the claims that are named and not there. Those that are made for the job are made with it.
    pub(super) fn missing_claims(&self, shared: &SharedState) -> Vec<String> {
        let mut missing = Vec::new();
        for (_, source) in self.volumes() {
            if let VolumeSource::Named(name) = source
                && shared.keyed(Keyed::Claim, &self.state.head.namespace, &name).is_none()
                && !missing.contains(&name)
            {
                missing.push(name);
            }
        }
        missing
    }

    /// Returns the mounts of the job's volumes, which every container has.
    pub(super) fn volume_mounts(&self) -> Vec<Mount> {
        let namespace = &self.state.head.namespace;
        let mount = |(at, (volume, source)): (usize, (&JobVolume, VolumeSource))| Mount {
            path: volume.mount_path.clone(),
            source: match source {
                VolumeSource::Named(name) | VolumeSource::Made(name) => {
                    MountSource::Claim { namespace: namespace.to_string(), name }
                }
                VolumeSource::Empty => MountSource::Scratch { name: format!("job-volume-{at}") },
            },
            sub_path: None,
            read_only: false,
        };
        self.volumes().enumerate().map(mount).collect()
    }
}
