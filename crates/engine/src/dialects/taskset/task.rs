//! Builds the task of a replica from its role's pod template.

use octoflow_model::{
    NodeIx, Task,
    pod::{Part, Pod},
    task::{EnvValue, WantedOutputs, placement::Assignment},
};

use super::{ident, peers, turn::Turn};
use crate::pod::{
    GRACE_S, PodContext,
    demand::device_variables,
    member::{keyed_field, member, termination_message},
    together,
};

impl Turn<'_> {
    /// Builds the task of a replica's next or current pod for the place it got; on error returns the reason.
    pub fn build_task(&self, at: NodeIx, on: &Assignment) -> Result<Task, String> {
        let run = &*self.run;
        let role = run.program.role_of(at.0);
        let spec = run.program.spec(role);
        let template = &spec.template.spec;
        let replica = &run.state.replicas[at.at()];
        let name = run.pod_name(at.0, run.state.attempt, replica.number());
        let pod_uid = ident::uid(&run.state.head.uid, &["pod", &name]);
        let address = run.address_of(at.0).to_string();
        let metadata = &spec.template.metadata;
        let field = |path: &str| match path {
            "metadata.name" => Some(name.clone()),
            "metadata.uid" => Some(pod_uid.clone()),
            "spec.serviceAccountName" => {
                Some(template.service_account_name.clone().unwrap_or_else(|| "default".to_owned()))
            }
            "status.podIP" => Some(address.clone()),
            path => keyed_field(path, "metadata.labels", &metadata.labels)
                .or_else(|| keyed_field(path, "metadata.annotations", &metadata.annotations)),
        };
        let context = PodContext { shared: self.shared, namespace: &run.state.head.namespace, field: &field };
        let mut first = self.variables(at.0, role, replica.retried);
        let devices = device_variables(&on.devices).into_iter();
        first.extend(devices.map(|(name, numbers)| (name, EnvValue::Plain(numbers))));
        let mut members = Vec::with_capacity(template.init_containers.len() + template.containers.len());
        let lists = [(Part::Init, &template.init_containers), (Part::Main, &template.containers)];
        for (part, list) in lists {
            for container in list {
                members.push(member(&context, part, container, &template.volumes, first.clone())?);
            }
        }
        let main = template.containers.first().ok_or("its pod has no container")?;
        let at_main = template.init_containers.len();
        let alone = members.len() == 1;
        let (files, mounts) = {
            let main = &mut members[at_main];
            // Files and mounts of the main container belong to the task itself.
            (std::mem::take(&mut main.files), std::mem::take(&mut main.mounts))
        };
        let container = members[at_main].container.clone();
        Ok(Task {
            name,
            main: container,
            files,
            mounts,
            wanted: WantedOutputs { message: Some(termination_message(main)), ..WantedOutputs::default() },
            resources: together(
                template.init_containers.iter().map(|container| &container.container),
                template.containers.iter().map(|container| &container.container),
            ),
            grace: std::time::Duration::from_secs(template.termination_grace_period_seconds.unwrap_or(GRACE_S)),
            pod: (!alone).then(|| Box::new(Pod { members, ..Pod::default() })),
            hosts: Some(run.hosts.clone()),
            ..Task::default()
        })
    }

    /// Returns the variables that every container of a replica gets. A variable of the manifest with the same name
    /// wins.
    fn variables(&self, replica: u32, role: usize, retried: u32) -> Vec<(String, EnvValue)> {
        let run = &*self.run;
        let own = [
            ("TASKSET_NAMESPACE", run.state.head.namespace.to_string()),
            ("TASKSET_NAME", run.state.head.name.to_string()),
            ("TASKSET_ATTEMPT", run.state.attempt.to_string()),
            ("TASKROLE_NAME", run.program.spec(role).name.clone()),
            ("TASKROLE_REPLICA_INDEX", run.program.index_of(replica).to_string()),
            ("TASKROLE_REPLICA_ATTEMPT", retried.to_string()),
            ("TASKSET_REPLICA_RANK", replica.to_string()),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), EnvValue::Plain(value)));
        own.chain(peers::variables(run.id, &run.peers, replica)).collect()
    }
}
