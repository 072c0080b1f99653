//! Turns events into Workflows for a WorkflowEventBinding: whether it matches, and the Workflow to submit.
//! Submits nothing itself; the Workflow is admitted like any other.

use serde_json::{Map, Value as Json, json};

use super::{fields::API_VERSION, refer::Reach};
use crate::expr::{
    Meter, Value,
    lang::{Env, EvalContext},
    random::Seed,
};
use octoflow_model::Time;

/// Label of runs with the name of their binding.
pub const LABEL: &str = "workflows.argoproj.io/workflow-event-binding";

/// An event received from outside.
#[derive(Clone, Debug)]
pub struct IncomingEvent {
    pub namespace: String,
    pub discriminator: String,
    pub payload: Json,
    /// Headers by lower-case name with all their values. Expressions see only those that begin with `x-`.
    pub metadata: Vec<(String, Vec<String>)>,
    pub at: Time,
}

/// Builds the Workflow to submit; `None` if the binding does not match the event. The Workflow may have a
/// `generateName` in place of a name. Fails with the reason if the binding is malformed.
pub fn submission(binding: &Json, event: &IncomingEvent) -> Result<Option<Json>, String> {
    let env = BindingEnv::new(binding, event);
    let spec = &binding["spec"];
    let selector = spec["event"]["selector"].as_str().unwrap_or_default();
    let taken = env.evaluate(selector).map_err(|why| format!("the selector cannot be evaluated: {why}"))?;
    match taken.as_bool() {
        Some(true) => {}
        Some(false) => return Ok(None),
        None => return Err(format!("the selector must give true or false, not {}", taken.to_json())),
    }
    let Some(submit) = spec.get("submit").filter(|submit| submit.is_object()) else { return Ok(None) };
    let reference = &submit["workflowTemplateRef"];
    let Some(template) = reference["name"].as_str().filter(|name| !name.is_empty()) else {
        return Err("spec.submit.workflowTemplateRef.name is required".to_owned());
    };
    let mut metadata = env.metadata(&submit["metadata"])?;
    if !metadata.contains_key("name") && !metadata.contains_key("generateName") {
        metadata.insert("generateName".to_owned(), json!(format!("{template}-")));
    }
    let name = binding["metadata"]["name"].as_str().unwrap_or_default();
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    labels[LABEL] = json!(name);
    labels[Reach::of(reference["clusterScope"] == true).label()] = json!(template);
    metadata.insert("namespace".to_owned(), json!(event.namespace));
    let mut spec = json!({"workflowTemplateRef": reference});
    let mut arguments = Map::new();
    let parameters = env.parameters(&submit["arguments"]["parameters"])?;
    if !parameters.is_empty() {
        arguments.insert("parameters".to_owned(), Json::Array(parameters));
    }
    if let Some(artifacts) = submit["arguments"].get("artifacts") {
        arguments.insert("artifacts".to_owned(), artifacts.clone());
    }
    if !arguments.is_empty() {
        spec["arguments"] = Json::Object(arguments);
    }
    Ok(Some(json!({"apiVersion": API_VERSION, "kind": "Workflow", "metadata": metadata, "spec": spec})))
}

/// Variables that the expressions of a binding see.
struct BindingEnv {
    roots: Map<String, Json>,
    occasion: EvalContext,
    meter: Meter,
}

impl BindingEnv {
    fn new(binding: &Json, event: &IncomingEvent) -> Self {
        let seen = event.metadata.iter().filter(|(name, _)| name.starts_with("x-"));
        let metadata: Map<String, Json> = seen.map(|(name, values)| (name.clone(), json!(values))).collect();
        let roots = Map::from_iter([
            ("namespace".to_owned(), json!(event.namespace)),
            ("discriminator".to_owned(), json!(event.discriminator)),
            ("payload".to_owned(), event.payload.clone()),
            ("metadata".to_owned(), Json::Object(metadata)),
        ]);
        let seed = Seed::of(binding["metadata"]["name"].as_str().unwrap_or_default())
            .with(&event.at.0.to_string())
            .with(&event.payload.to_string());
        Self { roots, occasion: EvalContext { moment: event.at.timestamp(), seed }, meter: Meter::default() }
    }

    fn evaluate(&self, source: &str) -> Result<Value, String> {
        self.meter.evaluate(source, self).map_err(|error| error.to_string())
    }

    fn metadata(&self, given: &Json) -> Result<Map<String, Json>, String> {
        let text = |source: &Json, what: &str| -> Result<Json, String> {
            let wrong = |why: String| format!("the {what} cannot be evaluated: {why}");
            let value = self.evaluate(source.as_str().unwrap_or_default()).map_err(wrong)?;
            match value.as_str() {
                Some(text) => Ok(json!(text)),
                None => Err(format!("the {what} must be a text, not {}", value.to_json())),
            }
        };
        let mut made = Map::new();
        for field in ["name", "generateName"] {
            if given[field].as_str().is_some_and(|source| !source.is_empty()) {
                made.insert(field.to_owned(), text(&given[field], field)?);
            }
        }
        for (field, noun) in [("labels", "label"), ("annotations", "annotation")] {
            let entries = given[field].as_object().into_iter().flatten();
            let entries = entries.map(|(key, source)| Ok((key.clone(), text(source, &format!("{noun} '{key}'"))?)));
            let entries: Map<String, Json> = entries.collect::<Result<_, String>>()?;
            if !entries.is_empty() {
                made.insert(field.to_owned(), Json::Object(entries));
            }
        }
        Ok(made)
    }

