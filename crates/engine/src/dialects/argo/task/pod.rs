//! Builds the containers of a task beside its main one, or in its place: init containers, sidecars and sets.

use std::{collections::HashSet, time::Duration};

use octoflow_model::{
    NodeIx,
    argo::{ContainerSet, Template, UserContainer},
    pod::{Member, Part, Pod},
    podspec::Container,
    task::{self, Mount},
};

use super::PodOf;
use crate::dialects::argo::{
    duration,
    pod::{MAIN, name_of, order},
    view::View,
};

impl View<'_> {
    /// Builds all containers of a task, given its main one, in the order they are judged; `None` if there is no other.
    pub(super) fn pod(
        &self,
        at: NodeIx,
        template: &Template,
        main: &task::TaskContainer,
        shared: &[Mount],
        pod: &PodOf<'_>,
    ) -> Result<Option<Pod>, String> {
        if template.init_containers.is_empty() && template.sidecars.is_empty() && template.container_set.is_none() {
            return Ok(None);
        }
        let mut made = Pod::default();
        for container in &template.init_containers {
            made.members.push(self.helper(at, template, Part::Init, container, shared, pod)?);
        }
        match &template.container_set {
            Some(set) => self.set(at, template, set, pod, &mut made)?,
            None => made.members.push(Member {
                part: Part::Main,
                container: main.clone(),
                // Files and mounts of the main container are the task's own.
                files: Vec::new(),
                mounts: Vec::new(),
                after: Vec::new(),
                probe: None,
            }),
        }
        for container in &template.sidecars {
            made.members.push(self.helper(at, template, Part::Sidecar, container, shared, pod)?);
        }
        let mut names = HashSet::new();
        match made.members.iter().find(|member| !names.insert(member.container.name.as_str())) {
            Some(twice) => Err(format!("two containers of the task are called '{}'", twice.container.name)),
            None => Ok(Some(made)),
        }
    }

    fn helper(
        &self,
        at: NodeIx,
        template: &Template,
        part: Part,
        user: &UserContainer,
        shared: &[Mount],
        pod: &PodOf<'_>,
    ) -> Result<Member, String> {
        let mut member = self.member(at, template, part, &user.container, pod)?;
        if user.mirror_volume_mounts == Some(true) {
            for mount in shared {
                if !member.mounts.iter().any(|own| own.path == mount.path) {
                    member.mounts.push(mount.clone());
                }
            }
        }
        Ok(member)
    }

    fn member(
        &self,
        at: NodeIx,
        template: &Template,
        part: Part,
        container: &Container,
        pod: &PodOf<'_>,
    ) -> Result<Member, String> {
        let (mut files, mut mounts) = (Vec::new(), Vec::new());
        self.mount_volumes(at, template, container, &mut files, &mut mounts)?;
        let container = self.main_container(at, container, pod)?;
        Ok(Member { part, container, files, mounts, after: Vec::new(), probe: None })
    }

    fn set(
        &self,
        at: NodeIx,
        template: &Template,
        set: &ContainerSet,
        pod: &PodOf<'_>,
        made: &mut Pod,
    ) -> Result<(), String> {
        if order(&set.containers).is_none() {
            return Err(
                "the containers of the set depend on each other in a cycle, or on one that does not exist".to_owned()
            );
        }
        let first = made.members.len() as u32;
        for container in &set.containers {
            let mut whole = container.container.clone();
            whole.volume_mounts.extend(set.volume_mounts.iter().cloned());
            let mut member = self.member(at, template, Part::Main, &whole, pod)?;
            let places = container.dependencies.iter().filter_map(|name| {
                set.containers.iter().position(|other| name_of(other) == name).map(|place| first + place as u32)
            });
            member.after = places.collect();
            made.members.push(member);
        }
        if let Some(retry) = &set.retry_strategy {
            (made.retries, made.pause) = retries(retry)?;
        }
        Ok(())
    }
}

fn retries(retry: &octoflow_model::argo::body::SetRetry) -> Result<(u32, Duration), String> {
    let count = match &retry.retries {
        Some(text) => text
            .0
            .trim()
            .parse()
            .map_err(|_| format!("containerSet.retryStrategy.retries '{}' is not a whole number from 0", text.0))?,
        None => 0,
    };
    let pause = match &retry.duration {
        Some(text) if !text.0.trim().is_empty() => duration::parse(&text.0)
            .ok_or_else(|| format!("containerSet.retryStrategy.duration '{}' is not a duration", text.0))?,
        Some(_) | None => Duration::ZERO,
    };
    Ok((count, pause))
}

/// Returns the container of a set that provides its result: the one called `main`.
pub(super) fn main_of_set(set: &ContainerSet) -> Option<&Container> {
    set.containers.iter().find(|container| name_of(container) == MAIN).map(|container| &container.container)
}
