//! Errors of the registry. Each cause has its own variant, so that every API face can encode it in its own way.

use octoflow_engine::{Problem, Problems, Severity, admit::code};

use super::{Kind, feature_kind};
use crate::{Error, supervisor::error_chain};

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("{} \"{name}\" not found", kind.resource())]
    NotFound { kind: &'static Kind, name: String },

    #[error("{} \"{name}\" already exists", kind.resource())]
    Exists { kind: &'static Kind, name: String },

    #[error("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.resource())]
    Conflict { kind: &'static Kind, name: String, why: String },

    #[error("{} \"{name}\" is invalid: {}", kind.name, join_causes(causes))]
    Invalid { kind: &'static Kind, name: String, causes: Vec<Cause> },

    /// Other managers own some of the applied fields.
    #[error("Apply failed with {} conflict{}: {}", causes.len(), if causes.len() == 1 { "" } else { "s" }, join_causes(causes))]
    Owned { kind: &'static Kind, name: String, causes: Vec<Cause> },

    #[error("{} \"{name}\" is forbidden: {why}", kind.resource())]
    Forbidden { kind: &'static Kind, name: String, why: String },

    #[error("{0}")]
    BadRequest(String),

    #[error("{} can only be looked at", kind.resource())]
    ReadOnly { kind: &'static Kind },

    /// The run is too large for one answer.
    #[error(
        "{} \"{name}\" has {nodes} nodes, some {} MB as text, and at most {} nodes or {} MB are shown at once; ask for less: `fields=-status.nodes` leaves out the nodes, `octoflow logs` and the pods of the workflow (label workflows.argoproj.io/workflow={name}, with a limit) tell of single ones",
        kind.resource(),
        bytes / 1_000_000,
        super::size::MAX_NODES,
        super::size::MAX_ANSWER_BYTES / 1_000_000
    )]
    TooLarge { kind: &'static Kind, name: String, nodes: u64, bytes: u64 },

    /// Too many large runs are being shown already.
    #[error(
        "{} \"{name}\" is large, and as many large runs as memory is kept for are being shown; try again, or ask for less: `fields=-status.nodes`",
        kind.resource()
    )]
    Busy { kind: &'static Kind, name: String },

    /// The feed no longer covers this revision.
    #[error("too old resource version: list again and watch from there")]
    Expired,

    #[error("{}", error_chain(.0))]
    Controller(#[source] Error),
}

/// One problem of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Reason of the Kubernetes API, such as `FieldValueInvalid`.
    pub reason: &'static str,
    pub message: String,
    /// Path, such as `spec.templates[0].name`; empty for the whole object.
    pub field: String,
}

impl Cause {
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: "FieldValueInvalid", message: message.into(), field: field.into() }
    }

    pub fn required(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: "FieldValueRequired", message: message.into(), field: field.into() }
    }

    pub fn of(problem: &Problem) -> Self {
        let help = problem.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        let field = problem.path.as_ref().map(ToString::to_string).unwrap_or_default();
        let reason = match problem.code {
            code::REQUIRED => "FieldValueRequired",
            code::PLUGIN_TYPE => "FieldValueNotSupported",
            _ => "FieldValueInvalid",
        };
        Self { reason, message: format!("{}{help} [{}]", problem.message, problem.code), field }
    }
}

impl Fault {
    /// Conflict: a concurrent change came first.
    pub(super) fn stale(kind: &'static Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::Conflict { kind, name: name.to_owned(), why: why.to_owned() }
    }

    pub(super) fn problems(kind: &'static Kind, name: &str, problems: &Problems) -> Self {
        let causes = problems.iter().filter(|problem| problem.severity == Severity::Error).map(Cause::of).collect();
        Self::Invalid { kind, name: name.to_owned(), causes }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        if let Error::PluginKey { feature, why } = error {
            let causes = vec![Cause::invalid("spec.author", why)];
            return Self::Invalid { kind: feature_kind(), name: feature, causes };
        }
        Self::Controller(error)
    }
}

impl From<octoflow_store::Error> for Fault {
    fn from(error: octoflow_store::Error) -> Self {
        Self::Controller(error.into())
    }
}

fn join_causes(causes: &[Cause]) -> String {
    let one = |cause: &Cause| match cause.field.as_str() {
        "" => cause.message.clone(),
        field => format!("{field}: {}", cause.message),
    };
    match causes {
        [cause] => one(cause),
        causes => format!("[{}]", causes.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}
