//! Checks custom metrics: each has a name, a help text, exactly one type and publishable values.
//! Mistakes that affect only the metric, not the run, are warnings, as in Argo.

use std::collections::HashMap;

use octoflow_manifest::Path;
use octoflow_model::argo::{
    Metrics,
    body::{Gauge, Prometheus},
};
use serde::Deserialize;

use super::{
    Subject, code,
    findings::{At, Findings},
    name,
    tag::{self, Tag},
};
use crate::{
    admit::shape::short,
    dialects::argo::meter::{BAD_NAME, buckets, is_metric_name, label_flaw, texts},
    expr::{nearest, when},
};

/// Variables without a dot that only metrics have.
const OWN: [&str; 4] = ["duration", "status", "exitCode", "retries"];

/// Definition of a metric by its first occurrence: type, help text and labels.
type Definition<'m> = (&'static str, &'m str, Vec<&'m str>);

pub(super) fn check(subject: &Subject<'_>, report: &mut Findings) {
    let spec = &subject.workflow.spec;
    let place = Path::root().join("spec");
    let at = At::base(&place);
    let defaults = spec.template_defaults.as_ref().and_then(|value| Metrics::deserialize(value.get("metrics")?).ok());
    let mut known = HashMap::new();
    if let Some(metrics) = &spec.metrics {
        list(report, &at.key("metrics"), "spec", metrics, true, &mut known);
    }
    if let Some(metrics) = &defaults {
        let at = at.key("templateDefaults");
        list(report, &at.key("metrics"), "spec.templateDefaults", metrics, false, &mut known);
    }
    for entry in subject.templates.entries.iter().filter(|entry| !entry.broken) {
        // Metrics from the template defaults were checked once, above.
        if let Some(metrics) = entry.template.metrics.as_ref().filter(|own| defaults.as_ref() != Some(*own)) {
            let at = At::base(&entry.path);
            list(report, &at.key("metrics"), &format!("templates.{}", entry.label), metrics, false, &mut known);
        }
    }
}

fn list<'m>(
    report: &mut Findings,
    at: &At<'_>,
    of: &str,
    metrics: &'m Metrics,
    whole: bool,
    known: &mut HashMap<&'m str, Definition<'m>>,
) {
    let at = at.key("prometheus");
    for (index, metric) in metrics.prometheus.iter().enumerate() {
        let at = at.index(index);
        one(report, &at, of, metric, whole);
        agree(report, &at, of, metric, known);
        near_misses(report, &at, of, metric);
    }
}

fn one(report: &mut Findings, at: &At<'_>, of: &str, metric: &Prometheus, whole: bool) {
    let called = short(&metric.name);
    if !name::has_variables(&metric.name) && !is_metric_name(&metric.name) {
        report.error(&at.key("name"), code::METRIC, || format!("{of} metric name '{called}' is invalid. {BAD_NAME}"));
    }
    if metric.help.is_empty() {
        report.error(at, code::METRIC, || {
            format!("{of} metric '{called}' must contain a help string under 'help: ' field")
        });
    }
    let kinds: Vec<(&str, &str)> = [
        metric.counter.as_ref().map(|counter| ("counter", counter.value.0.as_str())),
        metric.gauge.as_ref().map(|gauge| ("gauge", gauge.value.0.as_str())),
        metric.histogram.as_ref().map(|histogram| ("histogram", histogram.value.0.as_str())),
    ]
    .into_iter()
    .flatten()
    .collect();
    if kinds.len() != 1 {
        report.error(at, code::METRIC, || {
            format!("{of} metric '{called}' must have exactly one of counter, gauge and histogram")
        });
    }
    for (kind, value) in &kinds {
        number(report, &at.key(kind), of, &called, kind, value);
    }
    if let Some(gauge) = metric.gauge.as_ref().filter(|gauge| gauge.realtime) {
        let place = at.key("gauge");
        following(report, &place.key("value"), of, &called, gauge, whole);
    }
    if let Some(Err(why)) = metric.histogram.as_ref().map(buckets) {
        let place = at.key("histogram");
        report.error(&place.key("buckets"), code::METRIC, || format!("{of} metric '{called}' error: {why}"));
    }
    labels(report, at, of, &called, metric);
    if let Some(text) = metric.when.as_deref().filter(|text| !name::has_variables(text))
        && let Err(error) = when::evaluate(text)
    {
        report.error(&at.key("when"), code::WHEN, || format!("{} (at character {})", error.message, error.column));
    }
}

