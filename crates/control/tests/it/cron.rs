//! The cron scheduler, with a clock that the test controls.

use octoflow_control::{
    cron::CronScheduler,
    registry::{DeleteOptions, ListOptions, Registry, WriteOptions, kinds},
};
use octoflow_engine::Command;
use octoflow_model::{RunId, Time};
use serde_json::{Value, json};

use super::{container, open};

fn cron(spec: Value) -> Value {
    let mut object = json!({"metadata": {"name": "c"}, "spec": {"schedules": ["0 * * * *"], "workflowSpec": {
        "entrypoint": "main", "templates": [{"name": "main", "container": container()}]}}});
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

/// A child that runs until it is ended.
fn endless() -> Value {
    json!({"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]})
}

struct Stage {
    dir: tempfile::TempDir,
    registry: Registry,
    keeper: CronScheduler,
}

impl Stage {
    fn new(object: Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new(open(dir.path())).unwrap();
        let kind = kinds::of_key("CronWorkflow").unwrap();
        registry.create(kind, "default", object, &WriteOptions::default()).unwrap();
        let keeper = CronScheduler::new(&registry);
        Self { dir, registry, keeper }
    }

    /// Runs what is due at this time of day; returns the next time.
    fn at(&mut self, clock: &str) -> Option<String> {
        let now = Time::parse(&format!("2030-05-01T{clock}Z")).unwrap();
        let wake = self.keeper.run_due(now).unwrap();
        assert!(self.keeper.failures().is_empty(), "{:?}", self.keeper.failures());
        wake.map(|wake| wake.to_string()[11..19].to_owned())
    }

    fn cron(&self) -> Value {
        self.registry.get(kinds::of_key("CronWorkflow").unwrap(), "default", "c").unwrap()
    }

    fn edit(&self, edit: impl Fn(&mut Value)) {
        let change = |before: &Value| {
            let mut after = before.clone();
            edit(&mut after);
            Ok(after)
        };
        let kind = kinds::of_key("CronWorkflow").unwrap();
        self.registry.update(kind, "default", "c", &WriteOptions::default(), change).unwrap();
    }

    /// Name and phase of every run, the oldest first.
    fn children(&self) -> Vec<(String, String)> {
        let listing = self.registry.list(kinds::of_key("Workflow").unwrap(), &ListOptions::default()).unwrap();
        let mut found: Vec<_> = listing
            .items
            .iter()
            .map(|item| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                (text(&item["metadata"]["name"]), text(&item["status"]["phase"]))
            })
            .collect();
        found.sort();
        found
    }

    fn phases(&self) -> Vec<String> {
        self.children().into_iter().map(|(_, phase)| phase).collect()
    }

    fn run(&self, clock: &str) -> RunId {
        let seconds = Time::parse(&format!("2030-05-01T{clock}Z")).unwrap().seconds();
        self.registry.find_run(crate::registry::kind("Workflow"), "default", &format!("c-{seconds}")).unwrap().run
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
        let Self { dir, registry, keeper } = self;
        drop((registry, keeper));
        let registry = Registry::new(open(dir.path())).unwrap();
        registry.restore_all().unwrap();
        let keeper = CronScheduler::new(&registry);
        Self { dir, registry, keeper }
    }
}

fn resume() -> Command {
    Command::Resume { selector: None, supplied: Default::default() }
}

#[test]
fn a_time_that_comes_starts_one_run_that_says_whose_it_is() {
    let mut stage = Stage::new(cron(json!({"workflowMetadata": {"labels": {"team": "data"}}})));
    assert_eq!(stage.at("09:59:30").as_deref(), Some("10:00:00"));
    assert_eq!(stage.at("10:00:00").as_deref(), Some("11:00:00"));
    let run = stage.run("10:00:00");
    stage.finish(run);
    stage.at("10:00:01");
    stage.at("10:00:02");
    assert_eq!(stage.phases(), ["Succeeded"]);
    let object = stage.registry.controller().object(run).unwrap();
    let (metadata, cron) = (&object["metadata"], stage.cron());
    assert_eq!(metadata["annotations"]["workflows.argoproj.io/scheduled-time"], "2030-05-01T10:00:00Z");
    assert_eq!(metadata["labels"]["workflows.argoproj.io/cron-workflow"], "c");
    assert_eq!(metadata["labels"]["team"], "data");
    assert_eq!(metadata["ownerReferences"][0]["uid"], cron["metadata"]["uid"]);
    let status = &cron["status"];
    assert_eq!(status["lastScheduledTime"], "2030-05-01T10:00:00Z");
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(1), &json!(0)));
    assert_eq!((&status["phase"], &status["active"]), (&json!("Active"), &json!([])));
    stage.registry.close().unwrap();
}

