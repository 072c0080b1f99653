//! Whether an object would be accepted, without storing it and without caring whether its name is free.

use octoflow_engine::{
    Problem, Problems,
    admit::admit,
    argo::admit::{Surroundings, examine_binding, examine_cron, examine_template},
};
use serde_json::{Value, json};

use super::{Fault, Keeping, Kind, Registry, shelf};

/// Stands for a name that would be drawn, or that a manifest under construction does not have yet.
const STAND_IN: &str = "unnamed";

impl Registry {
    /// The object as it was given, or everything that is wrong with it.
    pub fn lint(&self, kind: &'static Kind, namespace: &str, mut object: Value) -> Result<Value, Fault> {
        self.settle(kind, namespace, None, &mut object)?;
        let mut named = object.clone();
        let metadata = &mut named["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let name = match (text("name"), text("generateName")) {
            ("", "") => STAND_IN.to_owned(),
            ("", prefix) => format!("{prefix}{STAND_IN}"),
            (name, _) => name.to_owned(),
        };
        metadata["name"] = json!(name);
        match kind.keeping {
            Keeping::View => return Err(Fault::ReadOnly { kind }),
            Keeping::Run => {
                if let Some(fields) = named.as_object_mut() {
                    fields.remove("status");
                }
                let around = self.desk().around()?;
                admit(&named, &around).map_err(|problems| Fault::problems(kind, &name, &problems))?;
            }
            Keeping::Shelf => {
                shelf::check(kind, &named)?;
                if let Some(examine) = examiner(kind) {
                    let around = self.desk().around()?;
                    let (problems, _warnings) = examine(&named, &around);
                    if !problems.is_empty() {
                        return Err(Fault::problems(kind, &name, &Problems(problems)));
                    }
                }
            }
        }
        Ok(object)
    }
}

type Examine = fn(&Value, &dyn Surroundings) -> (Vec<Problem>, Vec<Problem>);

/// Who judges kinds that workflows are made from, with everything they refer to.
fn examiner(kind: &Kind) -> Option<Examine> {
    match kind.name {
        "WorkflowTemplate" | "ClusterWorkflowTemplate" => Some(examine_template),
        "CronWorkflow" => Some(examine_cron),
        "WorkflowEventBinding" => Some(examine_binding),
        _ => None,
    }
}
