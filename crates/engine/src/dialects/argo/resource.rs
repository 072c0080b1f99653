//! Handles resource templates: builds the request for an object, and takes outputs from the answer.
//! Does not know who stores objects, or how.

use octoflow_manifest::{Limits, read};
use octoflow_model::{
    NodeIx,
    argo::{
        Artifact, ArtifactValue, OutputValues, Phase, Template,
        body::ResourceTemplate,
        template::{Parameter, ValueFrom},
    },
    request::{ManifestText, ObjectAction, ObjectRequest, Owner, PatchKind},
};
use serde_json::Value;

use super::{answer::NodeEnd, view::View};
use crate::expr::{Meter, jq, jsonpath, lang};

pub(crate) const ACTIONS: [&str; 6] = ["get", "create", "apply", "delete", "replace", "patch"];
pub(crate) const STRATEGIES: [&str; 3] = ["strategic", "merge", "json"];

impl View<'_> {
    pub(super) fn object_request(
        &self,
        at: NodeIx,
        template: &Template,
        asked: &ResourceTemplate,
    ) -> Result<ObjectRequest, String> {
        let state = &self.run.state;
        let owner = || Owner { name: state.head.name.to_string(), uid: state.head.uid.to_string() };
        let condition = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        Ok(ObjectRequest {
            action: action(asked)?,
            manifest: self.object_manifest(at, template, asked)?,
            flags: asked.flags.clone(),
            owner: asked.set_owner_reference.then(owner),
            namespace: state.head.namespace.to_string(),
            success: condition(&asked.success_condition),
            failure: condition(&asked.failure_condition),
            child: state.children.get(&at).copied(),
            retries: self.run.replaced_runs().len() as u32,
        })
    }

    fn object_manifest(
        &self,
        at: NodeIx,
        template: &Template,
        asked: &ResourceTemplate,
    ) -> Result<ManifestText, String> {
        let from = asked.manifest_from.as_ref().and_then(|from| from.artifact.as_ref());
        let Some(artifact) = from else {
            return Ok(ManifestText::Inline(asked.manifest.as_ref().map(|text| text.0.clone()).unwrap_or_default()));
        };
        if let Some(raw) = &artifact.raw {
            return Ok(ManifestText::Inline(raw.data.clone()));
        }
        let name = artifact.from.as_deref().map_or(artifact.name.as_str(), |from| {
            from.trim().trim_start_matches("{{").trim_end_matches("}}").trim().trim_start_matches("inputs.artifacts.")
        });
        let inputs = self.run.state.node(at).inputs.as_deref();
        let value = inputs.and_then(|inputs| inputs.artifacts.iter().find(|value| value.name == name));
        match value.map(|value| &value.source) {
            Some(ArtifactValue::Raw(data)) => Ok(ManifestText::Inline(data.clone())),
            Some(ArtifactValue::Stored { artifact, sub_path }) => {
                Ok(ManifestText::Stored { artifact: artifact.clone(), sub_path: sub_path.clone() })
            }
            Some(ArtifactValue::Located { at: place, sub_path, .. }) => {
                let declared = template.inputs.artifacts.iter().find(|declared| declared.name == name);
                let none = Artifact::default();
                let location = self
                    .input_location(template, declared.unwrap_or(&none), place)
                    .map_err(|why| format!("inputs.artifacts.{name}: {why}"))?;
                Ok(ManifestText::Located { location, sub_path: sub_path.clone() })
            }
            Some(ArtifactValue::Absent) | None => {
                Err(format!("manifestFrom.artifact: the template has no input artifact '{name}'"))
            }
        }
    }
}

/// Parses a manifest of exactly one document.
pub fn document(text: &str) -> Result<Value, String> {
    let mut documents = read("manifest", text.as_bytes(), &Limits::default()).map_err(|problems| {
        let why: Vec<&str> = problems.0.iter().map(|problem| problem.message.as_str()).collect();
        format!("the manifest cannot be read: {}", why.join("; "))
    })?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) => Ok(document.value),
        (Some(_), false) => Err("the manifest must hold one object, not several".to_owned()),
        (None, _) => Err("the manifest is empty".to_owned()),
    }
}

fn action(asked: &ResourceTemplate) -> Result<ObjectAction, String> {
    Ok(match asked.action.as_str() {
        "get" => ObjectAction::Get,
        "create" => ObjectAction::Create,
        "apply" => ObjectAction::Apply,
        "delete" => ObjectAction::Delete,
        "replace" => ObjectAction::Replace,
        "patch" => ObjectAction::Patch(match asked.merge_strategy.as_deref().unwrap_or("strategic") {
            "" | "strategic" => PatchKind::Strategic,
            "merge" => PatchKind::Merge,
            "json" => PatchKind::Json,
            other => return Err(format!("mergeStrategy '{other}' must be one of: {}", STRATEGIES.join(", "))),
        }),
        other => return Err(format!("resource.action '{other}' must be one of: {}", ACTIONS.join(", "))),
    })
}

/// Takes the template's outputs from the object.
pub(super) fn outputs(template: &Template, object: &Value, meter: &Meter) -> NodeEnd {
    let mut outputs = OutputValues::default();
    for parameter in &template.outputs.parameters {
        let Some(from) = &parameter.value_from else {
            outputs.parameters.extend(parameter.value.as_ref().map(|value| (parameter.name.clone(), value.0.clone())));
            continue;
        };
        match taken(parameter, from, object, meter) {
            Ok(value) => outputs.parameters.push((parameter.name.clone(), value)),
            Err(why) => {
                let message = format!("output parameter '{}': {why}", parameter.name);
                return (Phase::Error, message, OutputValues::default());
            }
        }
    }
    (Phase::Succeeded, String::new(), outputs)
}

fn taken(parameter: &Parameter, from: &ValueFrom, object: &Value, meter: &Meter) -> Result<String, String> {
    let default = from.default.as_ref().or(parameter.default.as_ref());
    let found = match (&from.json_path, &from.jq_filter) {
        (Some(path), _) => match path_of(path) {
            Ok(path) => {
                let mut left = lang::Limits::STEPS;
                let text = path.render_within(object, &mut left);
                meter.spend(lang::Limits::STEPS - left).map_err(|error| error.to_string())?;
                Ok(text.ok_or_else(|| format!("jsonPath takes too many steps: it may take {}", lang::Limits::STEPS))?)
            }
            Err(why) => Err(why),
        },
        (None, Some(filter)) => match jq::parse(filter) {
            Ok(filter) => {
                let (text, spent) = filter.render_counted(object);
                meter.spend(spent).map_err(|error| error.to_string())?;
                text
            }
            Err(why) => Err(why),
        },
        (None, None) => return default.map(|text| text.0.clone()).ok_or_else(|| "it has no source".to_owned()),
    };
    match (found, default) {
        (Ok(text), Some(default)) if matches!(text.as_str(), "" | "null") => Ok(default.0.clone()),
        (Ok(text), _) => Ok(text),
        (Err(_), Some(default)) => Ok(default.0.clone()),
        (Err(why), None) => Err(why),
    }
}

/// Parses a path template. Braces may be left out around a single path.
pub(crate) fn path_of(text: &str) -> Result<jsonpath::Template, String> {
    let whole = if text.contains('{') { text.to_owned() } else { format!("{{{}}}", text.trim()) };
    jsonpath::Template::parse(&whole).map_err(|wrong| wrong.to_string())
}
