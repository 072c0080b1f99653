//! Checks `podSpecPatch`: there are no pods to patch here, but a malformed patch is an error all the same.

use octoflow_manifest::{Limits, read};
use octoflow_model::{NodeIx, argo::Template};

use crate::dialects::argo::{
    scope::Scope,
    substitute::{Missing, fill},
    view::View,
};

impl View<'_> {
    /// Checks that the patches of the workflow and of the template parse once their variables are filled in.
    pub(super) fn check_patches(&self, at: NodeIx, template: &Template) -> Result<(), String> {
        if let Some(patch) = &self.run.program.workflow.spec.pod_spec_patch {
            let locals = self.locals(at);
            let inputs = self.run.state.node(at).inputs.as_deref();
            let scope =
                Scope { inputs, locals: &locals, ..Scope::of_node(self.run, self.now, at).about("podSpecPatch") };
            let filled = fill(&patch.0, &scope, Missing::Keep).map_err(|error| error.to_string())?;
            flaw(&filled).map_or(Ok(()), |why| Err(format!("spec.podSpecPatch {why}")))?;
        }
        match template.pod_spec_patch.as_ref().and_then(|patch| flaw(&patch.0)) {
            Some(why) => Err(format!("podSpecPatch {why}")),
            None => Ok(()),
        }
    }
}

/// Why a patch is malformed; completes a sentence that begins with its name.
pub(crate) fn flaw(patch: &str) -> Option<String> {
    if patch.trim().is_empty() {
        return None;
    }
    match read("podSpecPatch", patch.as_bytes(), &Limits::default()) {
        Ok(documents) => {
            let whole = documents.len() == 1 && documents[0].value.is_object();
            (!whole).then(|| "must be one object in JSON or YAML".to_owned())
        }
        Err(problems) => {
            let first = problems.iter().next().map(|problem| problem.message.clone()).unwrap_or_default();
            Some(format!("is neither JSON nor YAML: {first}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::flaw;

    #[test]
    fn a_patch_is_one_object() {
        assert_eq!(flaw(r#"{"containers":[{"name":"main"}]}"#), None);
        assert_eq!(flaw("containers:\n  - name: main\n"), None);
        assert_eq!(flaw(" "), None);
        assert!(flaw("some words").unwrap().contains("one object"));
        assert!(flaw("[1, 2]").unwrap().contains("one object"));
        assert!(flaw(r#"{"containers": [}"#).unwrap().contains("neither JSON nor YAML"));
    }
}
