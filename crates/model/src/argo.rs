//! The Argo dialect on the wire: what people write (`workflow`, `template`, `call`, `value`) and what they read back (`status`).
//! The types hold what the engine uses; whether a field may be there at all is the field table's word, not theirs.

pub mod body;
pub mod call;
pub mod garbage;
pub mod location;
pub mod phase;
pub mod synchronization;
pub mod template;
pub mod value;
pub mod workflow;

pub use body::{ContainerSet, DataTemplate, HttpTemplate, Memoize, Metrics, ResourceTemplate, UserContainer};
pub use call::{Arguments, Artifact, Call, ContinueOn, Hook, Sequence, TemplateRef};
pub use location::{ArtifactGc, ArtifactLocation, GcStrategy, RepositoryRef};
pub use phase::{NodeKind, Phase, RunPhase, Shutdown};
pub use synchronization::Synchronization;
pub use template::{
    Container, Dag, Inputs, OutputArtifact, OutputParameter, Outputs, RetryStrategy, Script, Suspend, Template,
    ValueFrom,
};
pub use value::{IntOrText, Text};
pub use workflow::{Spec, TtlStrategy, Volume, Workflow, WorkflowMetadata, WorkflowTemplateRef};
