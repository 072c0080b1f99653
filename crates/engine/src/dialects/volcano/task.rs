//! Builds the task of a pod from its pod template and what the plugins add.

use octoflow_model::{
    NodeIx, Task,
    pod::{Part, Pod},
    podspec::PodContainer,
    task::{EnvValue, WantedOutputs, placement::Assignment},
    volcano::mark,
};

use super::{plugin::PodAdditions, probe, turn::Turn};
use crate::pod::{
    GRACE_S, PodContext,
    demand::device_variables,
    member::{keyed_field, member, termination_message},
    together,
};

impl Turn<'_> {
    /// Builds the task of a pod's next or current attempt for the place it got; on error returns the reason.
    pub fn build_task(&self, at: NodeIx, on: &Assignment) -> Result<Task, String> {
        let run = &*self.run;
        let (program, head) = (&run.program, &run.state.head);
        let task = program.task_of(at.0);
        let index = program.index_of(at.0);
        let spec = program.spec(task);
        let template = &spec.template.spec;
        let (name, pod_uid) = (run.pod_name(at.0), run.pod_uid(at.0));
        let pod = &run.state.pods[at.at()];
        // One that a runtime has is described again after a restart, as it was.
        let version = pod.tries.last().filter(|_| pod.phase.placed()).copied().unwrap_or(run.state.version);
        let added = program.plugins.additions(program, &head.name, task, index, run.known.keys.as_deref())?;
        let address = run.address_of(at.0).to_string();
        let mut labels = spec.template.metadata.labels.clone();
        let mut annotations = spec.template.metadata.annotations.clone();
        let own = [
            (mark::JOB_NAME, head.name.to_string()),
            (mark::JOB_NAMESPACE, head.namespace.to_string()),
            (mark::QUEUE_NAME, program.queue(run.known.queue.as_deref())),
            (mark::TASK_SPEC, spec.name.clone()),
            (mark::TASK_INDEX, index.to_string()),
            (mark::JOB_VERSION, version.to_string()),
            (mark::JOB_RETRY_COUNT, run.state.retries.to_string()),
            (mark::TEMPLATE_UID, format!("{}-{}", head.uid, spec.name)),
            (mark::GROUP_NAME, super::ident::group_name(&head.name, &head.uid)),
        ];
        for (key, value) in own {
            labels.insert(key.to_owned(), value.clone());
            annotations.insert(key.to_owned(), value);
        }
        annotations.extend(added.annotations.clone());
        let field = |path: &str| match path {
            "metadata.name" => Some(name.clone()),
            "metadata.uid" => Some(pod_uid.clone()),
            "spec.serviceAccountName" => {
                Some(template.service_account_name.clone().unwrap_or_else(|| "default".to_owned()))
            }
            "status.podIP" => Some(address.clone()),
            path => keyed_field(path, "metadata.labels", &labels)
                .or_else(|| keyed_field(path, "metadata.annotations", &annotations)),
        };
        let context = PodContext { shared: self.shared, namespace: &head.namespace, field: &field };
        let mut first = added.variables.clone();
        let devices = device_variables(&on.devices).into_iter();
        first.extend(devices.map(|(name, numbers)| (name, EnvValue::Plain(numbers))));
        let (inits, mains) = containers(&template.init_containers, &template.containers, &added);
        let mut members = Vec::with_capacity(inits.len() + mains.len());
        for (part, list) in [(Part::Init, &inits), (Part::Main, &mains)] {
            for container in list {
                let mut made = member(&context, part, container, &template.volumes, first.clone())?;
                if let Some(written) = container.readiness_probe.as_ref().filter(|_| part == Part::Main) {
                    made.probe = Some(Box::new(probe::read(written, &address)?));
                }
                made.mounts.extend(run.volume_mounts());
                members.push(made);
            }
        }
        let main = mains.first().ok_or("its pod has no container")?;
        let at_main = inits.len();
        // Whoever runs probes is the supervisor of several containers.
        let alone = members.len() == 1 && members[at_main].probe.is_none();
        let (mut files, mounts) = {
            let main = &mut members[at_main];
            // Files and mounts of the main container belong to the task itself.
            (std::mem::take(&mut main.files), std::mem::take(&mut main.mounts))
        };
        files.extend(added.files);
        Ok(Task {
            hostname: Some(name.clone()),
            name,
            main: members[at_main].container.clone(),
            files,
            mounts,
            wanted: WantedOutputs { message: Some(termination_message(main)), ..WantedOutputs::default() },
            resources: together(
                inits.iter().map(|container| &container.container),
                mains.iter().map(|container| &container.container),
            ),
            grace: std::time::Duration::from_secs(template.termination_grace_period_seconds.unwrap_or(GRACE_S)),
            pod: (!alone).then(|| Box::new(Pod { members, ..Pod::default() })),
            hosts: run.hosts.clone(),
            ..Task::default()
        })
    }
}

/// Returns the containers of a pod with what plugins change: commands, and containers that run before.
fn containers(
    inits: &[PodContainer],
    mains: &[PodContainer],
    added: &PodAdditions,
) -> (Vec<PodContainer>, Vec<PodContainer>) {
    let (mut before, mut mains) = (inits.to_vec(), mains.to_vec());
    before.extend(added.before.iter().cloned());
    if let Some((container, command)) = &added.command {
        let at = mains.iter().position(|one| one.container.name.as_deref() == Some(container));
        if let Some(one) = mains.get_mut(at.unwrap_or(0)) {
            one.container.command = vec!["sh".to_owned(), "-c".to_owned(), command.clone()];
            one.container.args = Vec::new();
        }
    }
    (before, mains)
}