    fn parameters(&self, given: &Json) -> Result<Vec<Json>, String> {
        let made = given.as_array().into_iter().flatten().map(|parameter| {
            let name = parameter["name"].as_str().unwrap_or_default();
            let source = parameter["valueFrom"]["event"].as_str();
            let source = source.ok_or_else(|| format!("the parameter '{name}' has no valueFrom.event"))?;
            let value = self.evaluate(source);
            let value = value.map_err(|why| format!("the parameter '{name}' cannot be evaluated: {why}"))?;
            Ok(json!({"name": name, "value": value.to_text()}))
        });
        made.collect()
    }
}

impl Env for BindingEnv {
    fn root(&self, name: &str) -> Option<Value> {
        self.roots.get(name).cloned().map(Into::into)
    }

    fn eval_context(&self) -> Option<EvalContext> {
        Some(self.occasion)
    }

    fn names(&self) -> Vec<String> {
        self.roots.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> IncomingEvent {
        IncomingEvent {
            namespace: "ns".to_owned(),
            discriminator: "d".to_owned(),
            payload: json!({"message": "hi", "count": 3, "nested": {"a": [1, 2]}}),
            metadata: vec![
                ("x-kind".to_owned(), vec!["push".to_owned()]),
                ("authorization".to_owned(), vec!["secret".to_owned()]),
            ],
            at: Time::parse("2026-05-01T10:00:00Z").unwrap(),
        }
    }

    fn binding(selector: &str, submit: Json) -> Json {
        json!({"metadata": {"name": "b"}, "spec": {"event": {"selector": selector}, "submit": submit}})
    }

    #[test]
    fn an_event_becomes_a_workflow_that_says_where_it_comes_from() {
        let selector =
            "payload.message != '' && metadata['x-kind'] == ['push'] && discriminator == 'd' && namespace == 'ns'";
        let submit = json!({"workflowTemplateRef": {"name": "t"},
        "metadata": {"labels": {"who": "payload.message"}, "annotations": {"n": "string(payload.count)"}},
        "arguments": {"parameters": [
            {"name": "text", "valueFrom": {"event": "payload.message"}},
            {"name": "number", "valueFrom": {"event": "payload.count + 1"}},
            {"name": "tree", "valueFrom": {"event": "payload.nested"}},
        ]}});
        let made = submission(&binding(selector, submit), &event()).unwrap().unwrap();
        assert_eq!(
            made["metadata"],
            json!({"generateName": "t-", "namespace": "ns", "annotations": {"n": "3"}, "labels": {
                "who": "hi", "workflows.argoproj.io/workflow-event-binding": "b",
                "workflows.argoproj.io/workflow-template": "t"}})
        );
        assert_eq!(
            made["spec"]["arguments"]["parameters"],
            json!([{"name": "text", "value": "hi"}, {"name": "number", "value": "4"}, {"name": "tree", "value": "{\"a\":[1,2]}"}])
        );
        let named = json!({"workflowTemplateRef": {"name": "t", "clusterScope": true}, "metadata": {"name": "'run-' + payload.message"}});
        let made = submission(&binding("true", named), &event()).unwrap().unwrap();
        assert_eq!(made["metadata"]["name"], "run-hi");
        assert_eq!(made["metadata"]["labels"]["workflows.argoproj.io/cluster-workflow-template"], "t");
    }

    #[test]
    fn an_event_of_others_is_left_alone_and_only_headers_for_others_are_seen() {
        let submit = json!({"workflowTemplateRef": {"name": "t"}});
        assert_eq!(submission(&binding("discriminator == 'other'", submit.clone()), &event()), Ok(None));
        let hidden = submission(&binding("metadata.authorization != nil", submit), &event());
        assert_eq!(hidden, Ok(None));
        assert_eq!(submission(&json!({"spec": {"event": {"selector": "true"}}}), &event()), Ok(None));
    }

    #[test]
    fn j21_a_malformed_binding_says_what_is_wrong() {
        let submit = json!({"workflowTemplateRef": {"name": "t"}});
        for (binding, part) in [
            (binding("garbage!!!!!!", submit.clone()), "the selector cannot be evaluated"),
            (binding("'garbage'", submit), "the selector must give true or false, not \"garbage\""),
            (binding("true", json!({})), "workflowTemplateRef.name is required"),
            (
                binding("true", json!({"workflowTemplateRef": {"name": "t"}, "metadata": {"name": "1"}})),
                "the name must be a text, not 1",
            ),
            (
                binding(
                    "true",
                    json!({"workflowTemplateRef": {"name": "t"}, "arguments": {"parameters": [{"name": "p"}]}}),
                ),
                "the parameter 'p' has no valueFrom.event",
            ),
            (
                binding(
                    "true",
                    json!({"workflowTemplateRef": {"name": "t"},
                    "arguments": {"parameters": [{"name": "p", "valueFrom": {"event": "rubbish!!!"}}]}}),
                ),
                "the parameter 'p' cannot be evaluated",
            ),
        ] {
            let why = submission(&binding, &event()).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
