//! Suspension: a node that waits for a person or for time to pass.

use std::collections::BTreeMap;

use octoflow_model::{
    NodeIx,
    argo::{Phase, template::Parameter},
    fact::OutputValues,
};

use super::turn::Turn;

impl Turn<'_> {
    pub(super) fn visit_suspend(&mut self, at: NodeIx) {
        let node = self.run.state.node(at);
        if self.run.state.closes(at) {
            let message = match self.run.state.shutdown {
                Some(_) => self.closing_message(),
                None => "Step exceeded its deadline".to_owned(),
            };
            self.finish(at, Phase::Failed, message);
        } else if node.wake.is_some_and(|wake| wake <= self.now) {
            self.resume_node(at, &BTreeMap::new(), String::new());
        }
    }

    /// Ends a suspension well, with the values someone supplied or their defaults.
    pub(super) fn resume_node(&mut self, at: NodeIx, supplied: &BTreeMap<String, String>, message: String) {
        match self.supplied_outputs(at, supplied) {
            Ok(outputs) => {
                self.export(at, &outputs);
                self.finish_with(at, Phase::Succeeded, message, outputs, Vec::new());
            }
            Err(why) => self.finish(at, Phase::Failed, why),
        }
    }

    /// The outputs a suspended node ends with; the reason when a value is missing or nobody asked for it.
    pub(super) fn supplied_outputs(
        &mut self,
        at: NodeIx,
        supplied: &BTreeMap<String, String>,
    ) -> Result<OutputValues, String> {
        let template = self.instance(at)?.template.clone();
        let asked = |name: &String| {
            let asking =
                |parameter: &&Parameter| parameter.value_from.as_ref().is_some_and(|from| from.supplied.is_some());
            template.outputs.parameters.iter().filter(asking).any(|parameter| parameter.name == *name)
        };
        if let Some(unknown) = supplied.keys().find(|name| !asked(name)) {
            return Err(format!("node is not expecting output parameter '{unknown}'"));
        }
        let mut outputs = OutputValues::default();
        for parameter in &template.outputs.parameters {
            let from = parameter.value_from.as_ref();
            if from.is_none_or(|from| from.supplied.is_none()) {
                continue;
            }
            let borrowed =
                || template.inputs.parameters.iter().find(|input| input.name == parameter.name)?.default.as_ref();
            let default = from.and_then(|from| from.default.as_ref()).or(parameter.default.as_ref()).or_else(borrowed);
            match supplied.get(&parameter.name).cloned().or_else(|| default.map(|text| text.0.clone())) {
                Some(value) => outputs.parameters.push((parameter.name.clone(), value)),
                None => {
                    return Err(format!(
                        "raw output parameter '{}' has not been set and does not have a default value",
                        parameter.name
                    ));
                }
            }
        }
        Ok(outputs)
    }
}
