//! Data templates: which stored artifacts are listed, and what the steps of the transformation make of the list.

use octoflow_model::{
    argo::{ArtifactLocation, Phase, body::DataTemplate},
    fact::OutputValues,
};
use serde::Deserialize;
use serde_json::json;

use super::answer::Verdict;
use crate::expr::{
    self,
    lang::{self, Env, Occasion},
};

/// Where to look; the reason when the source names nothing that can be listed.
pub(crate) fn place(asked: &DataTemplate) -> Result<ArtifactLocation, String> {
    let written = asked.source.artifact_paths.as_ref().filter(|written| written.is_object());
    let written = written.ok_or("artifactPaths must say where to look, such as `s3: {key: some/prefix}`")?;
    let place = ArtifactLocation::deserialize(written).map_err(|error| format!("artifactPaths: {error}"))?;
    if place.http.is_some() || place.git.is_some() || !place.is_given() {
        return Err("artifactPaths must name a key of the default repository or of an s3 bucket".to_owned());
    }
    Ok(place)
}

/// Each step sees what the one before it made as `data`.
pub(super) fn judge(asked: &DataTemplate, keys: &[String], occasion: &dyn Fn(usize) -> Option<Occasion>) -> Verdict {
    let mut made: expr::Value = json!(keys).into();
    for (place, step) in asked.transformation.iter().enumerate() {
        match lang::parse(&step.expression).and_then(|program| program.evaluate(&Made(made, occasion(place)))) {
            Ok(value) => made = value,
            Err(error) => {
                let why = format!("transformation '{}' cannot be evaluated: {error}", step.expression);
                return (Phase::Error, why, OutputValues::default());
            }
        }
    }
    let result = Some(made.to_json());
    (Phase::Succeeded, String::new(), OutputValues { result, ..OutputValues::default() })
}

struct Made(expr::Value, Option<Occasion>);

impl Env for Made {
    fn root(&self, name: &str) -> Option<expr::Value> {
        (name == "data").then(|| self.0.clone())
    }

    fn occasion(&self) -> Option<Occasion> {
        self.1
    }

    fn names(&self) -> Vec<String> {
        vec!["data".to_owned()]
    }
}
