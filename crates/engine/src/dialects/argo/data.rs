//! Handles data templates: the listing of stored artifacts, and its transformation.

use octoflow_model::{
    argo::{ArtifactLocation, OutputValues, Phase, Template, body::DataTemplate, location::S3Location},
    location::{LocalKey, Location},
    request::ListingRequest,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{answer::NodeEnd, locate, standin, view::View};
use crate::expr::{
    self, Meter,
    lang::{Env, EvalContext},
};

/// Returns the location to list, as written; fails with the reason if it cannot be listed.
pub(crate) fn source(asked: &DataTemplate) -> Result<ArtifactLocation, String> {
    let Some(written) = asked.source.artifact_paths.as_ref().filter(|value| value.is_object()) else {
        return Err("artifactPaths must say where to look, such as `s3: {key: some/prefix}`".to_owned());
    };
    let mut place = ArtifactLocation::deserialize(written).map_err(|error| format!("artifactPaths: {error}"))?;
    place.stand_in = None;
    // Without a key, list everything: the empty prefix.
    if let Some(s3) = &mut place.s3 {
        s3.key.get_or_insert_default();
        if s3.endpoint.is_some() && s3.bucket.is_none() {
            return Err("s3 names an endpoint and no bucket; name both, or give the key alone".to_owned());
        }
        return Ok(place);
    }
    if let Some(plugin) = &mut place.plugin {
        plugin.key.get_or_insert_default();
        return Ok(place);
    }
    for (store, value) in [("gcs", &place.gcs), ("oss", &place.oss), ("azure", &place.azure)] {
        let Some(value) = value else { continue };
        if let Some(field) = ["bucket", "container", "endpoint"].into_iter().find(|field| value.get(field).is_some()) {
            return Err(format!(
                "a {store} store cannot be listed; leave out `{field}` and give the key of the default repository alone"
            ));
        }
        let key = value.get("key").or_else(|| value.get("blob")).and_then(Value::as_str).unwrap_or_default();
        let s3 = S3Location { key: Some(key.to_owned()), ..S3Location::default() };
        return Ok(ArtifactLocation { s3: Some(s3), ..ArtifactLocation::default() });
    }
    Err("artifactPaths must name a key in one of: s3, gcs, oss, azure, plugin".to_owned())
}

impl View<'_> {
    pub(super) fn listing_request(&self, template: &Template, asked: &DataTemplate) -> Result<ListingRequest, String> {
        let place = self.store_of(template, source(asked)?)?;
        let namespace = self.run.state.head.namespace.to_string();
        let Some(place) = place.key_only().is_none().then_some(&place) else {
            let key = place.key_only().unwrap_or_default().to_owned();
            return Ok(ListingRequest { location: Location::Local(LocalKey { namespace, key }), cut: String::new() });
        };
        let cut = standin::store(place).filter(|_| place.stand_in == Some(true)).unwrap_or_default();
        Ok(ListingRequest { location: locate::complete_prefix(self.world, &namespace, place)?, cut })
    }
}

/// Runs the transformation. Each step sees the previous result as `data`.
pub(super) fn judge(
    asked: &DataTemplate,
    keys: &[String],
    occasion: &dyn Fn(usize) -> Option<EvalContext>,
    meter: &Meter,
) -> NodeEnd {
    let mut made: expr::Value = json!(keys).into();
    for (place, step) in asked.transformation.iter().enumerate() {
        match meter.evaluate(&step.expression, &TransformationEnv(made, occasion(place))) {
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

struct TransformationEnv(expr::Value, Option<EvalContext>);

impl Env for TransformationEnv {
    fn root(&self, name: &str) -> Option<expr::Value> {
        (name == "data").then(|| self.0.clone())
    }

    fn eval_context(&self) -> Option<EvalContext> {
        self.1
    }

    fn names(&self) -> Vec<String> {
        vec!["data".to_owned()]
    }
}
