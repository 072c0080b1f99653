//! What the scheduler is told of a job's pods: from the pod template, else from the job. Demands are built once for each
//! task and shared by its pods.

use std::{cell::OnceCell, sync::Arc, time::Duration};

use octoflow_manifest::Path;
use octoflow_model::NodeIx;

use super::{program::Program, run::Run};
use crate::{
    dialects::{argo::duration, dialect::StaticTask},
    pod::demand::{Constraints, Marks},
    schedule::{
        Gang,
        spec::{DEFAULT, Demand},
    },
};

/// Demands of a task's pods: those that start with their gang, and those that start alone.
#[derive(Debug, Default)]
pub(super) struct TaskDemands {
    together: OnceCell<Arc<Demand>>,
    alone: OnceCell<Arc<Demand>>,
}

impl Run {
    pub(super) fn demand_of(&self, at: NodeIx) -> Arc<Demand> {
        let task = self.program.task_of(at.0);
        let cached = &self.demands[task];
        match self.gang(at) {
            Some(gang) => cached.together.get_or_init(|| Arc::new(self.new_demand(task, Some(gang)))).clone(),
            None => cached.alone.get_or_init(|| Arc::new(self.new_demand(task, None))).clone(),
        }
    }

    fn new_demand(&self, task: usize, gang: Option<Gang>) -> Demand {
        let tenant = self.known.submitted_by.as_deref();
        let tenant = tenant.map_or_else(|| self.state.head.namespace.clone(), Into::into);
        Demand { gang, tenant, ..self.program.demand(task, self.known.queue.as_deref()) }
    }
}

impl Program {
    /// Returns the queue that all pods of the job wait in. `inherited` is the queue of the namespace.
    pub(super) fn queue<'q>(&'q self, inherited: Option<&'q str>) -> String {
        let metadata = &self.job.metadata;
        let named = self.job.spec.queue.clone().filter(|queue| !queue.is_empty());
        let marked = || Marks::of(&metadata.labels, &metadata.annotations).queue;
        named.or_else(marked).or(inherited.map(str::to_owned)).unwrap_or_else(|| DEFAULT.to_owned())
    }

    /// Returns what pods of a task ask for, without tenant and gang. `inherited` is the queue of the namespace.
    pub(super) fn demand(&self, task: usize, inherited: Option<&str>) -> Demand {
        let (plan, template) = (&self.tasks[task], &self.spec(task).template);
        let metadata = &self.job.metadata;
        let of_job = Marks::of(&metadata.labels, &metadata.annotations);
        let marks = Marks::of(&template.metadata.labels, &template.metadata.annotations).or(&of_job);
        let pod = &template.spec;
        let field = |name: &str| pod.rest.get(name);
        let class = field("priorityClassName").and_then(serde_json::Value::as_str).map(str::to_owned);
        let class = class.or_else(|| self.job.spec.priority_class_name.clone()).filter(|class| !class.is_empty());
        let constraints = Constraints::of(field("nodeSelector"), field("affinity"), field("tolerations"));
        Demand {
            // All members of a gang wait in one queue.
            queue: self.queue(inherited).into(),
            priority: pod.priority.unwrap_or(0),
            class: class.map(Into::into),
            constraints: Arc::new(constraints.into_placement()),
            preemptable: marks.preemptable,
            bound: pod.active_deadline_seconds.map(Duration::from_secs).or(self.estimate),
            longest_wait: marks.longest_wait.and_then(|span| duration::parse(&span)),
            ..Demand::new("", plan.resources.clone())
        }
    }

    /// Returns the pods as the manifest alone describes them: those that start first, together.
    pub(super) fn static_tasks(&self, inherited: Option<&str>) -> Vec<StaticTask> {
        let (parts, least) = (&self.gang_parts, self.gang_least);
        let gang = (least > 1).then(|| ("minAvailable".to_owned(), Path::root().join("spec").join("minAvailable")));
        let mut left = least.saturating_sub(parts.values().copied().fold(0, u32::saturating_add));
        let mut tasks = Vec::new();
        for (at, plan) in self.tasks.iter().enumerate().filter(|(_, plan)| plan.count > 0) {
            let first = plan.after.is_empty();
            let owed = parts.get(&self.spec(at).name).copied().unwrap_or(0);
            let more = (plan.count - owed).min(left);
            let count = match (&gang, first) {
                (Some(_), true) => owed + more,
                (None, _) | (Some(_), false) => 1,
            };
            if gang.is_some() && first {
                left -= more;
            }
            if count > 0 {
                let path = Path::root().join("spec").join("tasks").join(at).join("template").join("spec");
                let gang = gang.clone().filter(|_| first);
                let demand = self.demand(at, inherited);
                tasks.push(StaticTask { path, gang, demand, queue_known: true, count, certain: true });
            }
        }
        tasks
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn program(least: u32) -> Program {
        let task = |name: &str, replicas: u32, needs: serde_json::Value| {
            json!({"name": name, "replicas": replicas, "dependsOn": needs,
                   "template": {"spec": {"containers": [{"name": "m", "image": "i"}]}}})
        };
        let needs = json!({"name": ["a"]});
        let tasks = [task("a", 2, json!(null)), task("b", 3, json!(null)), task("c", 4, needs)];
        Program::compile(&json!({"spec": {"minAvailable": least, "queue": "q", "tasks": tasks}})).unwrap()
    }

    #[test]
    fn the_gang_is_formed_of_what_may_start_now() {
        let all = program(9);
        assert_eq!((all.gang_least, all.gang_parts.len()), (5, 2));
        let some = program(6);
        assert_eq!((some.gang_least, some.gang_parts.len()), (2, 0), "the job's minimum is below its tasks'");
        let told: Vec<(u32, bool)> =
            some.static_tasks(None).iter().map(|task| (task.count, task.gang.is_some())).collect();
        assert_eq!(told, [(2, true), (1, false)]);
        assert_eq!(&*all.static_tasks(None)[0].demand.queue, "q");
    }
}
