//! Data templates: which stored artifacts are listed, and what the steps of the transformation make of the list.

use octoflow_model::{
    argo::{Phase, body::DataTemplate},
    fact::OutputValues,
    request::ListingRequest,
};
use serde_json::json;

use super::answer::Verdict;
use crate::expr::{
    self,
    lang::{self, Env},
};

pub(super) fn request(asked: &DataTemplate) -> Result<ListingRequest, String> {
    let _ = asked;
    Err("data templates cannot list anything yet".to_owned())
}

/// Each step sees what the one before it made as `data`.
pub(super) fn judge(asked: &DataTemplate, keys: &[String]) -> Verdict {
    let mut made: expr::Value = json!(keys).into();
    for step in &asked.transformation {
        match lang::parse(&step.expression).and_then(|program| program.evaluate(&Made(made))) {
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

struct Made(expr::Value);

impl Env for Made {
    fn root(&self, name: &str) -> Option<expr::Value> {
        (name == "data").then(|| self.0.clone())
    }

    fn names(&self) -> Vec<String> {
        vec!["data".to_owned()]
    }
}
