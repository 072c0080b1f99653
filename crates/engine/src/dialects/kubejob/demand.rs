//! What the scheduler is told of a job's pods: from the pod template, else from the job. All pods ask for the same, so the
//! demand is built once.

use std::{sync::Arc, time::Duration};

use octoflow_manifest::Path;

use super::{program::Program, run::Run};
use crate::{
    dialects::{argo::duration, dialect::StaticTask},
    pod::demand::{Constraints, Marks},
    schedule::spec::{DEFAULT, Demand},
};

impl Run {
    pub(super) fn demand_of_pods(&self) -> Arc<Demand> {
        self.demand.get_or_init(|| Arc::new(self.new_demand())).clone()
    }

    fn new_demand(&self) -> Demand {
        let tenant = self.known.submitted_by.as_deref();
        let tenant = tenant.map_or_else(|| self.state.head.namespace.clone(), Into::into);
        Demand { tenant, ..self.program.demand(self.known.queue.as_deref()) }
    }
}

impl Program {
    /// Returns what each pod asks for, without its tenant. `inherited` is the queue of the namespace.
    pub(super) fn demand(&self, inherited: Option<&str>) -> Demand {
        let (metadata, template) = (&self.job.metadata, &self.job.spec.template);
        let of_job = Marks::of(&metadata.labels, &metadata.annotations);
        let marks = Marks::of(&template.metadata.labels, &template.metadata.annotations).or(&of_job);
        let pod = &template.spec;
        let field = |name: &str| pod.rest.get(name);
        let class = field("priorityClassName").and_then(serde_json::Value::as_str).map(str::to_owned);
        let constraints = Constraints::of(field("nodeSelector"), field("affinity"), field("tolerations"));
        let queue = marks.queue.or(inherited.map(str::to_owned)).unwrap_or_else(|| DEFAULT.to_owned());
        let deadline = pod.active_deadline_seconds.or(self.settings.active_deadline_seconds);
        Demand {
            queue: queue.into(),
            priority: pod.priority.unwrap_or(0),
            class: class.filter(|class| !class.is_empty()).map(Into::into),
            constraints: Arc::new(constraints.into_placement()),
            preemptable: marks.preemptable,
            bound: deadline.map(Duration::from_secs),
            longest_wait: marks.longest_wait.and_then(|span| duration::parse(&span)),
            ..Demand::new("", self.resources.clone())
        }
    }

    /// Returns the pods as the manifest alone describes them.
    pub(super) fn static_tasks(&self, inherited: Option<&str>) -> Vec<StaticTask> {
        let path = Path::root().join("spec").join("template").join("spec");
        let demand = self.demand(inherited);
        vec![StaticTask { path, gang: None, demand, queue_known: true, count: 1, certain: true }]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_queue_is_named_by_the_pod_else_by_the_job_else_by_the_namespace() {
        let queue = |job: &str, pod: &str| {
            let labels =
                |name: &str| if name.is_empty() { json!({}) } else { json!({"kueue.x-k8s.io/queue-name": name}) };
            let manifest = json!({
                "metadata": {"labels": labels(job)},
                "spec": {"template": {"metadata": {"labels": labels(pod)}, "spec": {"containers": [{"name": "m"}]}}},
            });
            Program::compile(&manifest).unwrap().demand(Some("inherited")).queue.to_string()
        };
        assert_eq!(queue("", ""), "inherited");
        assert_eq!(queue("a", ""), "a");
        assert_eq!(queue("a", "b"), "b");
    }
}
