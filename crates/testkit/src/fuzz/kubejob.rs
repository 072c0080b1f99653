//! Kubernetes' Jobs and CronJobs by any spelling: what is let in runs the same way twice, and what a CronJob makes is let in.

use octoflow_engine::{admit::Catalog, kinds};
use octoflow_manifest::{Limits, read};
use octoflow_model::{
    Time,
    kubejob::{API_VERSION, CRON_KIND, KIND},
};
use serde_json::json;

use super::target::run_as;
use crate::sim::Draw;

const DAWN: Time = Time(1_700_000_000_000_000);

struct Nothing;

impl Catalog for Nothing {
    fn has_object(&self, _: &'static kinds::Kind, _: &str, _: &str) -> bool {
        true
    }
}

pub(super) fn job(bytes: &[u8]) -> Result<(), String> {
    run_as(API_VERSION, KIND, bytes)
}

/// A CronJob: what is let in has times, and each of its Jobs is let in too.
pub(super) fn cron_job(bytes: &[u8]) -> Result<(), String> {
    let kind = kinds::of_key(CRON_KIND).ok_or("there are no CronJobs")?;
    let (check, row) = kind.examine.zip(kind.schedule).ok_or("CronJobs make nothing")?;
    for mut object in read("fuzz", bytes, &Limits::default()).into_iter().flatten().map(|document| document.value) {
        if !object.is_object() {
            continue;
        }
        object["apiVersion"] = json!(API_VERSION);
        object["kind"] = json!(CRON_KIND);
        let (errors, _) = check(&object, &Nothing);
        if errors.iter().any(|problem| problem.code.is_empty()) {
            return Err("refused without a code".to_owned());
        }
        if !errors.is_empty() {
            continue;
        }
        (row.timetable)(&object).map_err(|why| format!("it is let in and has no times: {}", why.join("; ")))?;
        let made = (row.child)(&object, "uid", DAWN);
        if made != (row.child)(&object, "uid", DAWN) {
            return Err("one time makes two Jobs".to_owned());
        }
        if let Err(problems) = octoflow_engine::admit::examine(&made, &Nothing) {
            return Err(format!("the CronJob is let in and its Job is not: {problems}"));
        }
        let mut status = (row.read)(&object);
        status.add_active(row.runs, "default", "j", "uid");
        (row.write)(&status, &mut object);
        if (row.read)(&object).active != status.active {
            return Err("what its status says is not read back".to_owned());
        }
    }
    Ok(())
}

pub(super) fn random_job(draw: &mut Draw) -> String {
    crate::sim::random_kube_job(draw).to_string()
}

pub(super) fn random_cron_job(draw: &mut Draw) -> String {
    let minute = draw.pick(&["*", "*/5", "0", "0,30", "61", "5-1", ""]);
    let hour = draw.pick(&["*", "2", "1-5/2", "24"]);
    let job = crate::sim::random_kube_job(draw);
    let mut spec = json!({"schedule": format!("{minute} {hour} * * *"), "jobTemplate": {"spec": job["spec"]}});
    if draw.chance(30) {
        spec["timeZone"] = json!(draw.pick(&["Europe/Zurich", "UTC", "Local", "Mars/Base", ""]));
    }
    if draw.chance(30) {
        spec["concurrencyPolicy"] = json!(draw.pick(&["Allow", "Forbid", "Replace", "Never"]));
    }
    if draw.chance(30) {
        spec["startingDeadlineSeconds"] = json!(draw.below(100));
    }
    json!({"metadata": {"name": "c"}, "spec": spec}).to_string()
}
