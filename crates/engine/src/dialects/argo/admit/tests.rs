//! Tests of admission: by table, by scenario, by corpus, and with hostile manifests.

mod corpus;
mod cron;
mod hostile;
mod meters;
mod pod;
mod refer;
mod scenario;
mod table;

use octoflow_manifest::{Limits, Problem, Problems, read};
use serde_json::Value;

use super::{AdmittedWorkflow, Catalog, admit};
use crate::{
    dialects::argo::refer::Reach,
    kinds::{Kind, core::CONFIG_MAP},
};

/// A catalog that contains only what is listed.
#[derive(Default)]
struct Objects {
    config_maps: &'static [&'static str],
    templates: Vec<Value>,
}

impl Catalog for Objects {
    fn has_object(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        *kind == CONFIG_MAP && namespace == "default" && self.config_maps.contains(&name)
    }

    fn template(&self, reach: Reach, namespace: &str, name: &str) -> Option<Value> {
        let kept = |object: &&Value| {
            let metadata = &object["metadata"];
            object["kind"] == reach.kind()
                && metadata["name"] == name
                && (reach == Reach::Cluster || metadata["namespace"].as_str().unwrap_or("default") == namespace)
        };
        self.templates.iter().find(kept).cloned()
    }

    fn template_names(&self, reach: Reach, _namespace: &str) -> Vec<String> {
        let kept = self.templates.iter().filter(|object| object["kind"] == reach.kind());
        kept.filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned)).collect()
    }
}

fn parsed(text: &str) -> Value {
    let mut documents =
        read("test.yaml", text.as_bytes(), &Limits::default()).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(documents.len(), 1, "one document expected");
    documents.remove(0).value
}

fn judged(text: &str) -> Result<AdmittedWorkflow, Problems> {
    admit(&parsed(text), &Objects::default())
}

/// Builds a workflow with these templates, given with two spaces before each line.
fn with_templates(templates: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata:\n  generateName: test-\nspec:\n  entrypoint: main\n  templates:\n{templates}"
    )
}

fn pairs<'p>(problems: impl IntoIterator<Item = &'p Problem>) -> Vec<(String, String)> {
    let pair = |problem: &Problem| {
        let path = problem.path.as_ref().map(ToString::to_string).unwrap_or_default();
        (problem.code.to_owned(), path)
    };
    problems.into_iter().map(pair).collect()
}

/// Returns the codes and paths of all problems of a manifest.
fn wrongs(text: &str) -> Vec<(String, String)> {
    match judged(text) {
        Ok(admitted) => panic!("admitted, with warnings {:?}", pairs(admitted.warnings())),
        Err(problems) => pairs(&problems),
    }
}

fn message_of(text: &str, code: &str) -> String {
    let problems = judged(text).expect_err("the manifest is wrong");
    let found = problems.iter().find(|problem| problem.code == code);
    found.unwrap_or_else(|| panic!("no {code} in {problems}")).message.clone()
}
