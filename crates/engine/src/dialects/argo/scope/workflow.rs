//! Resolves `workflow.*`, which every text of a run can refer to.

use octoflow_model::{
    argo::{NodeKind, Phase},
    task::Labels,
};
use serde_json::{Map, Value, json};

use super::Scope;

/// Letters after `workflow.creationTimestamp.`, each a part of the date as `strftime` prints it.
const DATE_LETTERS: &str = "YmdHMSyBbAaFTDRjpIZeUW";

/// Whether `workflow.creationTimestamp` has this part; the empty part is the whole timestamp.
pub(crate) fn is_date_part(part: &str) -> bool {
    matches!(part, "" | "s" | "RFC3339") || part.len() == 1 && DATE_LETTERS.contains(part)
}

impl Scope<'_> {
    pub(super) fn workflow(&self, rest: &str) -> Option<String> {
        let state = &self.run.state;
        let spec = &self.run.program.workflow.spec;
        let (field, name) = rest.split_once('.').unwrap_or((rest, ""));
        match (field, name) {
            ("name", "") => Some(state.head.name.to_string()),
            ("namespace", "") => Some(state.head.namespace.to_string()),
            ("uid", "") => Some(state.head.uid.to_string()),
            ("mainEntrypoint", "") => spec.entrypoint.clone(),
            ("serviceAccountName", "") => {
                Some(spec.service_account_name.clone().unwrap_or_else(|| "default".to_owned()))
            }
            ("priority", "") => Some(spec.priority.unwrap_or(0).to_string()),
            ("duration", "") => Some(format!("{:.6}", self.now.since(state.began.unwrap_or(self.now)).as_secs_f64())),
            ("status", "") => Some(self.status()),
            ("failures", "") => Some(Value::String(self.failures()).to_string()),
            ("scheduledTime", "") => self.metadata("annotations").get("workflows.argoproj.io/scheduled-time").cloned(),
            ("parameters", "" | "json") => Some(self.parameters_json()),
            ("parameters", name) => self.parameters.get(name).cloned(),
            ("labels" | "annotations", "" | "json") => Some(json!(self.metadata(field)).to_string()),
            ("labels" | "annotations", name) => self.metadata(field).get(name).cloned(),
            ("creationTimestamp", _) => self.created(name),
            ("outputs", name) => state.exported.get(name.strip_prefix("parameters.")?).cloned(),
            _ => None,
        }
    }

    fn created(&self, part: &str) -> Option<String> {
        let created = self.run.state.head.created;
        match part {
            "" | "RFC3339" => Some(created.to_string()),
            "s" => Some(created.seconds().to_string()),
            letter if is_date_part(letter) => {
                let utc = created.timestamp().to_zoned(jiff::tz::TimeZone::UTC);
                Some(utc.strftime(&format!("%{letter}")).to_string())
            }
            _ => None,
        }
    }

    fn metadata(&self, field: &str) -> &Labels {
        let state = &self.run.state;
        if field == "labels" { &state.head.labels } else { &state.head.annotations }
    }

    fn parameters_json(&self) -> String {
        let list: Vec<Value> =
            self.parameters.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        Value::Array(list).to_string()
    }

    /// Returns `Running` until the entrypoint is over, then its phase.
    fn status(&self) -> String {
        let state = &self.run.state;
        let word = match state.root.map(|root| state.node(root).phase) {
            Some(Phase::Succeeded | Phase::Skipped | Phase::Omitted) => "Succeeded",
            Some(Phase::Failed) => "Failed",
            Some(Phase::Error) => "Error",
            Some(Phase::Pending | Phase::Running) | None => "Running",
        };
        word.to_owned()
    }

    /// Returns the failed pods so far, as a JSON list.
    fn failures(&self) -> String {
        let state = &self.run.state;
        let failed = state
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.phase.bad() && (node.kind.executable() || node.kind == NodeKind::Skipped));
        let list: Vec<Value> = failed
            .map(|(at, node)| {
                let template = node.template.as_deref().map(crate::dialects::argo::refer::bare).unwrap_or_default();
                json!({
                    "displayName": state.display_of(octoflow_model::NodeIx(at as u32)),
                    "message": node.message.as_deref().unwrap_or_default(),
                    "templateName": template,
                    "phase": node.phase.word(),
                    "podName": crate::dialects::argo::ident::pod_name(&state.head.name, &node.name, template),
                    "finishedAt": node.finished.map(|at| at.to_string()),
                })
            })
            .collect();
        Value::Array(list).to_string()
    }

    pub(super) fn workflow_map(&self) -> Value {
        let mut map = Map::new();
        for field in [
            "name",
            "namespace",
            "uid",
            "mainEntrypoint",
            "serviceAccountName",
            "priority",
            "duration",
            "status",
            "scheduledTime",
        ] {
            if let Some(text) = self.workflow(field) {
                map.insert(field.to_owned(), text.into());
            }
        }
        map.insert("failures".to_owned(), self.failures().into());
        let mut parameters: Map<String, Value> =
            self.parameters.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        parameters.entry("json").or_insert_with(|| self.parameters_json().into());
        map.insert("parameters".to_owned(), Value::Object(parameters));
        for field in ["labels", "annotations"] {
            let mut labels: Map<String, Value> =
                self.metadata(field).iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            labels.entry("json").or_insert_with(|| json!(self.metadata(field)).to_string().into());
            map.insert(field.to_owned(), Value::Object(labels));
        }
        let mut created: Map<String, Value> = DATE_LETTERS
            .chars()
            .filter_map(|letter| Some((letter.to_string(), self.created(&letter.to_string())?.into())))
            .collect();
        created.insert("s".to_owned(), self.run.state.head.created.seconds().to_string().into());
        created.insert("RFC3339".to_owned(), self.run.state.head.created.to_string().into());
        map.insert("creationTimestamp".to_owned(), Value::Object(created));
        let exported: Map<String, Value> =
            self.run.state.exported.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        map.insert("outputs".to_owned(), json!({"parameters": exported}));
        Value::Object(map)
    }
}
