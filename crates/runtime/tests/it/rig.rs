//! Shared test setup: a runtime in a directory of its own, small tasks, and waiting for reports.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use octoflow_model::{
    ids::{AttemptId, NodeIx, RunId},
    order::{End, Exit, Order, Report},
    task::{Task, TaskContainer},
};
use octoflow_runtime::{
    logs::{Logs, Stream},
    port::Runtime as _,
    process::{self, Config, Isolation, ProcessRuntime},
};
use tempfile::TempDir;

/// Timeout, long enough for a machine that is busy with other things; reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says loudly that a test had nothing to check. In CI that is a failure: there the machine must allow everything.
pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "nothing was checked: {why}");
    eprintln!("SKIPPED: {why}");
}

pub(crate) struct Rig {
    pub(crate) dir: Arc<TempDir>,
    pub(crate) runtime: Option<ProcessRuntime>,
    reports: Receiver<Vec<Report>>,
    heard: HashMap<AttemptId, Vec<Report>>,
    next: u32,
    pub(crate) isolated: bool,
}

pub(crate) fn config(dir: &Path) -> Config {
    Config::new(dir, std::env::current_exe().unwrap())
}

/// Returns a directory for test data: beside the build, or where the environment says.
pub(crate) fn fresh_dir() -> TempDir {
    let chosen = std::env::var_os("OCTOFLOW_TEST_DIR").map(PathBuf::from);
    tempfile::tempdir_in(chosen.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into())).unwrap()
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// Returns a runtime without isolation.
    pub(crate) fn plain() -> Self {
        Self::with(|config| config.isolation = Isolation::None)
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::in_dir(Arc::new(fresh_dir()), change)
    }

    pub(crate) fn in_dir(dir: Arc<TempDir>, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config(dir.path());
        change(&mut config);
        let wanted = config.isolation == Isolation::Overlay;
        let (sender, reports) = mpsc::channel();
        let (runtime, notices) = process::open(config, Box::new(move |batch| drop(sender.send(batch)))).unwrap();
        let isolated = wanted && notices.is_empty();
        for notice in notices {
            eprintln!("{}", notice.0);
        }
        Self { dir, runtime: Some(runtime), reports, heard: HashMap::new(), next: 0, isolated }
    }

    /// Opens a new engine in the same directory, after the old one has ended in the given way.
    pub(crate) fn reopen(mut self, goodbye: bool) -> Self {
        let runtime = self.runtime.take().unwrap();
        if goodbye {
            runtime.shutdown();
        } else {
            drop(runtime);
        }
        let next = self.next;
        let mut rig = Self::in_dir(Arc::clone(&self.dir), |_| {});
        rig.next = next;
        rig
    }

    /// Opens a new engine in the directory of one that is gone already.
    pub(crate) fn reopen_after_crash(self) -> Self {
        let next = self.next;
        let mut rig = Self::in_dir(Arc::clone(&self.dir), |_| {});
        rig.next = next;
        rig
    }

    pub(crate) fn runtime(&mut self) -> &mut ProcessRuntime {
        self.runtime.as_mut().unwrap()
    }

    pub(crate) fn attempt(&mut self) -> AttemptId {
        self.next += 1;
        AttemptId { run: RunId(1), task: NodeIx(self.next), attempt: 0 }
    }

    pub(crate) fn start(&mut self, task: Task) -> AttemptId {
        let attempt = self.attempt();
        self.runtime().send(vec![Order::Start { attempt, task: Box::new(task) }]);
        attempt
    }

    pub(crate) fn run(&mut self, task: Task) -> (AttemptId, End) {
        let attempt = self.start(task);
        let end = self.end(attempt);
        (attempt, end)
    }

    /// Runs a shell script and returns its exit and standard output.
    pub(crate) fn sh(&mut self, script: &str) -> (Exit, String) {
        let (attempt, end) = self.run(sh(script));
        (end.exit, self.stdout(attempt))
    }

    pub(crate) fn hear(&mut self, until: impl Fn(&Self) -> bool, what: &str) {
        let give_up = Instant::now() + PATIENCE;
        while !until(self) {
            let left = give_up.saturating_duration_since(Instant::now());
            let batch = self.reports.recv_timeout(left).unwrap_or_else(|_| panic!("waited in vain for {what}"));
            for report in batch {
                self.heard.entry(report.attempt()).or_default().push(report);
            }
        }
    }

    pub(crate) fn reports(&self, attempt: AttemptId) -> &[Report] {
        self.heard.get(&attempt).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn started(&mut self, attempt: AttemptId) {
        let started = |rig: &Self| rig.reports(attempt).iter().any(|report| matches!(report, Report::Started { .. }));
        self.hear(started, "the start");
    }

    pub(crate) fn progress(&mut self, attempt: AttemptId) {
        let told = |rig: &Self| rig.reports(attempt).iter().any(|report| matches!(report, Report::Progress { .. }));
        self.hear(told, "some progress");
    }

    pub(crate) fn end(&mut self, attempt: AttemptId) -> End {
        let ended = |report: &Report| match report {
            Report::Ended { end, .. } => Some((**end).clone()),
            _ => None,
        };
        self.hear(|rig| rig.reports(attempt).iter().any(|report| ended(report).is_some()), "the end");
        self.reports(attempt).iter().find_map(ended).unwrap()
    }

    /// Waits until one of these has ended, and returns it.
    pub(crate) fn any_end(&mut self, of: &[AttemptId]) -> AttemptId {
        let has_ended = |rig: &Self, attempt: &AttemptId| {
            rig.reports(*attempt).iter().any(|report| matches!(report, Report::Ended { .. }))
        };
        self.hear(|rig| of.iter().any(|attempt| has_ended(rig, attempt)), "any end");
        *of.iter().find(|attempt| has_ended(self, attempt)).unwrap()
    }

    pub(crate) fn lost(&mut self, attempt: AttemptId) -> String {
        let lost = |report: &Report| match report {
            Report::Lost { why, .. } => Some(why.clone()),
            _ => None,
        };
        self.hear(|rig| rig.reports(attempt).iter().any(|report| lost(report).is_some()), "the loss");
        self.reports(attempt).iter().find_map(lost).unwrap()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    pub(crate) fn stream(&self, attempt: AttemptId, stream: Stream) -> Vec<u8> {
        let frames = Logs::new(self.dir.path()).read(attempt).map(Result::unwrap);
        frames.filter(|frame| frame.stream == stream).flat_map(|frame| frame.bytes).collect()
    }

    pub(crate) fn stdout(&self, attempt: AttemptId) -> String {
        String::from_utf8(self.stream(attempt, Stream::Stdout)).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown();
        }
    }
}

pub(crate) fn command(words: &[&str]) -> Task {
    let command = words.iter().map(|word| (*word).to_owned()).collect();
    let main = TaskContainer { name: "main".to_owned(), image: "test".to_owned(), command, ..TaskContainer::default() };
    Task { name: "test".to_owned(), main, grace: Duration::from_secs(30), ..Task::default() }
}

pub(crate) fn sh(script: &str) -> Task {
    command(&["sh", "-c", script])
}

/// Waits for something outside our control, such as the kernel removing a process.
pub(crate) fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !check() {
        assert!(Instant::now() < give_up, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns processes whose command line contains this text.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(text.len()).any(|part| part == text.as_bytes())
    })
    .collect()
}

pub(crate) fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

/// Returns the spawner of a data directory.
pub(crate) fn spawner_of(dir: &Path) -> Vec<u32> {
    let canonical = dir.canonicalize().unwrap();
    let own = canonical.to_str().unwrap().to_owned();
    processes_with("__spawner\0").into_iter().filter(|pid| processes_with(&own).contains(pid)).collect()
}
