//! Admits CronJobs: the schedule, and the Job they make, which is checked as if it ran now.

use octoflow_manifest::{Path, Problem, Segment, Severity};
use octoflow_model::{Time, kubejob::CRON_KIND};
use serde_json::{Value, json};

use super::advice::Everything;
use crate::{
    admit::{
        Catalog, code,
        findings::{At, Findings},
        shape,
    },
    cron::{MAX_NAME_LENGTH, Schedule, schedule},
    dialects::kubejob::{cron::child, fields::CRON_JOB},
};

/// Checks a CronJob completely. Returns problems and warnings.
pub fn examine_cron(object: &Value, others: &dyn Catalog) -> (Vec<Problem>, Vec<Problem>) {
    let checked = shape::check(object, &CRON_JOB);
    let mut report = Findings::new(checked.problems, checked.warnings);
    let (value, broken) = (&checked.value, &checked.broken);
    super::version(value, broken, CRON_KIND, &mut report);
    name(value, &mut report);
    let place = Path::root().join("spec");
    let at = At::base(&place);
    let is_broken = |field: &str| broken.iter().any(|path| path.starts_with(&place.join(field)));
    if !is_broken("schedule") && !is_broken("timeZone") {
        times(&value["spec"], &at, &mut report);
    }
    let template = &value["spec"]["jobTemplate"];
    if !template["spec"].is_object() && !is_broken("jobTemplate") {
        report.error(&at.key("jobTemplate"), code::REQUIRED, || "spec.jobTemplate.spec is required".to_owned());
    }
    let mut found = match report.verdict() {
        Ok(warnings) => warnings,
        Err(problems) => problems.0,
    };
    if template["spec"].is_object() {
        found.extend(within(value, broken, others));
    }
    found.into_iter().partition(|problem| problem.severity == Severity::Error)
}

/// Checks a CronJob on its own, before it is stored: what it refers to may come later.
pub fn check_cron(object: &Value) -> (Vec<Problem>, Vec<Problem>) {
    examine_cron(object, &Everything)
}

fn name(object: &Value, report: &mut Findings) {
    let place = Path::root().join("metadata");
    let metadata = At::base(&place);
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    let given = text("name").map(str::to_owned).or_else(|| text("generateName").map(|name| format!("{name}aaaaa")));
    let at = metadata.key("name");
    match given {
        None => report.error(&at, code::REQUIRED, || "metadata.name is required".to_owned()),
        Some(name) if name.len() > MAX_NAME_LENGTH => report.error(&at, code::NAME, || {
            format!(
                "the name '{}' has {} characters, and must not have more than {MAX_NAME_LENGTH}: Jobs add a time to it",
                shape::short(&name),
                name.len()
            )
        }),
        Some(name) => super::name_of(report, &at, "metadata.name", &name),
    }
}

fn times(spec: &Value, at: &At<'_>, report: &mut Findings) {
    let zone = spec["timeZone"].as_str();
    let wrong = match zone {
        Some("") => Some("must not be empty; leave it out for UTC".to_owned()),
        Some(zone) => schedule::zone(zone).err(),
        None => None,
    };
    let zone = zone.filter(|_| wrong.is_none());
    if let Some(why) = wrong {
        report.error(&at.key("timeZone"), code::SCHEDULE, || why);
    }
    let place = at.key("schedule");
    let text = spec["schedule"].as_str().unwrap_or_default();
    if text.is_empty() {
        return report.error_with(&place, code::SCHEDULE, || {
            ("spec.schedule is required".to_owned(), Some("write when it runs, such as `0 6 * * *`".to_owned()))
        });
    }
    if text.contains("TZ") {
        return report.error_with(&place, code::SCHEDULE, || {
            ("a schedule of a CronJob names no zone".to_owned(), Some("write `timeZone`".to_owned()))
        });
    }
    if let Err(why) = Schedule::parse(text, zone, Time::default()) {
        report.error(&place, code::SCHEDULE, || why);
    }
}

/// Checks the Job that it makes. Problems carry their path in the CronJob.
fn within(object: &Value, broken: &[Path], others: &dyn Catalog) -> Vec<Problem> {
    let mut cron = object.clone();
    // Its own name has been looked at.
    cron["metadata"]["name"] = json!("cron");
    let made = child(&cron, "", Time::from_secs(1_700_000_000));
    let home = Path::root().join("spec").join("jobTemplate");
    let inside = broken.iter().filter(|path| path.starts_with(&home));
    let broken: Vec<Path> = inside.map(|path| Path(path.segments().iter().skip(2).cloned().collect())).collect();
    let mut report = Findings::default();
    super::look(&made, &broken, others, &mut report);
    let mut found = match report.verdict() {
        Ok(warnings) => warnings,
        Err(problems) => problems.0,
    };
    for problem in &mut found {
        let Some(path) = &mut problem.path else { continue };
        let rest = path.segments().iter().cloned();
        *path = Path([Segment::from("spec"), Segment::from("jobTemplate")].into_iter().chain(rest).collect());
    }
    found
}
