//! Builds the task of a pod from the job's pod template.

use octoflow_model::{
    NodeIx, Task,
    kubejob::mark,
    pod::{Part, Pod},
    task::{EnvValue, Labels, WantedOutputs, placement::Assignment},
};
use serde_json::Value;

use super::{defaults, ident, run::Run, turn::Turn};
use crate::dialects::volcano::probe;
use crate::pod::{
    GRACE_S, PodContext,
    demand::device_variables,
    member::{keyed_field, member, termination_message},
};

/// Variable with the index of a pod.
const COMPLETION_INDEX: &str = "JOB_COMPLETION_INDEX";

impl Run {
    /// Returns the labels that all pods have: those of the template, and those that identify the job.
    pub(super) fn common_labels(&self) -> Labels {
        let (head, template) = (&self.state.head, &self.program.job.spec.template.metadata);
        let manual = self.program.job.spec.manual_selector == Some(true);
        let given =
            Value::Object(template.labels.iter().map(|(key, text)| (key.clone(), text.as_str().into())).collect());
        let all = defaults::labels(&given, &head.name, &head.uid, manual);
        all.into_iter().map(|(key, text)| (key, text.as_str().unwrap_or_default().to_owned())).collect()
    }

    /// Returns the labels and annotations of a pod.
    pub(super) fn marks_of(&self, pod: u32) -> (Labels, Labels) {
        let mut labels = self.common_labels();
        let mut annotations = self.program.job.spec.template.metadata.annotations.clone();
        let slot = &self.state.pods[pod as usize];
        if let Some(index) = slot.index {
            labels.insert(mark::COMPLETION_INDEX.to_owned(), index.to_string());
            annotations.insert(mark::COMPLETION_INDEX.to_owned(), index.to_string());
            if self.program.limit_per_index.is_some() {
                annotations.insert(mark::INDEX_FAILURES.to_owned(), slot.before.0.to_string());
                if slot.before.1 > 0 {
                    annotations.insert(mark::INDEX_IGNORED.to_owned(), slot.before.1.to_string());
                }
            }
        }
        (labels, annotations)
    }
}

impl Turn<'_> {
    /// Builds the task of a pod's next or current attempt for the place it got; on error returns the reason.
    pub fn build_task(&self, at: NodeIx, on: &Assignment) -> Result<Task, String> {
        let run = &*self.run;
        let template = &run.program.job.spec.template.spec;
        let (name, pod_uid) = (run.pod_name(at.0), run.pod_uid(at.0));
        let (labels, annotations) = run.marks_of(at.0);
        let address = run.address_of(at.0).to_string();
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
        let context = PodContext { shared: self.shared, namespace: &run.state.head.namespace, field: &field };
        let index = run.state.pods[at.at()].index.map(|index| (COMPLETION_INDEX.to_owned(), index.to_string()));
        let first: Vec<(String, EnvValue)> = index
            .into_iter()
            .chain(device_variables(&on.devices))
            .map(|(name, text)| (name, EnvValue::Plain(text)))
            .collect();
        let mut members = Vec::with_capacity(template.init_containers.len() + template.containers.len());
        for (part, list) in [(Part::Init, &template.init_containers), (Part::Main, &template.containers)] {
            for container in list {
                let mut made = member(&context, part, container, &template.volumes, first.clone())?;
                if let Some(written) = container.readiness_probe.as_ref().filter(|_| part == Part::Main) {
                    made.probe = Some(Box::new(probe::read(written, &address)?));
                }
                members.push(made);
            }
        }
        let main = template.containers.first().ok_or("its pod has no container")?;
        let at_main = template.init_containers.len();
        // Whoever runs probes is the supervisor of several containers.
        let alone = members.len() == 1 && members[at_main].probe.is_none();
        let (files, mounts) = {
            let main = &mut members[at_main];
            // Files and mounts of the main container belong to the task itself.
            (std::mem::take(&mut main.files), std::mem::take(&mut main.mounts))
        };
        // Pods of an index have its name, whichever of them it is.
        let index = run.state.pods[at.at()].index;
        let hostname = index.map_or_else(|| name.clone(), |index| ident::host_name(&run.state.head.name, index));
        Ok(Task {
            hostname: Some(hostname),
            name,
            main: members[at_main].container.clone(),
            files,
            mounts,
            wanted: WantedOutputs { message: Some(termination_message(main)), ..WantedOutputs::default() },
            resources: run.program.resources.clone(),
            grace: std::time::Duration::from_secs(template.termination_grace_period_seconds.unwrap_or(GRACE_S)),
            pod: (!alone).then(|| Box::new(Pod { members, ..Pod::default() })),
            hosts: run.hosts.clone(),
            ..Task::default()
        })
    }
}
