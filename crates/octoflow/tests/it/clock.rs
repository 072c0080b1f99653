//! The date is changed while a server works: nothing ends early, nothing takes longer, and no duration is negative. The
//! clock is that of the server and its spawner alone (libfaketime); the machine's own is unchanged.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use octoflow_model::Time;
use serde_json::{Value, json};

use crate::wire::{
    http::call,
    server::{ANYWHERE, Server},
    waiting::eventually,
};

const RUNS: &str = "/api/v1/workflows/default";
const HOUR: i64 = 3600;
const TEN_YEARS: i64 = 10 * 365 * 24 * HOUR;
/// How long a task that does not listen has to end by itself, and how long it waits to be tried again.
const GRACE: Duration = Duration::from_secs(5);
const BACK_OFF: Duration = Duration::from_secs(3);
/// Far less than any jump, far more than anything here takes.
const LONG: Duration = Duration::from_secs(600);

/// A clock that can be set.
struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// `None` if the library is not installed.
    #[expect(clippy::print_stderr, reason = "nobody should miss that this was skipped")]
    fn new(dir: &Path) -> Option<Self> {
        let found = Command::new("sh").args(["-c", "ls /usr/lib/*/faketime/libfaketimeMT.so.1"]).output().unwrap();
        let library = String::from_utf8_lossy(&found.stdout).lines().next().map(PathBuf::from);
        if library.is_none() {
            eprintln!("SKIPPED: faketime is not installed; `cargo xtask setup` does it");
            assert!(std::env::var_os("CI").is_none(), "CI has no faketime: run `cargo xtask setup`");
        }
        let clock = Self { library: library?, file: dir.join("date") };
        clock.set(0);
        Some(clock)
    }

    /// So many seconds ahead of the machine's.
    fn set(&self, seconds: i64) {
        let fresh = self.file.with_extension("new");
        fs::write(&fresh, format!("{seconds:+}")).unwrap();
        fs::rename(fresh, &self.file).unwrap();
    }

    fn server(&self, data_dir: &Path) -> Server {
        let mut command = Server::command(ANYWHERE, data_dir, &[]);
        command.env("LD_PRELOAD", &self.library);
        command.env("FAKETIME_TIMESTAMP_FILE", &self.file).env("FAKETIME_NO_CACHE", "1");
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
        // Only the date: a sleep until a time takes as long as that takes.
        command.env("FAKETIME_DONT_RESET", "1");
        Server::launch(&mut command)
    }
}

/// A pause, a task with a time limit, one that is tried again after a while, and a limit for the whole.
fn workflow(name: &str, pause: u64) -> Value {
    let leaf = |name: &str, script: &str| json!({"name": name, "container": {"image": "bash", "command": ["bash", "-c"], "args": [script]}});
    let mut work = leaf("work", "sleep 4");
    work["activeDeadlineSeconds"] = json!(120);
    let mut again = leaf("again", "[ {{retries}} = 1 ]");
    again["retryStrategy"] =
        json!({"limit": "2", "retryPolicy": "Always", "backoff": {"duration": format!("{}s", BACK_OFF.as_secs())}});
    let step = |name: &str| json!({"name": name, "template": name});
    json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name},
        "spec": {"entrypoint": "main", "activeDeadlineSeconds": 300, "templates": [
            {"name": "main", "steps": [[step("pause"), step("work"), step("again")], [step("last")]]},
            {"name": "pause", "suspend": {"duration": pause.to_string()}},
            work, again, leaf("last", "true"),
        ]},
    }})
}

/// A task that does not listen when it is told to end.
fn stubborn() -> Value {
    let script = "trap '' TERM; while :; do sleep 0.2; done";
    json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "stubborn"},
        "spec": {"entrypoint": "main", "templates": [
            {"name": "main", "terminationGracePeriodSeconds": GRACE.as_secs(),
                "container": {"image": "bash", "command": ["bash", "-c"], "args": [script]}},
        ]},
    }})
}

fn submit(server: &Server, workflow: &Value) {
    let answer = call(server.address, "POST", RUNS, Some(workflow)).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
}

fn get(server: &Server, name: &str) -> Value {
    call(server.address, "GET", &format!("{RUNS}/{name}"), None).unwrap().body
}

fn has_node(server: &Server, name: &str, wanted: impl Fn(&Value) -> bool) -> bool {
    get(server, name)["status"]["nodes"].as_object().is_some_and(|nodes| nodes.values().any(wanted))
}

fn started(server: &Server, name: &str) {
    eventually("its tasks run", || has_node(server, name, |node| node["type"] == "Pod" && node["phase"] == "Running"));
}

/// Waits until one task runs and another one waits to be tried again.
fn under_way(server: &Server, name: &str) {
    started(server, name);
    eventually("one waits to be tried again", || {
        has_node(server, name, |node| node["displayName"] == "again(0)" && node["phase"] == "Failed")
    });
}

/// Waits for the end, which must be a good one.
fn ended(server: &Server, name: &str) -> Value {
    let mut run = Value::Null;
    eventually("it is over", || {
        run = get(server, name);
        matches!(run["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Error"))
    });
    assert_eq!(run["status"]["phase"], "Succeeded", "{run:#}");
    run
}

fn took(of: &Value) -> Duration {
    let time = |field: &str| Time::parse(of[field].as_str().unwrap_or_default()).unwrap();
    assert!(time("finishedAt") >= time("startedAt"), "it took less than no time: {of:#}");
    time("finishedAt").since(time("startedAt"))
}

