//! CronJobs in the cron scheduler, with a clock that the test controls.

use octoflow_control::{
    cron::CronScheduler,
    registry::{ListOptions, Registry, WriteOptions, kinds},
};
use octoflow_engine::Command;
use octoflow_model::{RunId, Time};
use serde_json::{Value, json};

use super::{container, open};

/// A CronJob whose Jobs stay open: they are suspended.
fn cron(policy: &str) -> Value {
    let mut container = container();
    container["name"] = json!("main");
    json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": {
        "schedule": "0 * * * *", "concurrencyPolicy": policy, "startingDeadlineSeconds": 60,
        "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "suspend": true, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }},
    }})
}

/// Runs what is due at two hours; returns the CronJob after each.
fn two_hours(policy: &str) -> (Registry, tempfile::TempDir, [Value; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new(open(dir.path())).unwrap();
    let kind = kinds::of_key("CronJob").unwrap();
    registry.create(kind, "default", cron(policy), &WriteOptions::default()).unwrap();
    let mut scheduler = CronScheduler::new(&registry);
    let after = ["12:00:05", "13:00:05"].map(|clock| {
        scheduler.run_due(Time::parse(&format!("2030-05-01T{clock}Z")).unwrap()).unwrap();
        assert!(scheduler.failures().is_empty(), "{:?}", scheduler.failures());
        registry.get(kind, "default", "c").unwrap()
    });
    (registry, dir, after)
}

fn name_at(clock: &str) -> String {
    format!("c-{}", Time::parse(&format!("2030-05-01T{clock}Z")).unwrap().seconds() / 60)
}

#[test]
fn a_job_is_made_for_a_time_and_belongs_to_its_cron_job() {
    let (registry, _dir, [first, second]) = two_hours("Allow");
    assert_eq!(first["status"]["lastScheduleTime"], "2030-05-01T12:00:00Z", "{first:#}");
    let active = first["status"]["active"].as_array().unwrap();
    assert_eq!((active.len(), &active[0]["kind"], &active[0]["name"]), (1, &json!("Job"), &json!(name_at("12:00:00"))));
    assert_eq!(second["status"]["active"].as_array().unwrap().len(), 2, "{second:#}");
    let job = registry.get(kinds::of_key("KubeJob").unwrap(), "default", &name_at("12:00:00")).unwrap();
    assert_eq!(job["metadata"]["ownerReferences"][0]["uid"], first["metadata"]["uid"]);
    assert_eq!(job["metadata"]["labels"]["a"], "b");
}

#[test]
fn forbid_skips_a_time_while_a_job_is_active() {
    let (_registry, _dir, [_, second]) = two_hours("Forbid");
    let active = second["status"]["active"].as_array().unwrap();
    assert_eq!((active.len(), &active[0]["name"]), (1, &json!(name_at("12:00:00"))), "{second:#}");
    assert_eq!(second["status"]["lastScheduleTime"], "2030-05-01T12:00:00Z");
}

#[test]
fn a_cron_job_that_makes_no_sense_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new(open(dir.path())).unwrap();
    let kind = kinds::of_key("CronJob").unwrap();
    let mut wrong = cron("Allow");
    wrong["spec"]["schedule"] = json!("99 * * * *");
    wrong["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    let told = registry.create(kind, "default", wrong, &WriteOptions::default()).unwrap_err().to_string();
    for place in ["spec.schedule", "spec.jobTemplate.spec.template.spec.restartPolicy"] {
        assert!(told.contains(place), "{place}: {told}");
    }
    assert!(registry.get(kind, "default", "c").is_err());
}

/// A CronJob with a scheduler, whose Jobs wait until the test resumes or ends them.
struct Stage {
    dir: tempfile::TempDir,
    registry: Registry,
    scheduler: CronScheduler,
}

impl Stage {
    fn new(spec: Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new(open(dir.path())).unwrap();
        let mut object = cron("Allow");
        for (key, value) in spec.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        let kind = kinds::of_key("CronJob").unwrap();
        registry.create(kind, "default", object, &WriteOptions::default()).unwrap();
        let scheduler = CronScheduler::new(&registry);
        Self { dir, registry, scheduler }
    }

    /// Runs what is due at this time of day.
    fn at(&mut self, clock: &str) {
        self.scheduler.run_due(Time::parse(&format!("2030-05-01T{clock}Z")).unwrap()).unwrap();
        assert!(self.scheduler.failures().is_empty(), "{:?}", self.scheduler.failures());
    }

    fn status(&self) -> Value {
        self.registry.get(kinds::of_key("CronJob").unwrap(), "default", "c").unwrap()["status"].clone()
    }

    fn edit(&self, field: &str, value: &Value) {
        let change = |before: &Value| {
            let mut after = before.clone();
            after["spec"][field] = value.clone();
            Ok(after)
        };
        let kind = kinds::of_key("CronJob").unwrap();
        self.registry.update(kind, "default", "c", &WriteOptions::default(), change).unwrap();
    }

    /// Names of the Jobs, the oldest first.
    fn jobs(&self) -> Vec<String> {
        let listing = self.registry.list(kinds::of_key("KubeJob").unwrap(), &ListOptions::default()).unwrap();
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut names: Vec<String> = listing.items.iter().map(name).collect();
        names.sort();
        names
    }

    fn run(&self, clock: &str) -> RunId {
        self.registry.find_run(crate::registry::kind("KubeJob"), "default", &name_at(clock)).unwrap().run
    }

    fn finish(&self, run: RunId) {
        let facts = self.registry.controller().watch(run);
        while facts.recv().is_ok() {}
    }

    fn end(&self, clock: &str, command: Command) {
        let run = self.run(clock);
        self.registry.command(run, command).unwrap();
        self.finish(run);
    }

    fn restart(self) -> Self {
        self.registry.close().unwrap();
        let Self { dir, registry, scheduler } = self;
        drop((registry, scheduler));
        let registry = Registry::new(open(dir.path())).unwrap();
        registry.restore_all().unwrap();
        let scheduler = CronScheduler::new(&registry);
        Self { dir, registry, scheduler }
    }
}

fn resume() -> Command {
    Command::Resume { selector: None, supplied: Default::default() }
}

#[test]
fn replace_ends_the_job_before_the_new_one() {
    let mut stage = Stage::new(json!({"concurrencyPolicy": "Replace"}));
    stage.at("11:59:30");
    stage.at("12:00:00");
    stage.at("12:59:30");
    stage.at("13:00:00");
    if stage.jobs().len() == 2 {
        stage.finish(stage.run("12:00:00"));
    }
    stage.at("13:00:01");
    let status = stage.status();
    let active: Vec<&Value> = status["active"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(active, [&json!(name_at("13:00:00"))], "{status:#}");
    stage.registry.close().unwrap();
}

#[test]
fn only_so_many_finished_jobs_are_kept_and_the_last_success_is_told() {
    let limits = json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1});
    let mut stage = Stage::new(limits);
    stage.at("05:59:30");
    for hour in 6..12 {
        stage.at(&format!("{hour:02}:00:00"));
        let command = if hour % 2 == 0 { resume() } else { Command::Terminate };
        stage.end(&format!("{hour:02}:00:00"), command);
        stage.at(&format!("{hour:02}:59:30"));
    }
    let kept: Vec<String> = ["08:00:00", "10:00:00", "11:00:00"].map(name_at).to_vec();
    assert_eq!(stage.jobs(), kept);
    let status = stage.status();
    assert!(status["lastSuccessfulTime"].is_string(), "{status:#}");
    assert_eq!(status["lastScheduleTime"], "2030-05-01T11:00:00Z");
    stage.registry.close().unwrap();
}

