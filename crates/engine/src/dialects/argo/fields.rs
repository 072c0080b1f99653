//! Lists every field of the Argo dialect and of the objects loaded beside it: whether it works, is ignored, or is
//! refused.
//! The one table behind admission, the schemas and the documented support list; it does not say how fields combine.

mod binding;
mod call;
mod container;
mod cron;
mod data;
mod loaded;
mod location;
mod lock;
mod memo;
mod metric;
mod request;
mod spec;
mod template;

pub use binding::EVENT_BINDING;
pub use cron::CRON_WORKFLOW;
pub use loaded::{CLAIM, CLAIM_SPEC, CONFIG_MAP, SECRET};
pub use template::TEMPLATE;
pub(crate) use template::TYPE_NAMES;

use crate::admit::shape::{ANY, Field, Shape, TEXT, TEXT_MAP};
use crate::pod::fields::{NO_PODS, volume};

/// The `apiVersion` of the dialect's objects.
pub const API_VERSION: &str = "argoproj.io/v1alpha1";

const SERVER: &str = "the server sets it";

pub static WORKFLOW: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &spec::SPEC, "What to run"),
        Field::ignored("status", "a new run gets a status of its own", "What became of an earlier run"),
    ],
]);

/// Shape of a WorkflowTemplate or ClusterWorkflowTemplate: a spec that workflows refer to.
pub static WORKFLOW_TEMPLATE: Shape = Shape::Object(&[
    OBJECT,
    &[
        Field::yes("spec", &spec::SPEC, "What workflows that refer to it run"),
        Field::ignored("status", "a template has no status here", "What became of it elsewhere"),
    ],
]);

pub(crate) const OBJECT: &[Field] = &[
    Field::yes("apiVersion", &TEXT, "The dialect and its version"),
    Field::yes("kind", &TEXT, "What kind of object this is"),
    Field::yes("metadata", &METADATA, "Its name and labels"),
];

static METADATA: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The name, unique in its namespace"),
    Field::yes("generateName", &TEXT, "The beginning of a name that is made unique when the object is created"),
    Field::yes("namespace", &TEXT, "The namespace; `default` when left out"),
    Field::yes("uid", &TEXT, "An id that is never used again"),
    Field::yes("labels", &TEXT_MAP, "Short texts to select objects by"),
    Field::yes("annotations", &TEXT_MAP, "Texts for tools and people"),
    Field::yes("finalizers", &ANY, "Who must agree before a Kubernetes object is deleted"),
    Field::yes("ownerReferences", &ANY, "The Kubernetes objects it belongs to"),
    Field::ignored("creationTimestamp", SERVER, "When it was created"),
    Field::ignored("deletionTimestamp", SERVER, "When its deletion was asked for"),
    Field::ignored("deletionGracePeriodSeconds", SERVER, "How long its deletion may take"),
    Field::ignored("generation", SERVER, "How often its specification changed"),
    Field::ignored("managedFields", SERVER, "Who wrote which field"),
    Field::ignored("resourceVersion", SERVER, "The revision it was last changed in"),
    Field::ignored("selfLink", SERVER, "Its address"),
]]);

/// Labels and annotations alone, as templates and pods have them.
static LABELLED: Shape = Shape::Object(&[&[
    Field::yes("labels", &TEXT_MAP, "Short texts to select by"),
    Field::yes("annotations", &TEXT_MAP, "Texts for tools and people"),
]]);

#[cfg(test)]
mod tests;
