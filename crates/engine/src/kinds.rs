//! Every kind of object that can be given to us, of all dialects, with the table of its fields.

use octoflow_model::taskset;
use serde_json::Value;

use crate::{
    argo::fields::{API_VERSION, CLAIM, CONFIG_MAP, CRON_WORKFLOW, EVENT_BINDING, SECRET, WORKFLOW, WORKFLOW_TEMPLATE},
    shape::{self, Shape},
    taskset::fields::{POD_GROUP, TASK_SET},
};

/// A kind of object that can be loaded.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub api_version: &'static str,
    pub shape: &'static Shape,
}

impl Kind {
    /// The closed JSON Schema of the kind.
    pub fn schema(&self) -> Value {
        shape::schema(self.name, self.shape, &[("apiVersion", self.api_version), ("kind", self.name)])
    }
}

/// What a PodGroup says in `apiVersion`.
pub const POD_GROUP_VERSION: &str = "scheduling.incubator.k8s.io/v1alpha1";

/// Every kind that can be loaded.
pub static KINDS: [Kind; 10] = [
    Kind { name: "Workflow", api_version: API_VERSION, shape: &WORKFLOW },
    Kind { name: "WorkflowTemplate", api_version: API_VERSION, shape: &WORKFLOW_TEMPLATE },
    Kind { name: "ClusterWorkflowTemplate", api_version: API_VERSION, shape: &WORKFLOW_TEMPLATE },
    Kind { name: "CronWorkflow", api_version: API_VERSION, shape: &CRON_WORKFLOW },
    Kind { name: "WorkflowEventBinding", api_version: API_VERSION, shape: &EVENT_BINDING },
    Kind { name: taskset::KIND, api_version: taskset::API_VERSION, shape: &TASK_SET },
    Kind { name: "PodGroup", api_version: POD_GROUP_VERSION, shape: &POD_GROUP },
    Kind { name: "ConfigMap", api_version: "v1", shape: &CONFIG_MAP },
    Kind { name: "Secret", api_version: "v1", shape: &SECRET },
    Kind { name: "PersistentVolumeClaim", api_version: "v1", shape: &CLAIM },
];

/// The kinds that run by themselves.
pub const RUNS: [&str; 2] = ["Workflow", taskset::KIND];

/// The table of a kind that can be loaded.
pub fn shape_of(kind: &str) -> Option<&'static Shape> {
    KINDS.iter().find(|known| known.name == kind).map(|known| known.shape)
}