#[test]
fn j05_forbid_keeps_one_allow_adds_one_and_replace_keeps_the_newer() {
    for (policy, expected) in
        [("Forbid", &["Running"][..]), ("Allow", &["Running", "Running"]), ("Replace", &["Failed", "Running"])]
    {
        let mut stage = Stage::new(cron(json!({"concurrencyPolicy": policy, "workflowSpec": endless()})));
        stage.at("09:59:30");
        stage.at("10:00:00");
        stage.at("10:59:30");
        stage.at("11:00:00");
        if policy == "Replace" {
            stage.finish(stage.run("10:00:00"));
        }
        stage.at("11:00:01");
        assert_eq!(stage.phases(), expected, "{policy}");
        let active = expected.iter().filter(|phase| **phase == "Running").count();
        assert_eq!(stage.cron()["status"]["active"].as_array().unwrap().len(), active, "{policy}");
        stage.registry.close().unwrap();
    }
}

#[test]
fn j06_only_so_many_finished_runs_are_kept() {
    let limits = json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1, "workflowSpec": endless()});
    let mut stage = Stage::new(cron(limits));
    stage.at("05:59:30");
    for hour in 6..12 {
        stage.at(&format!("{hour:02}:00:00"));
        let command = if hour % 2 == 0 { resume() } else { Command::Terminate };
        stage.end(&format!("{hour:02}:00:00"), command);
        stage.at(&format!("{hour:02}:59:30"));
    }
    assert_eq!(stage.phases(), ["Succeeded", "Succeeded", "Failed"], "{:?}", stage.children());
    stage.run("08:00:00");
    stage.run("10:00:00");
    stage.run("11:00:00");
    let status = &stage.cron()["status"];
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(3), &json!(3)), "what is gone still counts");
    stage.registry.close().unwrap();
}

#[test]
fn j07_a_stop_condition_that_is_met_stops_it_for_good() {
    let mut stage = Stage::new(cron(json!({"stopStrategy": {"expression": "cronworkflow.succeeded >= 1"}})));
    stage.at("09:59:30");
    stage.at("10:00:00");
    stage.finish(stage.run("10:00:00"));
    assert_eq!(stage.at("10:00:01"), None);
    let object = stage.cron();
    assert_eq!(object["status"]["phase"], "Stopped");
    assert_eq!(object["metadata"]["labels"]["workflows.argoproj.io/completed"], "true");
    assert_eq!((&object["status"]["succeeded"], &object["status"]["failed"]), (&json!(1), &json!(0)));
    let mut stage = stage.restart();
    stage.at("10:59:30");
    stage.at("11:00:00");
    assert_eq!(stage.children().len(), 1);
    stage.registry.close().unwrap();
}

#[test]
fn j08_a_run_starts_at_the_minute_of_its_zone() {
    let mut stage = Stage::new(cron(json!({"schedules": ["30 6 * * *"], "timezone": "Pacific/Niue"})));
    assert_eq!(stage.at("06:30:00").as_deref(), Some("17:30:00"));
    stage.at("17:29:30");
    assert!(stage.children().is_empty());
    stage.at("17:30:00");
    assert_eq!(stage.children().len(), 1);
    stage.registry.close().unwrap();
}

#[test]
fn j09_a_schedule_that_is_none_is_a_condition_and_starts_nothing() {
    for (schedules, part) in [(json!(["12737 * * * *"]), "the minute cannot be"), (json!([]), "at least one schedule")]
    {
        let mut stage = Stage::new(cron(json!({"schedules": schedules})));
        assert_eq!(stage.at("10:00:00"), None);
        let condition = stage.cron()["status"]["conditions"][0].clone();
        assert_eq!((&condition["type"], &condition["status"]), (&json!("SpecError"), &json!("True")));
        assert!(condition["message"].as_str().unwrap().contains(part), "{condition}");
        assert!(stage.children().is_empty());
        stage.edit(|object| object["spec"]["schedules"] = json!(["0 * * * *"]));
        assert_eq!(stage.at("10:30:00").as_deref(), Some("11:00:00"));
        assert_eq!(stage.cron()["status"]["conditions"], json!([]));
        stage.at("11:00:00");
        assert_eq!(stage.children().len(), 1);
        stage.registry.close().unwrap();
    }
}