fn number(report: &mut Findings, at: &At<'_>, of: &str, called: &str, kind: &str, value: &str) {
    if value.is_empty() {
        report.error(at, code::METRIC, || format!("{of} metric '{called}' error: missing {kind}.value"));
        return;
    }
    if name::has_variables(value) {
        return;
    }
    match value.trim().parse::<f64>() {
        Ok(number) if kind == "counter" && number < 0.0 => report.error(&at.key("value"), code::METRIC, || {
            format!("{of} metric '{called}' error: counter cannot decrease in value")
        }),
        Ok(number) if number.is_finite() => {}
        _ => report.warn(&at.key("value"), code::METRIC, || {
            format!("{of} metric '{called}' will never be published: '{}' is not a number", short(value))
        }),
    }
}

/// Checks a real-time gauge, which can only measure durations.
fn following(report: &mut Findings, at: &At<'_>, of: &str, called: &str, gauge: &Gauge, whole: bool) {
    let value = gauge.value.0.trim();
    if value.contains("resourcesDuration.") {
        report.error(at, code::METRIC, || {
            format!("{of} metric '{called}' error: 'resourcesDuration.*' metrics cannot be used in real-time")
        });
        return;
    }
    let variable = value.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).map(str::trim);
    let fits = matches!(variable, Some("workflow.duration")) || !whole && matches!(variable, Some("duration"));
    if !fits && !value.is_empty() {
        let usable = if whole { "`{{workflow.duration}}`" } else { "`{{duration}}` or `{{workflow.duration}}`" };
        report.warn(at, code::METRIC, || {
            format!("{of} metric '{called}' will never be published: a real time gauge can only be {usable}")
        });
    }
}

fn labels(report: &mut Findings, at: &At<'_>, of: &str, called: &str, metric: &Prometheus) {
    let list = at.key("labels");
    let mut seen = std::collections::HashSet::new();
    for (index, label) in metric.labels.iter().enumerate() {
        let place = list.index(index);
        let place = place.key("key");
        if name::has_variables(&label.key) {
            continue;
        }
        if let Some(flaw) = label_flaw(&label.key, metric.histogram.is_some()) {
            report.error(&place, code::METRIC, || format!("{of} metric '{called}' error: {flaw}"));
        } else if !seen.insert(label.key.as_str()) {
            report.error(&place, code::DUPLICATE_NAME, || {
                format!("{of} metric '{called}' has the label '{}' twice", label.key)
            });
        }
    }
}

/// Warns if metrics of the same name differ in type, help text or labels.
fn agree<'m>(
    report: &mut Findings,
    at: &At<'_>,
    of: &str,
    metric: &'m Prometheus,
    known: &mut HashMap<&'m str, Definition<'m>>,
) {
    if texts(metric).any(|text| text.is_empty())
        || [&metric.name, &metric.help].into_iter().any(|text| name::has_variables(text))
        || metric.labels.iter().any(|label| name::has_variables(&label.key))
    {
        return;
    }
    let kind = match (&metric.counter, &metric.gauge) {
        (Some(_), _) => "counter",
        (None, Some(_)) => "gauge",
        (None, None) => "histogram",
    };
    let mut keys: Vec<&str> = metric.labels.iter().map(|label| label.key.as_str()).collect();
    keys.sort_unstable();
    let definition = (kind, metric.help.as_str(), keys);
    let first = known.entry(&metric.name).or_insert_with(|| definition.clone());
    let differs = match (first.0 == definition.0, first.1 == definition.1, first.2 == definition.2) {
        (false, _, _) => "type",
        (_, false, _) => "help text",
        (_, _, false) => "labels",
        (true, true, true) => return,
    };
    report.warn(at, code::METRIC, || {
        format!(
            "{of} metric '{}' will never be published beside the other one of this name: its {differs} differs",
            short(&metric.name)
        )
    });
}

/// Warns about unknown variables that resemble one that metrics have.
fn near_misses(report: &mut Findings, at: &At<'_>, of: &str, metric: &Prometheus) {
    for text in texts(metric) {
        tag::each(text, &mut |tag| {
            let Tag::Name(word) = tag else { return true };
            let word = word.trim();
            if let (false, false, Some(near)) = (word.contains('.'), OWN.contains(&word), nearest(word, OWN)) {
                report.warn(at, code::UNRESOLVED, || {
                    let called = short(&metric.name);
                    format!("{of} metric '{called}' refers to '{}'; did you mean `{near}`?", short(word))
                });
            }
            true
        });
    }
}
