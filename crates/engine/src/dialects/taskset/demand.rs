//! What the scheduler is told of a TaskSet's replicas: from their PodGroup, the pod template, else from the TaskSet.
//! Demands are built once for each role and shared by its replicas.

use std::{cell::OnceCell, sync::Arc, time::Duration};

use octoflow_model::NodeIx;

use super::run::Run;
use crate::{
    dialects::argo::duration,
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
        let (set, plan, template) = (&self.program.set, &self.program.roles[role], &self.program.spec(role).template);
        let group = plan.gang.as_ref().map(|gang| &gang.details);
        let of_pod = Marks::of(&template.metadata.labels, &template.metadata.annotations);
        let mut of_set = Marks::of(&set.metadata.labels, &set.metadata.annotations);
        of_set.queue = set.spec.queue.clone().filter(|queue| !queue.is_empty()).or(of_set.queue);
        let marks = of_pod.or(&of_set);
        // All members of a gang wait in one queue.
        let queue = group.and_then(|group| group.queue.clone()).or(marks.queue).or_else(|| self.known.queue.clone());
        let pod = &template.spec;
        let field = |name: &str| pod.rest.get(name);
        let class = field("priorityClassName").and_then(serde_json::Value::as_str).map(str::to_owned);
        let class = class.or_else(|| group.and_then(|group| group.class.clone())).filter(|class| !class.is_empty());
        let constraints = Constraints::of(field("nodeSelector"), field("affinity"), field("tolerations"));
        let tenant = self.known.submitted_by.as_deref();
        Demand {
            queue: queue.map_or_else(|| DEFAULT.into(), Into::into),
            priority: plan.priority,
            class: class.map(Into::into),
            gang,
            constraints: Arc::new(constraints.into_placement()),
            preemptable: marks.preemptable,
            bound: pod.active_deadline_seconds.map(Duration::from_secs),
            longest_wait: marks.longest_wait.and_then(|span| duration::parse(&span)),
            ..Demand::new(tenant.map_or_else(|| self.state.head.namespace.clone(), Into::into), plan.resources.clone())
        }
    }
}
