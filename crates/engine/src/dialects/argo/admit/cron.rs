//! Admits CronWorkflows: schedules, conditions, and the Workflow they create, which is checked as if it ran now.

use octoflow_manifest::{Path, Problem, Segment, Severity};
use serde_json::{Map, Value, json};

use super::{
    AdmitAs, Catalog, check_workflow, code,
    findings::{At, Findings},
    name, own_name,
    tag::{self, Tag},
    version,
};
use crate::{
    admit::shape,
    cron::{MAX_NAME_LENGTH, Schedule, child::child_name, schedule, timetable::MAX_SCHEDULES},
    dialects::argo::fields::{API_VERSION, CRON_WORKFLOW},
};
use octoflow_model::Time;

/// Checks a CronWorkflow completely. Returns problems and warnings.
pub fn examine_cron(object: &Value, others: &dyn Catalog) -> (Vec<Problem>, Vec<Problem>) {
    let checked = shape::check(object, &CRON_WORKFLOW);
    let mut report = Findings::new(checked.problems, checked.warnings);
    version(&checked.value, &checked.broken, &mut report);
    checked_name(&checked.value, &mut report);
    let place = Path::root().join("spec");
    let at = At::base(&place);
    let spec = &checked.value["spec"];
    let broken = |field: &str| checked.broken.iter().any(|path| path.starts_with(&place.join(field)));
    if !broken("schedules") && !broken("schedule") && !broken("timezone") {
        schedules(spec, &at, &mut report);
    }
    conditions(spec, &at, &mut report);
    if spec["catchUp"].is_object() && spec["catchUp"].get("policy").is_none() && !broken("catchUp") {
        report.error(&at.key("catchUp"), code::REQUIRED, || "spec.catchUp.policy is required".to_owned());
    }
    if spec.get("workflowSpec").is_none() && !broken("workflowSpec") {
        report.error(&at, code::REQUIRED, || "spec.workflowSpec is required".to_owned());
    }
    let mut found = match report.verdict() {
        Ok(warnings) => warnings,
        Err(problems) => problems.0,
    };
    if spec["workflowSpec"].is_object() {
        found.extend(within(&checked.value, &checked.broken, others));
    }
    found.into_iter().partition(|problem| problem.severity == Severity::Error)
}

fn checked_name(object: &Value, report: &mut Findings) {
    let own = own_name(object, "CronWorkflow", report);
    if name::is_object_name(own) && own.len() > MAX_NAME_LENGTH {
        let metadata = Path::root().join("metadata");
        report.error(&At::base(&metadata).key("name"), code::NAME, || {
            format!(
                "the name '{}' has {} characters, and must not have more than {MAX_NAME_LENGTH}: runs add a time to it",
                shape::short(own),
                own.len()
            )
        });
    }
}

fn schedules(spec: &Value, at: &At<'_>, report: &mut Findings) {
    let zone = spec["timezone"].as_str().filter(|zone| !zone.is_empty());
    let lost = zone.and_then(|zone| schedule::zone(zone).err());
    let zone = if lost.is_some() { None } else { zone };
    if let Some(why) = lost {
        report.error(&at.key("timezone"), code::SCHEDULE, || why);
    }
    let written = spec["schedules"].as_array().map_or(0, Vec::len);
    if written > MAX_SCHEDULES {
        report.error(&at.key("schedules"), code::SCHEDULE, || {
            format!("a CronWorkflow has at most {MAX_SCHEDULES} schedules, not {written}")
        });
    }
    let mut any = false;
    let mut judge = |at: &At<'_>, text: &str| {
        any = true;
        if let Err(why) = Schedule::parse(text, zone, Time::default()) {
            report.error(at, code::SCHEDULE, || why);
        }
    };
    for (index, text) in spec["schedules"].as_array().into_iter().flatten().take(MAX_SCHEDULES).enumerate() {
        judge(&at.key("schedules").index(index), text.as_str().unwrap_or_default());
    }
    if let Some(text) = spec["schedule"].as_str().filter(|text| !text.is_empty()) {
        judge(&at.key("schedule"), text);
    }
    if !any {
        report.error_with(&at.key("schedules"), code::SCHEDULE, || {
            let help = "write when it runs, such as `schedules: [\"0 6 * * *\"]`".to_owned();
            ("cron workflow must have at least one schedule".to_owned(), Some(help))
        });
    }
}

fn conditions(spec: &Value, at: &At<'_>, report: &mut Findings) {
    for field in ["expression", "condition"] {
        if let Some(text) = spec["stopStrategy"][field].as_str() {
            super::binding::expression(report, &at.key("stopStrategy").key(field), text, &["cronworkflow"]);
        }
    }
    let text = spec["when"].as_str().unwrap_or_default();
    tag::each(text, &mut |tag| {
        if let Tag::Expression { text, parsed } = tag
            && let Err(error) = *parsed
        {
            report.error(&at.key("when"), code::EXPRESSION, || {
                let (shown, column, message) = (shape::short(text.trim()), error.column, &error.message);
                format!("the expression `{shown}` is wrong at character {column}: {message}")
            });
        }
        true
    });
}

/// Checks the Workflow that it creates. Problems carry their path in the CronWorkflow.
fn within(object: &Value, broken: &[Path], others: &dyn Catalog) -> Vec<Problem> {
    let own =
        object["metadata"]["name"].as_str().filter(|own| own.len() <= MAX_NAME_LENGTH && name::is_object_name(own));
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(child_name(own.unwrap_or("cron"), Time::from_secs(1_700_000_000))));
    metadata.extend(object["spec"]["workflowMetadata"].as_object().cloned().unwrap_or_default());
    if let Some(namespace) = object["metadata"].get("namespace") {
        metadata.insert("namespace".to_owned(), namespace.clone());
    }
    let spec = &object["spec"]["workflowSpec"];
    let manifest = json!({"apiVersion": API_VERSION, "kind": "Workflow", "metadata": metadata, "spec": spec});
    let home = Path::root().join("spec").join("workflowSpec");
    let broken: Vec<Path> = broken
        .iter()
        .filter(|path| path.starts_with(&home))
        .map(|path| Path(path.segments().iter().take(1).chain(path.segments().iter().skip(2)).cloned().collect()))
        .collect();
    let mut report = Findings::default();
    check_workflow(&manifest, &broken, AdmitAs::Run, others, &mut report);
    let mut found = match report.verdict() {
        Ok(warnings) => warnings,
        Err(problems) => problems.0,
    };
    for problem in &mut found {
        let Some(path) = &mut problem.path else { continue };
        let inner =
            if path.segments().first() == Some(&Segment::from("spec")) { "workflowSpec" } else { "workflowMetadata" };
        let rest = path.segments().iter().skip(1).cloned();
        *path = Path([Segment::from("spec"), Segment::from(inner)].into_iter().chain(rest).collect());
    }
    found
}
