//! Resolves the variables that every part of a run has: `workflow.*`.

use std::collections::HashSet;

use super::Found;
use crate::dialects::argo::{
    admit::{AdmitAs, Subject, name},
    scope::is_date_part,
};

/// Names below `workflow.`.
pub(in crate::dialects::argo::admit) struct Globals<'a> {
    /// Names of the arguments; `None` if the arguments are broken and every name is accepted.
    parameters: Option<HashSet<&'a str>>,
    labels: HashSet<&'a str>,
    annotations: HashSet<&'a str>,
    outputs: Exported<'a>,
    artifacts: Exported<'a>,
    pub(super) retries: bool,
    /// Set for a WorkflowTemplate, whose users bring more of everything.
    users: Option<Users>,
}

/// Intended use of a WorkflowTemplate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Users {
    /// Workflows call its templates one by one, with the variables of the caller.
    Call,
    /// Workflows may also run it as a whole, since it has an entrypoint.
    Run,
}

/// Outputs that some template exports under a global name.
#[derive(Default)]
struct Exported<'a> {
    names: HashSet<&'a str>,
    /// True if a name contains variables, so that any name may exist.
    any: bool,
}

pub(super) const WORKFLOW: [&str; 14] = [
    "name",
    "namespace",
    "uid",
    "mainEntrypoint",
    "serviceAccountName",
    "parameters",
    "labels",
    "annotations",
    "creationTimestamp",
    "priority",
    "duration",
    "scheduledTime",
    "status",
    "failures",
];

impl<'a> Globals<'a> {
    pub(in crate::dialects::argo::admit) fn of(subject: &Subject<'a>) -> Self {
        let spec = &subject.workflow.spec;
        let open = subject.broken_at(&["spec", "arguments"]) || subject.open;
        let parameters = spec.arguments.parameters.iter().map(|parameter| parameter.name.as_str());
        let metadata = &subject.workflow.metadata;
        let added = spec.workflow_metadata.iter();
        let labels = metadata.labels.keys().map(String::as_str).chain(
            added.clone().flat_map(|added| added.labels.keys().chain(added.labels_from.keys()).map(String::as_str)),
        );
        let annotations = metadata.annotations.keys().map(String::as_str);
        let annotations = annotations.chain(added.flat_map(|added| added.annotations.keys().map(String::as_str)));
        let users = (subject.admit_as == AdmitAs::Template)
            .then(|| if spec.entrypoint.is_some() { Users::Run } else { Users::Call });
        let templates = || subject.templates.entries.iter().map(|entry| &entry.template);
        Self {
            parameters: (!open).then(|| parameters.collect()),
            labels: labels.collect(),
            annotations: annotations.collect(),
            outputs: Exported::of(
                subject.partial,
                templates().flat_map(|t| &t.outputs.parameters).filter_map(|output| output.global_name.as_deref()),
            ),
            artifacts: Exported::of(
                subject.partial,
                templates().flat_map(|t| &t.outputs.artifacts).filter_map(|output| output.global_name.as_deref()),
            ),
            retries: spec.retry_strategy.is_some(),
            users,
        }
    }

    pub(super) fn parameter(&self, name: &str) -> bool {
        name == "json" || self.parameters.as_ref().is_none_or(|known| known.contains(name))
    }

    pub(super) fn find(&self, rest: &str) -> Found {
        let (field, name) = rest.split_once('.').unwrap_or((rest, ""));
        let known = match (field, name) {
            ("parameters", "") | ("labels" | "annotations", "" | "json") => true,
            ("parameters", name) => self.parameter(name),
            ("labels", name) => self.labels.contains(name) || name.starts_with("workflows.argoproj.io/"),
            ("annotations", name) => self.annotations.contains(name) || name.starts_with("workflows.argoproj.io/"),
            ("creationTimestamp", part) => is_date_part(part),
            ("outputs", name) => match name.split_once('.') {
                Some(("parameters", name)) => self.outputs.has(name),
                Some(("artifacts", name)) => self.artifacts.has(name.strip_suffix(".path").unwrap_or(name)),
                _ => false,
            },
            (field, "") => WORKFLOW.contains(&field),
            _ => false,
        };
        match self.users {
            _ if known => Found::Known,
            Some(_) if !matches!(field, "parameters" | "labels" | "annotations" | "outputs") => Found::Unknown,
            Some(Users::Call) => Found::Known,
            Some(Users::Run) => Found::Unfilled("this template does not declare it; the workflow that uses it must"),
            None => Found::Unknown,
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> + '_ {
        let parameters = self.parameters.iter().flatten().map(|name| format!("workflow.parameters.{name}"));
        let outputs = self.outputs.names.iter().map(|name| format!("workflow.outputs.parameters.{name}"));
        let artifacts = self.artifacts.names.iter().map(|name| format!("workflow.outputs.artifacts.{name}"));
        WORKFLOW.iter().map(|name| format!("workflow.{name}")).chain(parameters).chain(outputs).chain(artifacts)
    }
}

impl<'a> Exported<'a> {
    fn of(any: bool, names: impl Iterator<Item = &'a str>) -> Self {
        let names: HashSet<&str> = names.collect();
        let any = any || names.iter().any(|name| name::has_variables(name));
        Self { names, any }
    }

    fn has(&self, name: &str) -> bool {
        self.any || self.names.contains(name)
    }
}
