//! A CronWorkflow's spec, parsed from the object once. All errors are returned at once.

use std::time::Duration;

use octoflow_model::Time;
use serde_json::Value;

use super::Schedule;
use crate::admit::shape::short;

/// Default number of missed times to catch up.
pub const DEFAULT_CAUGHT_UP: usize = 10;

/// Maximum number of schedules: more would make every decision slow, and nobody could read them.
pub const MAX_SCHEDULES: usize = 100;

/// Maximum number of missed times to catch up at once; more would flood the scheduler.
pub const MAX_CAUGHT_UP: usize = 1000;

#[derive(Clone, Debug)]
pub struct Timetable {
    pub name: String,
    pub namespace: String,
    pub created: Option<Time>,
    pub schedules: Vec<Schedule>,
    pub suspended: bool,
    pub concurrency: Concurrency,
    /// Maximum delay after which a missed run may still start.
    pub deadline: Option<Duration>,
    pub catch_up: Option<CatchUp>,
    pub when: Option<String>,
    pub stop: Option<String>,
    pub keep_succeeded: usize,
    pub keep_failed: usize,
}

/// Policy for a time that comes while an earlier run is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    #[default]
    Allow,
    Forbid,
    Replace,
}

/// Policy for missed times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatchUp {
    Skip,
    /// The newest one.
    Latest,
    /// The newest ones, at most so many, oldest first.
    All(usize),
}

impl Timetable {
    /// Parses the object, or returns everything that is wrong with it.
    pub fn read(object: &Value) -> Result<Self, Vec<String>> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let spec = &object["spec"];
        let created = metadata["creationTimestamp"].as_str().and_then(Time::parse);
        let mut wrong = Vec::new();
        let mut schedules = Vec::new();
        let zone = text(&spec["timezone"]);
        let lost = zone.as_deref().and_then(|zone| super::schedule::zone(zone).err());
        // Schedules in an unknown zone would all repeat the error.
        let zoned = if lost.is_some() { None } else { zone.as_deref() };
        wrong.extend(lost);
        let written: Vec<&str> = written(spec).collect();
        if written.is_empty() {
            wrong.push("cron workflow must have at least one schedule".to_owned());
        }
        if written.len() > MAX_SCHEDULES {
            wrong.push(format!("a CronWorkflow has at most {MAX_SCHEDULES} schedules, not {}", written.len()));
        }
        for schedule in written.into_iter().take(MAX_SCHEDULES) {
            match Schedule::parse(schedule, zoned, created.unwrap_or_default()) {
                Ok(schedule) => schedules.push(schedule),
                Err(why) => wrong.push(why),
            }
        }
        let concurrency = match spec["concurrencyPolicy"].as_str().unwrap_or_default() {
            "" | "Allow" => Concurrency::Allow,
            "Forbid" => Concurrency::Forbid,
            "Replace" => Concurrency::Replace,
            other => {
                wrong.push(format!("`{}` is not a valid concurrencyPolicy: Allow, Forbid or Replace", short(other)));
                Concurrency::Allow
            }
        };
        let catch_up = catch_up(&spec["catchUp"]).unwrap_or_else(|why| {
            wrong.push(why);
            None
        });
        let stop = &spec["stopStrategy"];
        let limit = |field: &str, usual: usize| {
            spec[field].as_u64().map_or(usual, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
        };
        let timetable = Self {
            name: text(&metadata["name"]).unwrap_or_default(),
            namespace: text(&metadata["namespace"]).unwrap_or_else(|| "default".to_owned()),
            created,
            schedules,
            suspended: spec["suspend"] == true,
            concurrency,
            deadline: spec["startingDeadlineSeconds"].as_u64().filter(|late| *late > 0).map(Duration::from_secs),
            catch_up,
            when: text(&spec["when"]),
            stop: text(&stop["expression"]).or_else(|| text(&stop["condition"])),
            keep_succeeded: limit("successfulJobsHistoryLimit", 3),
            keep_failed: limit("failedJobsHistoryLimit", 1),
        };
        if wrong.is_empty() { Ok(timetable) } else { Err(wrong) }
    }

    /// Returns the first scheduled time after this one.
    pub fn next_after(&self, time: Time) -> Option<Time> {
        self.schedules.iter().filter_map(|schedule| schedule.next_after(time)).min()
    }

    /// Returns the last scheduled time that is not after this one.
    pub fn latest(&self, time: Time) -> Option<Time> {
        self.schedules.iter().filter_map(|schedule| schedule.latest(time)).max()
    }
}

/// Iterates over the schedules as written: the list, and the single one of older manifests.
pub(crate) fn written(spec: &Value) -> impl Iterator<Item = &str> {
    let list = spec["schedules"].as_array().into_iter().flatten();
    let single = spec.get("schedule").filter(|single| *single != "");
    list.chain(single).filter_map(Value::as_str)
}

fn catch_up(value: &Value) -> Result<Option<CatchUp>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let limit = value["limit"].as_u64().map_or(DEFAULT_CAUGHT_UP, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if limit == 0 || limit > MAX_CAUGHT_UP {
        return Err(format!("spec.catchUp.limit must be from 1 to {MAX_CAUGHT_UP}"));
    }
    match value["policy"].as_str() {
        Some("skip") => Ok(Some(CatchUp::Skip)),
        Some("latest") => Ok(Some(CatchUp::Latest)),
        Some("all") => Ok(Some(CatchUp::All(limit))),
        _ => Err("spec.catchUp.policy must be skip, latest or all".to_owned()),
    }
}