#[test]
fn the_latest_time_that_was_missed_runs_once_within_its_deadline() {
    let mut stage = Stage::new(json!({"startingDeadlineSeconds": 1800}));
    stage.at("09:59:30");
    stage.at("10:00:00");
    let mut stage = stage.restart();
    stage.at("13:10:00");
    assert_eq!(stage.jobs(), [name_at("10:00:00"), name_at("13:00:00")], "the newest only");
    let mut stage = stage.restart();
    stage.at("13:15:00");
    assert_eq!(stage.jobs().len(), 2);
    let mut late = stage.restart();
    late.at("14:40:00");
    assert_eq!(late.jobs().len(), 2, "its deadline has passed");
    late.registry.close().unwrap();
}

#[test]
fn one_that_is_suspended_makes_no_job_until_it_is_resumed() {
    let mut stage = Stage::new(json!({"suspend": true}));
    stage.at("11:59:30");
    stage.at("12:00:05");
    assert!(stage.jobs().is_empty());
    stage.edit("suspend", &json!(false));
    stage.at("12:30:00");
    assert!(stage.jobs().is_empty(), "what was due meanwhile is not made up for");
    stage.at("13:00:00");
    assert_eq!(stage.jobs(), [name_at("13:00:00")]);
    stage.registry.close().unwrap();
}

#[test]
fn a_job_is_made_at_the_minute_of_its_zone() {
    let mut stage = Stage::new(json!({"schedule": "30 6 * * *", "timeZone": "Pacific/Niue"}));
    stage.at("06:30:00");
    stage.at("17:29:30");
    assert!(stage.jobs().is_empty());
    stage.at("17:30:00");
    assert_eq!(stage.jobs(), [name_at("17:30:00")]);
    stage.registry.close().unwrap();
}
