//! Handles suspension: a node that waits for a user or for a time.

use std::collections::BTreeMap;

use octoflow_model::{
    NodeIx,
    argo::{NodeList, OutputValues, Phase, template::Parameter},
};

use super::{turn::Turn, view::View};

impl Turn<'_> {
    pub(super) fn visit_suspend(&mut self, at: NodeIx) {
        let node = self.run.state.node(at);
        if self.run.state.closes(at) {
            let message = match self.run.state.head.shutdown {
                Some(_) => self.view().closing_message(),
                None => "Step exceeded its deadline".to_owned(),
            };
            self.finish(at, Phase::Failed, message);
        } else if node.wake.is_some_and(|wake| wake <= self.now) {
            self.resume_node(at, &BTreeMap::new(), String::new());
        }
    }

    /// Ends a suspension successfully, with the supplied values or their defaults.
    pub(super) fn resume_node(&mut self, at: NodeIx, supplied: &BTreeMap<String, String>, message: String) {
        match self.supplied_outputs(at, supplied) {
            Ok(outputs) => {
                self.export(at, &outputs);
                self.finish_with(at, Phase::Succeeded, message, outputs, NodeList::default());
            }
            Err(why) => self.finish(at, Phase::Failed, why),
        }
    }

    /// Returns the outputs that a suspended node ends with; fails with the reason if a value is missing or unexpected.
    pub(super) fn supplied_outputs(
        &mut self,
        at: NodeIx,
        supplied: &BTreeMap<String, String>,
    ) -> Result<OutputValues, String> {
        self.expects(at, supplied)?;
        let template = self.instance(at)?.template.clone();
        let given = self.view().given_outputs(at, supplied).parameters;
        let given = |name: &str| given.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        let mut outputs = OutputValues::default();
        for parameter in &template.outputs.parameters {
            let from = parameter.value_from.as_ref();
            if from.is_none_or(|from| from.supplied.is_none()) {
                continue;
            }
            let borrowed =
                || template.inputs.parameters.iter().find(|input| input.name == parameter.name)?.default.as_ref();
            let default = from.and_then(|from| from.default.as_ref()).or(parameter.default.as_ref()).or_else(borrowed);
            match given(&parameter.name).or_else(|| default.map(|text| text.0.clone())) {
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
    /// Checks that every value is for an output that the node waits for.
    pub(super) fn expects(&mut self, at: NodeIx, supplied: &BTreeMap<String, String>) -> Result<(), String> {
        let template = self.instance(at)?.template.clone();
        let asked = |name: &String| {
            let asking =
                |parameter: &&Parameter| parameter.value_from.as_ref().is_some_and(|from| from.supplied.is_some());
            template.outputs.parameters.iter().filter(asking).any(|parameter| parameter.name == *name)
        };
        match supplied.keys().find(|name| !asked(name)) {
            Some(unknown) => Err(format!("node is not expecting output parameter '{unknown}'")),
            None => Ok(()),
        }
    }
}

impl View<'_> {
    /// Returns the values that users supplied, now or before.
    pub(super) fn given_outputs(&self, at: NodeIx, supplied: &BTreeMap<String, String>) -> OutputValues {
        let mut outputs = self.run.state.node(at).outputs.as_deref().cloned().unwrap_or_default();
        outputs.parameters.retain(|(name, _)| !supplied.contains_key(name));
        outputs.parameters.extend(supplied.iter().map(|(name, value)| (name.clone(), value.clone())));
        outputs
    }
}
