//! Submission from stored objects: a template, a cluster template or a schedule, with submit options. It only builds
//! the manifest; admission checks it like any other.

use octoflow_control::registry::{Created, Fault as RegistryFault, Registry, WriteOptions};
use octoflow_model::meta::DEFAULT_NAMESPACE;
use serde_json::{Map, Value, json};

use super::{
    body::{Message, pairs},
    kind, namespace,
    workflow::{sign, writer},
};
use crate::{
    answer::{self, Answer, fault::Fault, warning::warn},
    call::Call,
    faces::openapi::shapes::message,
};

/// Schema of the request.
pub(super) fn shape() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": {"type": "string"}, "description": "name=value each"});
    let options = message(json!({
        "name": text, "generateName": text, "entryPoint": text, "parameters": texts, "artifacts": texts,
        "labels": {"type": "string", "description": "a=b,c=d"}, "annotations": {"type": "string", "description": "a=b,c=d"},
        "serviceAccount": text, "podPriorityClassName": text, "priority": {"type": "integer"},
        "dryRun": {"type": "boolean"}, "serverDryRun": {"type": "boolean"}, "ownerReference": {"type": "object"},
    }));
    json!({
        "type": "object", "required": ["resourceKind", "resourceName"],
        "properties": {
            "namespace": text, "resourceName": text, "submitOptions": options,
            "resourceKind": {"type": "string", "enum": ["WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow"]},
        },
    })
}

pub(super) async fn submit(mut call: Call) -> Result<Answer, Fault> {
    let namespace = namespace(&call)?.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    let mut message = Message::of(&mut call).await?;
    let origin = message.text("resourceKind")?.unwrap_or_default();
    let origin = Origin::parse(&origin)
        .ok_or_else(|| Fault::bad_request(format!("resource kind '{origin}' is not supported for submitting")))?;
    let name = message.text("resourceName")?.ok_or_else(|| Fault::bad_request("resourceName is not specified"))?;
    let options = SubmitOptions::read(message.part("submitOptions")?)?;
    let caller = call.caller.name.clone();
    let (claim, submitted_by) = (call.claim()?, call.caller.submitter());
    let made = call
        .work(move |registry| -> Result<Created, Fault> {
            let mut workflow = origin.workflow(registry, &namespace, &name)?;
            options.apply(&mut workflow);
            sign(&mut workflow, &caller);
            let options = WriteOptions { dry_run: options.dry_run, claim, submitted_by, ..writer() };
            Ok(registry.create_with_warnings(kind("Workflow"), &namespace, workflow, &options)?)
        })
        .await?;
    Ok(warn(answer::json(&made.object), &made.warnings))
}

/// Source of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Template,
    ClusterTemplate,
    Cron,
}

impl Origin {
    fn parse(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "workflowtemplate" | "workflowtemplates" | "wftmpl" => Self::Template,
            "clusterworkflowtemplate" | "clusterworkflowtemplates" | "clusterwftmpl" | "cwft" => Self::ClusterTemplate,
            "cronworkflow" | "cronworkflows" | "cronwf" | "cwf" => Self::Cron,
            _ => return None,
        })
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Template => "WorkflowTemplate",
            Self::ClusterTemplate => "ClusterWorkflowTemplate",
            Self::Cron => "CronWorkflow",
        }
    }

    /// Returns the label that records the source.
    fn label(self) -> &'static str {
        match self {
            Self::Template => "workflows.argoproj.io/workflow-template",
            Self::ClusterTemplate => "workflows.argoproj.io/cluster-workflow-template",
            Self::Cron => "workflows.argoproj.io/cron-workflow",
        }
    }

    fn workflow(self, registry: &Registry, namespace: &str, name: &str) -> Result<Value, RegistryFault> {
        let space = if self == Self::ClusterTemplate { "" } else { namespace };
        let origin = registry.get(kind(self.kind()), space, name)?;
        let mut workflow = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"generateName": format!("{name}-"), "labels": {}},
        });
        match self {
            Self::Template => workflow["spec"] = json!({"workflowTemplateRef": {"name": name}}),
            Self::ClusterTemplate => {
                workflow["spec"] = json!({"workflowTemplateRef": {"name": name, "clusterScope": true}});
            }
            Self::Cron => {
                workflow["spec"] = origin["spec"]["workflowSpec"].clone();
                let given = &origin["spec"]["workflowMetadata"];
                for field in ["labels", "annotations"] {
                    if given[field].is_object() {
                        workflow["metadata"][field] = given[field].clone();
                    }
                }
                workflow["metadata"]["ownerReferences"] = json!([{
                    "apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "name": name,
                    "uid": origin["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
                }]);
            }
        }
        workflow["metadata"]["labels"][self.label()] = json!(name);
        Ok(workflow)
    }
}

/// The `submitOptions` of a request.
#[derive(Debug, Default)]
pub(super) struct SubmitOptions {
    name: Option<String>,
    generate_name: Option<String>,
    parameters: Vec<(String, String)>,
    artifacts: Vec<(String, String)>,
    labels: Vec<(String, String)>,
    annotations: Vec<(String, String)>,
    /// Fields of the spec that are set as they are.
    spec: Map<String, Value>,
    owner: Option<Value>,
    dry_run: bool,
}

