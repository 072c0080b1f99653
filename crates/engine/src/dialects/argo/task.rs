//! Builds tasks for a runtime from templates with their variables filled in: command, environment, files, mounts,
//! inputs to place and outputs to collect.

use octoflow_model::{
    NodeIx, Task, Time,
    argo::{Artifact, ArtifactValue, Template},
    podspec::Container,
    task::{
        self, Archive, ArtifactInput, ArtifactOutput, ArtifactSource, EnvValue, File, Resources, WantedOutputs,
        placement::Assignment,
    },
};

use super::{ident, instance::Instance, turn::Turn, view::View};
use crate::pod::{GRACE_S, MAIN, PodContext, demand::device_variables, together};

mod destination;
mod patch;
mod pod;
mod volumes;

pub(super) use patch::flaw as patch_flaw;

/// Name of the artifact that an archived log becomes.
pub(super) const MAIN_LOGS: &str = "main-logs";
/// Path of a script's source inside its task.
pub(crate) const SCRIPT_PATH: &str = "/argo/staging/script";
/// Environment variable with the path of the file in which a task may report its progress.
const PROGRESS_VARIABLE: &str = "ARGO_PROGRESS_FILE";

impl Turn<'_> {
    /// Builds the task of a node for the place it got, with its deadline; fails with the reason.
    pub fn build_task(&mut self, at: NodeIx, on: &Assignment) -> Result<(Task, Option<Time>), String> {
        let instance = self.instance(at)?;
        let template = &instance.template;
        let deadline = self.leaf_deadline(at, template)?;
        let node = self.run.state.node(at);
        let name = ident::pod_name(&self.run.state.head.name, &node.name, node.template.as_deref().unwrap_or_default());
        if let Some(call) = self.view().request(at, &instance)? {
            let wanted = self.view().wanted_of_request(at, template);
            return Ok((Task { name, wanted, call: Some(Box::new(call)), ..Task::default() }, deadline));
        }
        let set = template.container_set.as_ref();
        let (container, source) = match (&template.container, &template.script, set) {
            (Some(container), ..) => (Some(container), None),
            (None, Some(script), _) => {
                (Some(&script.container), Some(script.source.as_str()).filter(|source| !source.is_empty()))
            }
            (None, None, Some(set)) => (pod::main_of_set(set), None),
            (None, None, None) => return Err(format!("template '{}' runs no container", template.name)),
        };
        self.view().check_patches(at, template)?;
        let mut files = Vec::new();
        let mut mounts = Vec::new();
        let mut main = task::TaskContainer::default();
        if let Some(container) = container {
            self.view().mount_volumes(at, template, container, &mut files, &mut mounts)?;
            main = self.view().main_container(at, container, &PodOf { name: &name, on })?;
        }
        if let Some(source) = source {
            files.push(File { path: SCRIPT_PATH.to_owned(), contents: source.as_bytes().to_vec(), mode: 0o755 });
            main.args.push(SCRIPT_PATH.to_owned());
        }
        let task = Task {
            pod: self.view().pod(at, template, &main, &mounts, &PodOf { name: &name, on })?.map(Box::new),
            main,
            files,
            mounts,
            progress: Some(PROGRESS_VARIABLE.to_owned()),
            inputs: self.view().input_artifacts(at, template)?,
            wanted: self.view().wanted(at, &instance)?,
            resources: resources(template),
            grace: std::time::Duration::from_secs(template.termination_grace_period_seconds.unwrap_or(GRACE_S)),
            name,
            call: None,
            hostname: None,
            hosts: None,
        };
        Ok((task, deadline))
    }
}

/// The pod that a container belongs to.
#[derive(Clone, Copy)]
struct PodOf<'a> {
    name: &'a str,
    on: &'a Assignment,
}

