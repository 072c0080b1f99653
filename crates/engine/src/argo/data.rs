//! Data templates: which stored artifacts are listed, and what the steps of the transformation make of the list.

use octoflow_model::{
    argo::{Phase, body::DataTemplate},
    fact::OutputValues,
    request::ListingRequest,
};
use serde_json::{Value, json};

use super::answer::Verdict;
use crate::expr::{
    self,
    lang::{self, Env, Occasion},
};

/// The stores an artifact location can name; a key alone means the default repository.
const STORES: [&str; 4] = ["s3", "gcs", "oss", "azure"];

/// The reason when the source names nothing that can be listed.
pub(crate) fn request(asked: &DataTemplate, namespace: &str) -> Result<ListingRequest, String> {
    let Some(location) = asked.source.artifact_paths.as_ref().and_then(Value::as_object) else {
        return Err("artifactPaths must say where to look, such as `s3: {key: some/prefix}`".to_owned());
    };
    let Some((store, place)) = STORES.iter().find_map(|store| Some((*store, location.get(*store)?))) else {
        return Err(format!("artifactPaths must name a key in one of: {}", STORES.join(", ")));
    };
    if let Some(field) = ["bucket", "container", "endpoint"].into_iter().find(|field| place.get(field).is_some()) {
        return Err(format!(
            "only the default repository can be listed; leave out `{field}` of `{store}` and give its key alone"
        ));
    }
    let key = place.get("key").or_else(|| place.get("blob")).and_then(Value::as_str).unwrap_or_default();
    Ok(ListingRequest { namespace: namespace.to_owned(), prefix: key.to_owned() })
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