impl SubmitOptions {
    fn read(mut message: Message) -> Result<Self, Fault> {
        let mut options = Self {
            name: message.text("name")?,
            generate_name: message.text("generateName")?,
            parameters: pairs("parameters", &message.texts("parameters")?)?,
            artifacts: pairs("artifacts", &message.texts("artifacts")?)?,
            labels: marks("labels", message.text("labels")?)?,
            annotations: marks("annotations", message.text("annotations")?)?,
            owner: message.value("ownerReference"),
            dry_run: message.flag("dryRun")?,
            spec: Map::new(),
        };
        options.dry_run |= message.flag("serverDryRun")?;
        let texts = [
            ("entryPoint", "entrypoint"),
            ("serviceAccount", "serviceAccountName"),
            ("podPriorityClassName", "podPriorityClassName"),
        ];
        for (given, field) in texts {
            if let Some(text) = message.text(given)? {
                options.spec.insert(field.to_owned(), json!(text));
            }
        }
        if let Some(priority) = message.number("priority")? {
            options.spec.insert("priority".to_owned(), json!(priority));
        }
        Ok(options)
    }

    /// Applies the options. The manifest was built here or was admitted before, so its parts have the right types.
    fn apply(&self, workflow: &mut Value) {
        let metadata = &mut workflow["metadata"];
        if let Some(prefix) = &self.generate_name {
            metadata["generateName"] = json!(prefix);
        }
        if let Some(name) = &self.name {
            metadata["name"] = json!(name);
        }
        for (field, marks) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            for (key, value) in marks {
                metadata[field][key] = json!(value);
            }
        }
        if let Some(owner) = &self.owner {
            match metadata["ownerReferences"].as_array_mut() {
                Some(owners) => owners.push(owner.clone()),
                None => metadata["ownerReferences"] = json!([owner]),
            }
        }
        let spec = &mut workflow["spec"];
        for (field, value) in &self.spec {
            spec[field] = value.clone();
        }
        override_parameters(spec, &self.parameters);
        for (name, key) in &self.artifacts {
            let arguments = &mut spec["arguments"];
            if !arguments["artifacts"].is_array() {
                arguments["artifacts"] = json!([]);
            }
            let Some(list) = arguments["artifacts"].as_array_mut() else { continue };
            list.retain(|artifact| artifact["name"] != name.as_str());
            list.push(json!({"name": name, "s3": {"key": key}}));
        }
    }
}

/// Overrides parameters: given ones first, the rest after them.
pub(super) fn override_parameters(spec: &mut Value, parameters: &[(String, String)]) {
    if parameters.is_empty() {
        return;
    }
    let mut list: Vec<Value> = Vec::new();
    for (name, value) in parameters {
        list.retain(|one| one["name"] != name.as_str());
        list.push(json!({"name": name, "value": value}));
    }
    let kept = spec["arguments"]["parameters"].as_array().cloned().unwrap_or_default();
    list.extend(kept.into_iter().filter(|one| parameters.iter().all(|(name, _)| one["name"] != name.as_str())));
    spec["arguments"]["parameters"] = Value::Array(list);
}

/// Parses `a=b,c=d`.
fn marks(field: &str, text: Option<String>) -> Result<Vec<(String, String)>, Fault> {
    let text = text.unwrap_or_default();
    let parts: Vec<String> =
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
    pairs(field, &parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_parameters_stand_first_and_others_stay() {
        let mut spec = json!({"arguments": {"parameters": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}});
        let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        override_parameters(&mut spec, &[given("b", "x"), given("new", "y"), given("b", "z")]);
        assert_eq!(
            spec["arguments"]["parameters"],
            json!([{"name": "new", "value": "y"}, {"name": "b", "value": "z"}, {"name": "a", "value": "1"}])
        );
    }

    #[test]
    fn kinds_are_known_by_their_many_names() {
        assert_eq!(Origin::parse("WorkflowTemplate"), Some(Origin::Template));
        assert_eq!(Origin::parse("cwft"), Some(Origin::ClusterTemplate));
        assert_eq!(Origin::parse("cronworkflow"), Some(Origin::Cron));
        assert_eq!(Origin::parse("Pod"), None);
    }

    #[test]
    fn every_wish_finds_its_place() {
        let options = SubmitOptions {
            name: Some("n".into()),
            labels: vec![("a".into(), "b".into())],
            annotations: vec![("c".into(), "d".into())],
            artifacts: vec![("in".into(), "some/key".into())],
            spec: Map::from_iter([("entrypoint".to_owned(), json!("e")), ("priority".to_owned(), json!(3))]),
            owner: Some(json!({"uid": "u"})),
            ..SubmitOptions::default()
        };
        let mut workflow = json!({"metadata": {"labels": {}}, "spec": {}});
        options.apply(&mut workflow);
        assert_eq!(
            workflow["metadata"],
            json!({"name": "n", "labels": {"a": "b"}, "annotations": {"c": "d"}, "ownerReferences": [{"uid": "u"}]})
        );
        assert_eq!(
            workflow["spec"],
            json!({"entrypoint": "e", "priority": 3, "arguments": {"artifacts": [{"name": "in", "s3": {"key": "some/key"}}]}})
        );
    }
}
