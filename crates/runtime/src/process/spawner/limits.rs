//! Memory limits of a task's containers: creates a cgroup for each limit, and tells which limits were exceeded. Where
//! the machine allows no cgroups none is created, and processes get limits of their own (`memory`).

use std::{os::fd::AsRawFd, sync::OnceLock};

use super::cgroup::{Group, Groups};
use crate::process::wire::{Ended, Launch};

/// Opened with the first limit; `Err` says why cgroups are unavailable.
#[derive(Default)]
pub(crate) struct Limits(OnceLock<Result<Groups, String>>);

/// The cgroup of a container: of the member with this index, or of the only one.
pub(crate) struct Limit {
    pub(crate) member: Option<usize>,
    pub(crate) group: Group,
}

impl Limits {
    /// Creates cgroups for the containers that have a limit, and sets in the launch how to join them.
    pub(crate) fn impose(&self, launch: &mut Launch) -> Result<Vec<Limit>, Ended> {
        let members =
            launch.pod_plan.iter_mut().flat_map(|pod_plan| &mut pod_plan.members).map(|member| &mut member.launch);
        let members: Vec<&mut Launch> = members.collect();
        let alone = members.is_empty();
        let containers = if alone { vec![launch] } else { members };
        if containers.iter().all(|container| container.memory_limit.is_none()) {
            return Ok(Vec::new());
        }
        let Ok(groups) = self.0.get_or_init(Groups::open) else { return Ok(Vec::new()) };
        let mut limits = Vec::new();
        for (at, container) in containers.into_iter().enumerate() {
            let Some(bytes) = container.memory_limit else { continue };
            match groups.make(bytes) {
                Ok(group) => {
                    container.group = Some(group.joining().as_raw_fd());
                    limits.push(Limit { member: (!alone).then_some(at), group });
                }
                Err(error) => {
                    self.lift(limits);
                    return Err(Ended::Environment(format!("no control group for its limit of memory: {error}")));
                }
            }
        }
        Ok(limits)
    }

    /// Removes the cgroups of a task whose processes are gone.
    pub(crate) fn lift(&self, limits: Vec<Limit>) {
        if let Some(Ok(groups)) = self.0.get() {
            limits.into_iter().for_each(|limit| groups.remove(limit.group));
        }
    }

    /// Removes everything before the process exits.
    pub(crate) fn close(&self) {
        if let Some(Ok(groups)) = self.0.get() {
            groups.close();
        }
    }
}