/// Checks that every node's duration is right.
fn judge(run: &Value, pause: u64) {
    for node in run["status"]["nodes"].as_object().unwrap().values() {
        let took = took(node);
        assert!(took < LONG, "{} took {took:?}: {run:#}", node["displayName"]);
        if node["displayName"] == "pause" {
            assert!(took >= Duration::from_secs(pause), "the pause ended after {took:?}: {run:#}");
        }
    }
    assert!(took(&run["status"]) < LONG, "{run:#}");
    let time = |node: &str, field: &str| {
        let nodes = run["status"]["nodes"].as_object().unwrap();
        let found = nodes.values().find(|found| found["displayName"] == node).unwrap();
        Time::parse(found[field].as_str().unwrap_or_default()).unwrap()
    };
    let (failed, again) = (time("again(0)", "finishedAt"), time("again(1)", "startedAt"));
    assert!(again >= failed, "it was tried again before it had failed: {run:#}");
    // Times are shown in whole seconds.
    let waited = again.since(failed) + Duration::from_secs(1);
    assert!(waited >= BACK_OFF && waited < LONG, "it waited {waited:?} to be tried again: {run:#}");
}

/// Stops what does not listen, changes the date at once, and checks that it has its time all the same.
fn grace(server: &Server, jump: impl Fn()) {
    let told = Instant::now();
    let answer = call(server.address, "PUT", &format!("{RUNS}/stubborn/stop"), Some(&json!({}))).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    jump();
    let mut run = Value::Null;
    eventually("it is killed", || {
        run = get(server, "stubborn");
        run["status"]["phase"] == "Failed"
    });
    let had = told.elapsed();
    assert!(had >= GRACE && had < GRACE * 6, "it had {had:?} to end: {run:#}");
    assert!(took(&run["status"]) < LONG, "{run:#}");
}

/// Seconds since the epoch by the machine's clock.
fn date() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn jumps(by: i64) {
    let place = tempfile::tempdir().unwrap();
    let Some(clock) = Clock::new(place.path()) else { return };
    let data_dir = place.path().join("data");
    let mut server = clock.server(&data_dir);
    // The date is set while it runs.
    let began = Instant::now();
    submit(&server, &stubborn());
    started(&server, "stubborn");
    submit(&server, &workflow("during", 6));
    under_way(&server, "during");
    grace(&server, || clock.set(by));
    let run = ended(&server, "during");
    assert!(began.elapsed() >= Duration::from_secs(6), "it ended early: {run:#}");
    judge(&run, 6);
    // What begins now carries the date of now.
    let began = Instant::now();
    submit(&server, &workflow("after", 8));
    let created = Time::parse(get(&server, "after")["metadata"]["creationTimestamp"].as_str().unwrap()).unwrap();
    assert!((created.seconds() - date() - by).abs() < 300, "created at {created}");
    under_way(&server, "after");
    // The date is set back while the server is down.
    server.kill();
    clock.set(0);
    let mut server = clock.server(&data_dir);
    let run = ended(&server, "after");
    assert!(began.elapsed() >= Duration::from_secs(8), "it ended early: {run:#}");
    judge(&run, 8);
    server.stop();
}

#[test]
fn an_hour_ahead_ends_nothing_early() {
    jumps(HOUR);
}

#[test]
fn an_hour_back_makes_nothing_last_longer() {
    jumps(-HOUR);
}

#[test]
fn ten_years_ahead_end_nothing_early() {
    jumps(TEN_YEARS);
}

#[test]
fn a_schedule_runs_once_for_each_time_also_when_the_clock_is_set_back() {
    let place = tempfile::tempdir().unwrap();
    let Some(clock) = Clock::new(place.path()) else { return };
    let mut server = clock.server(&place.path().join("data"));
    let cron = json!({"cronWorkflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "metadata": {"name": "each"},
        "spec": {"schedules": ["* * * * *"], "concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 1000,
            "workflowSpec": {"entrypoint": "main", "templates": [
                {"name": "main", "container": {"image": "bash", "command": ["true"]}}]}},
    }});
    let answer = call(server.address, "POST", "/api/v1/cron-workflows/default", Some(&cron)).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    let times = |server: &Server| -> Vec<String> {
        let listed = call(server.address, "GET", RUNS, None).unwrap().body;
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        let nominal = |run: &Value| run["metadata"]["annotations"]["workflows.argoproj.io/scheduled-time"].clone();
        items.iter().map(|run| nominal(run).as_str().unwrap_or_default().to_owned()).collect()
    };
    let tell = |server: &Server, verb: &str| {
        let path = format!("/api/v1/cron-workflows/default/each/{verb}");
        let told = call(server.address, "PUT", &path, Some(&json!({}))).unwrap();
        assert_eq!(told.status, 200, "{}", told.body);
    };
    // The same full minute comes three times. A change makes the cron scheduler check the clock at once.
    let target = date() / 60 * 60 + 600;
    for round in 0..3 {
        clock.set(target - 2 - date());
        tell(&server, "suspend");
        tell(&server, "resume");
        if round == 0 {
            eventually("its time comes", || !times(&server).is_empty());
        } else {
            std::thread::sleep(Duration::from_secs(4));
        }
        let due = Time::from_secs(target).to_string();
        let found = times(&server);
        assert_eq!(found.iter().filter(|time| **time == due).count(), 1, "{found:?}");
    }
    clock.set(TEN_YEARS);
    tell(&server, "suspend");
    tell(&server, "resume");
    tell(&server, "suspend");
    let mut found = times(&server);
    let all = found.len();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), all, "a time came twice: {found:?}");
    assert!(all < 10, "ten years that passed at once started {all} runs");
    server.stop();
}