#[test]
fn j10_a_time_missed_while_the_controller_was_closed_runs_once() {
    let mut stage = Stage::new(cron(json!({"startingDeadlineSeconds": 1800})));
    stage.at("09:59:30");
    stage.at("10:00:00");
    stage.finish(stage.run("10:00:00"));
    let mut stage = stage.restart();
    stage.at("13:10:00");
    stage.finish(stage.run("13:00:00"));
    assert_eq!(stage.children().len(), 2, "the newest only");
    let mut stage = stage.restart();
    stage.at("13:15:00");
    assert_eq!(stage.children().len(), 2);
    assert_eq!(stage.cron()["status"]["succeeded"], 2);
    stage.registry.close().unwrap();
}

#[test]
fn a_run_that_a_crash_kept_out_of_the_status_is_noted_and_counted() {
    let mut stage = Stage::new(cron(json!({"workflowSpec": endless()})));
    stage.at("09:59:30");
    let before = stage.cron()["status"].clone();
    stage.at("10:00:00");
    // Simulates a crash between starting the run and recording it.
    stage.edit(move |object| object["status"] = before.clone());
    let mut stage = stage.restart();
    stage.at("10:00:30");
    assert_eq!(stage.cron()["status"]["active"].as_array().unwrap().len(), 1);
    stage.end("10:00:00", resume());
    stage.at("10:01:00");
    let status = stage.cron()["status"].clone();
    assert_eq!((&status["succeeded"], &status["lastScheduledTime"]), (&json!(1), &json!("2030-05-01T10:00:00Z")));
    stage.registry.close().unwrap();
}

#[test]
fn no_time_has_two_runs_when_the_clock_goes_back_also_after_a_restart() {
    let mut stage = Stage::new(cron(json!({"successfulJobsHistoryLimit": 0, "catchUp": {"policy": "all"}})));
    let tell = |stage: &mut Stage| {
        for clock in ["09:59:30", "10:00:00", "10:30:00", "10:59:30", "11:00:00", "11:30:00"] {
            stage.at(clock);
        }
    };
    tell(&mut stage);
    let counted = |stage: &mut Stage| {
        for (name, _) in stage.children() {
            stage.finish(stage.registry.find_run(crate::registry::kind("Workflow"), "default", &name).unwrap().run);
        }
        stage.at("11:30:01");
        stage.cron()["status"]["succeeded"].clone()
    };
    let first = counted(&mut stage);
    tell(&mut stage);
    assert_eq!(counted(&mut stage), first, "nothing ran again, though the runs are gone");
    let mut stage = stage.restart();
    tell(&mut stage);
    assert_eq!(counted(&mut stage), first);
    stage.registry.close().unwrap();
}

#[test]
fn who_is_suspended_waits_and_catches_nothing_up_when_resumed() {
    let mut stage = Stage::new(cron(json!({"suspend": true, "catchUp": {"policy": "latest"}})));
    assert_eq!(stage.at("09:59:30"), None);
    stage.at("12:30:00");
    stage.edit(|object| object["spec"]["suspend"] = json!(false));
    assert_eq!(stage.at("14:30:00").as_deref(), Some("15:00:00"));
    assert!(stage.children().is_empty());
    stage.at("15:00:00");
    assert_eq!(stage.children().len(), 1);
    stage.registry.close().unwrap();
}

#[test]
fn what_cannot_run_is_told_and_what_is_deleted_runs_no_more() {
    let spec = json!({"entrypoint": "main", "workflowTemplateRef": {"name": "later"}});
    let mut stage = Stage::new(cron(json!({"workflowSpec": spec})));
    stage.at("09:59:30");
    stage.at("10:00:00");
    let condition = stage.cron()["status"]["conditions"][0].clone();
    assert_eq!(condition["type"], "SpecError");
    assert!(condition["message"].as_str().unwrap().contains("later"), "{condition}");
    let template =
        json!({"metadata": {"name": "later"}, "spec": {"templates": [{"name": "main", "container": container()}]}});
    stage
        .registry
        .create(kinds::of_key("WorkflowTemplate").unwrap(), "default", template, &WriteOptions::default())
        .unwrap();
    stage.at("10:59:30");
    stage.at("11:00:00");
    assert_eq!(stage.children().len(), 1);
    assert_eq!(stage.cron()["status"]["conditions"], json!([]));
    let kind = kinds::of_key("CronWorkflow").unwrap();
    stage.registry.delete(kind, "default", "c", &DeleteOptions::default()).unwrap();
    assert_eq!(stage.at("11:59:30"), None);
    stage.at("12:00:00");
    assert_eq!(stage.children().len(), 1);
    assert!(stage.registry.controller().store().reader().unwrap().tick_owners().unwrap().is_empty());
    stage.registry.close().unwrap();
}