impl View<'_> {
    fn main_container(
        &self,
        at: NodeIx,
        container: &Container,
        pod: &PodOf<'_>,
    ) -> Result<task::TaskContainer, String> {
        let run = &self.run;
        let field = |path: &str| match path {
            "metadata.name" => Some(pod.name.to_owned()),
            "metadata.uid" => Some(run.state.head.uid.to_string()),
            "spec.serviceAccountName" => {
                let named = run.program.workflow.spec.service_account_name.clone();
                Some(named.unwrap_or_else(|| "default".to_owned()))
            }
            _ => None,
        };
        let name = container.name.clone().unwrap_or_else(|| MAIN.to_owned());
        let mut first = vec![
            ("ARGO_CONTAINER_NAME".to_owned(), EnvValue::Plain(name)),
            ("ARGO_NODE_ID".to_owned(), EnvValue::Plain(run.state.id_of(at))),
        ];
        let devices = device_variables(&pod.on.devices).into_iter();
        first.extend(devices.map(|(name, numbers)| (name, EnvValue::Plain(numbers))));
        PodContext { shared: self.world, namespace: &run.state.head.namespace, field: &field }
            .container(container, first)
    }

    fn input_artifacts(&self, at: NodeIx, template: &Template) -> Result<Vec<ArtifactInput>, String> {
        let given = self.run.state.node(at).inputs.as_deref();
        let mut inputs = Vec::new();
        for declared in &template.inputs.artifacts {
            let Some(value) = given.and_then(|given| given.artifacts.iter().find(|value| value.name == declared.name))
            else {
                continue;
            };
            let source = match &value.source {
                ArtifactValue::Absent => continue,
                ArtifactValue::Raw(data) => ArtifactSource::Raw { data: data.clone() },
                ArtifactValue::Stored { artifact, sub_path } => {
                    ArtifactSource::Stored { artifact: artifact.clone(), sub_path: sub_path.clone() }
                }
                ArtifactValue::Located { at: place, sub_path, optional } => ArtifactSource::Remote {
                    location: self
                        .input_location(template, declared, place)
                        .map_err(|why| format!("inputs.artifacts.{}: {why}", declared.name))?,
                    sub_path: sub_path.clone(),
                    optional: *optional,
                },
            };
            let path = declared
                .path
                .clone()
                .ok_or_else(|| format!("inputs.artifacts.{} has no path to be placed at", declared.name))?;
            inputs.push(ArtifactInput {
                name: declared.name.clone(),
                path,
                source,
                mode: declared.mode,
                recurse_mode: declared.recurse_mode,
                archive: declared.archive.as_ref().map(|_| archive(declared)),
            });
        }
        Ok(inputs)
    }

    fn wanted(&self, at: NodeIx, instance: &Instance) -> Result<WantedOutputs, String> {
        let template = &instance.template;
        // A later cache hit of a memoized task may need the result though this caller does not.
        let result = self.result_is_wanted(at, template) || template.memoize.is_some();
        let mut wanted = WantedOutputs { result, ..WantedOutputs::default() };
        for parameter in &template.outputs.parameters {
            if let Some(path) = parameter.value_from.as_ref().and_then(|from| from.path.clone()) {
                wanted.parameters.push((parameter.name.clone(), path));
            }
        }
        for artifact in &template.outputs.artifacts {
            let path =
                artifact.path.clone().ok_or_else(|| format!("outputs.artifacts.{} has no path", artifact.name))?;
            let archive = archive(artifact);
            let file = match archive {
                Archive::None => path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned(),
                Archive::Tar { level: Some(0) } => format!("{}.tar", artifact.name),
                Archive::Tar { .. } => format!("{}.tgz", artifact.name),
                Archive::Zip => format!("{}.zip", artifact.name),
            };
            let output = ArtifactOutput { name: artifact.name.clone(), path, archive, ..ArtifactOutput::default() };
            let output = self
                .with_destination(at, template, Some(artifact), &file, output)
                .map_err(|why| format!("outputs.artifacts.{}: {why}", artifact.name))?;
            wanted.artifacts.push(output);
        }
        if self.logs_are_kept(template)? {
            let output = ArtifactOutput { name: MAIN_LOGS.to_owned(), ..ArtifactOutput::default() };
            let output = self.with_destination(at, template, None, "main.log", output);
            wanted.log = Some(Box::new(output.map_err(|why| format!("archiveLogs: {why}"))?));
        }
        Ok(wanted)
    }

    /// Whether some text of the caller refers to this call's result, or a metric of its own does.
    pub(super) fn result_is_wanted(&self, at: NodeIx, template: &Template) -> bool {
        if template.container_set.as_ref().is_some_and(|set| pod::main_of_set(set).is_none()) {
            return false;
        }
        self.run.compiled_of(at).reads_result
            || self.run.site_of(at).is_some_and(|(boundary, place, _)| {
                let caller = self.run.compiled_of(boundary);
                caller.results.contains(caller.call_name(place))
            })
    }
}

/// Sums up the resources that a template's containers request.
pub(super) fn resources(template: &Template) -> Resources {
    let main = template.container.as_ref().or(template.script.as_ref().map(|script| &script.container));
    let set = template.container_set.iter().flat_map(|set| &set.containers).map(|container| &container.container);
    let beside = template.sidecars.iter().map(|sidecar| &sidecar.container);
    let before = template.init_containers.iter().map(|init| &init.container);
    together(before, main.into_iter().chain(set).chain(beside))
}

fn archive(artifact: &Artifact) -> Archive {
    match &artifact.archive {
        Some(choice) if choice.none.is_some() => Archive::None,
        Some(choice) if choice.zip.is_some() => Archive::Zip,
        Some(choice) => Archive::Tar { level: choice.tar.as_ref().and_then(|tar| tar.compression_level) },
        None => Archive::Tar { level: None },
    }
}
