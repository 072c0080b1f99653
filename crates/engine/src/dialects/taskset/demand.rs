//! What the scheduler is told of a TaskSet's replicas: from their PodGroup, the pod template, else from the TaskSet.
//! Demands are built once for each role and shared by its replicas.

use std::{cell::OnceCell, collections::HashMap, sync::Arc, time::Duration};

use octoflow_manifest::Path;
use octoflow_model::{NodeIx, taskset::GANG_ANNOTATION};

use super::{
    program::{GangPlan, Program},
    run::Run,
};
use crate::{
    dialects::{argo::duration, dialect::StaticTask},
    pod::demand::{Constraints, Marks},
    schedule::{
        Gang,
        spec::{DEFAULT, Demand},
    },
};

/// Demands of a role's replicas: those that start with their gang, and those that start alone.
#[derive(Debug, Default)]
pub(super) struct RoleDemands {
    together: OnceCell<Arc<Demand>>,
    alone: OnceCell<Arc<Demand>>,
}

impl Run {
    pub(super) fn demand_of(&self, at: NodeIx) -> Arc<Demand> {
        let role = self.program.role_of(at.0);
        let cached = &self.demands[role];
        match self.gang(at) {
            Some(gang) => cached.together.get_or_init(|| Arc::new(self.new_demand(role, Some(gang)))).clone(),
            None => cached.alone.get_or_init(|| Arc::new(self.new_demand(role, None))).clone(),
        }
    }

    fn new_demand(&self, role: usize, gang: Option<Gang>) -> Demand {
        let tenant = self.known.submitted_by.as_deref();
        let tenant = tenant.map_or_else(|| self.state.head.namespace.clone(), Into::into);
        Demand { gang, tenant, ..self.program.demand(role, self.known.queue.as_deref()) }
    }
}

impl Program {
    /// Returns what replicas of a role ask for, without tenant and gang. `inherited` is the queue of the namespace.
    pub(super) fn demand(&self, role: usize, inherited: Option<&str>) -> Demand {
        let (set, plan, template) = (&self.set, &self.roles[role], &self.spec(role).template);
        let group = plan.gang.as_ref().map(|gang| &gang.details);
        let of_pod = Marks::of(&template.metadata.labels, &template.metadata.annotations);
        let mut of_set = Marks::of(&set.metadata.labels, &set.metadata.annotations);
        of_set.queue = set.spec.queue.clone().filter(|queue| !queue.is_empty()).or(of_set.queue);
        let marks = of_pod.or(&of_set);
        // All members of a gang wait in one queue.
        let queue = group.and_then(|group| group.queue.as_deref()).or(marks.queue.as_deref()).or(inherited);
        let pod = &template.spec;
        let field = |name: &str| pod.rest.get(name);
        let class = field("priorityClassName").and_then(serde_json::Value::as_str).map(str::to_owned);
        let class = class.or_else(|| group.and_then(|group| group.class.clone())).filter(|class| !class.is_empty());
        let constraints = Constraints::of(field("nodeSelector"), field("affinity"), field("tolerations"));
        Demand {
            queue: queue.unwrap_or(DEFAULT).into(),
            priority: plan.priority,
            class: class.map(Into::into),
            constraints: Arc::new(constraints.into_placement()),
            preemptable: marks.preemptable,
            bound: pod.active_deadline_seconds.map(Duration::from_secs),
            longest_wait: marks.longest_wait.and_then(|span| duration::parse(&span)),
            ..Demand::new("", plan.resources.clone())
        }
    }

    /// Returns the replicas as the manifest alone describes them: all of a role, or those that start first with their gang.
    pub(super) fn static_tasks(&self, inherited: Option<&str>) -> Vec<StaticTask> {
        let mut tasks = Vec::new();
        let mut open: HashMap<&str, u32> = HashMap::new();
        for (role, plan) in self.roles.iter().enumerate() {
            let template = Path::root().join("spec").join("roles").join(role).join("template");
            let count = plan.gang.as_ref().map_or(1, |gang| {
                let left = open.entry(&gang.name).or_insert_with(|| self.beyond_parts(gang));
                let owed = gang.details.least_of.get(&self.spec(role).name).copied().unwrap_or(0).min(plan.count);
                let more = (plan.count - owed).min(*left);
                *left -= more;
                owed + more
            });
            let named = || template.clone().join("metadata").join("annotations").join(GANG_ANNOTATION);
            if count > 0 && plan.count > 0 {
                tasks.push(StaticTask {
                    path: template.clone().join("spec"),
                    gang: plan.gang.as_ref().map(|gang| (gang.name.to_string(), named())),
                    demand: self.demand(role, inherited),
                    queue_known: true,
                    count,
                    certain: true,
                });
            }
        }
        // One path for the gang: that of its first role.
        for at in 1..tasks.len() {
            let first = tasks[..at].iter().find_map(|one| one.gang.clone().filter(|gang| same(gang, &tasks[at].gang)));
            if first.is_some() {
                tasks[at].gang = first;
            }
        }
        tasks
    }

    /// Returns how many members have to start first beyond the least of each part.
    fn beyond_parts(&self, gang: &GangPlan) -> u32 {
        let owed = |(part, least): (&String, &u32)| {
            let role = self.set.spec.roles.iter().position(|role| role.name == *part);
            role.map_or(0, |role| (*least).min(self.roles[role].count))
        };
        gang.least.saturating_sub(gang.details.least_of.iter().map(owed).sum())
    }
}

fn same(gang: &(String, Path), other: &Option<(String, Path)>) -> bool {
    other.as_ref().is_some_and(|(name, _)| *name == gang.0)
}

#[cfg(test)]
mod tests {
    use octoflow_model::submission::{GroupDetails, Stored};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_members_of_a_gang_are_those_that_the_scheduler_takes() {
        let role = |name: &str, replicas: u32| {
            json!({"name": name, "replicas": replicas, "template": {
                "metadata": {"annotations": {GANG_ANNOTATION: "g"}},
                "spec": {"containers": [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}}})
        };
        let set = json!({
            "apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {"name": "t"},
            "spec": {"queue": "q", "roles": [role("a", 4), role("b", 4)]},
        });
        let details = GroupDetails { least_of: [("b".to_owned(), 2)].into(), ..GroupDetails::default() };
        let stored = Stored {
            groups: [("g".to_owned(), 5)].into(),
            group_details: [("g".to_owned(), details)].into(),
            ..Stored::default()
        };
        let tasks = Program::compile(&set, &stored).unwrap().static_tasks(None);
        let told: Vec<(u32, &str, u64)> =
            tasks.iter().map(|task| (task.count, &*task.demand.queue, task.demand.resources.cpu_milli)).collect();
        assert_eq!(told, [(3, "q", 2000), (2, "q", 2000)]);
        assert_eq!(tasks[0].gang, tasks[1].gang);
        assert_eq!(tasks[1].path.to_string(), "spec.roles[1].template.spec");
    }
}
