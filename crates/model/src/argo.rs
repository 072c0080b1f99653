//! Wire types of the Argo dialect: what users write (`workflow`, `template`, `call`, `items`) and what the journal
//! keeps (`fact`). The types hold only the fields the engine uses. They never decide whether a field is
//! allowed: the field table (`engine::argo::fields`) does.

pub mod body;
pub mod call;
pub mod fact;
pub mod items;
pub mod location;
pub mod nodes;
pub mod synchronization;
pub mod template;
pub mod workflow;

pub use body::{ContainerSet, DataTemplate, HttpTemplate, Memoize, Metrics, ResourceTemplate, UserContainer};
pub use call::{Arguments, Artifact, Call, ContinueOn, Hook, Sequence, TemplateRef};
pub use fact::{
    ArtifactValue, InputArtifactValue, InputValues, LifecycleFact, NodeAdded, NodeFinished, Role, WorkflowFact,
};
pub use items::{Items, NumberRange};
pub use location::{ArtifactGc, ArtifactLocation, RepositoryRef};
pub use nodes::NodeList;
pub use synchronization::Synchronization;
pub use template::{
    Dag, Inputs, OutputArtifact, OutputParameter, Outputs, RetryStrategy, Script, Suspend, Template, ValueFrom,
};
pub use workflow::{Spec, TtlStrategy, Workflow, WorkflowMetadata, WorkflowTemplateRef};

pub use crate::run::{
    node::{NodeKind, Phase},
    outputs::{OutputArtifactValue, OutputValues},
};
