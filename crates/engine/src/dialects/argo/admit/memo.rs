//! Checks memoization: a key, a cache, and a valid maximum age.

use octoflow_model::argo::Memoize;

use super::{
    code,
    findings::{At, Findings},
    name, template,
};
use crate::{admit::shape::short, dialects::argo::memo::is_key};

/// Checks `memoize` of a template. `of` names its place in messages.
pub(super) fn check(report: &mut Findings, at: &At<'_>, of: &str, memoize: &Memoize) {
    let key = &memoize.key.0;
    if key.is_empty() {
        report.error(at, code::REQUIRED, || format!("{of}.key is required"));
    } else if !name::has_variables(key) && !is_key(key) {
        report.error_with(&at.key("key"), code::NAME, || {
            (format!("{of}.key '{}' is invalid", short(key)), Some("use letters, digits and '-'".to_owned()))
        });
    }
    let map = memoize.cache.as_ref().and_then(|cache| cache.config_map.as_ref());
    if map.is_none_or(|map| map.name.is_empty()) {
        report.error_with(at, code::REQUIRED, || {
            (
                format!("{of}.cache.configMap.name is required"),
                Some("name a ConfigMap; it is made when it is not there".to_owned()),
            )
        });
    }
    if let Some(age) = &memoize.max_age {
        template::span(report, &at.key("maxAge"), &|| format!("{of}.maxAge"), age);
    }
}
