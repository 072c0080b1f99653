//! Faults of the machine: no space, no descriptors, a spawner that hangs or cannot be started. Tasks wait and continue;
//! none of them fails because of it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use octoflow_model::{
    ids::AttemptId,
    order::{Exit, Found, Order},
    task::{ArtifactOutput, Task, WantedOutputs},
};
use octoflow_runtime::{
    logs::Stream,
    port::{ConditionKind, Health, Runtime as _},
    process::{Config, SPAWNER_ARGUMENT},
};

use crate::rig::{Rig, eventually, fresh_dir, kill, sh, spawner_of};

/// Configures a spawner that is started by a script, which can do something to it first.
fn by_script(config: &mut Config, dir: &Path, before: &str) {
    let script = dir.join("spawner.sh");
    let own = std::env::current_exe().unwrap();
    fs::write(&script, format!("#!/bin/sh\n{before}\nexec '{}' {SPAWNER_ARGUMENT} \"$@\"\n", own.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    config.spawner_command = vec![script.into()];
}

fn has(health: &Health, kind: ConditionKind) -> bool {
    health().iter().any(|condition| condition.kind == kind)
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

pub(crate) fn a_stopped_spawner_is_told_of_and_goes_on() {
    let mut rig = Rig::new();
    let health = rig.runtime().health();
    assert_eq!(health(), []);
    let spawner = spawner_of(rig.dir.path())[0];
    signal("-STOP", spawner);
    let before = Instant::now();
    let waiting: Vec<AttemptId> = (0..50).map(|_| rig.start(sh("echo went on"))).collect();
    assert!(before.elapsed() < Duration::from_secs(30), "an order never waits");
    eventually("the silence to be told", || has(&health, ConditionKind::SpawnerSilent));
    assert!(health()[0].message.contains("kill -CONT"), "it says what to do: {:?}", health());
    signal("-CONT", spawner);
    for attempt in waiting {
        assert_eq!(rig.end(attempt).exit, Exit::Code(0));
    }
    eventually("all to be well", || health().is_empty());
}

/// A hanging spawner does not block the engine's shutdown.
pub(crate) fn a_stopped_spawner_does_not_keep_the_engine_from_leaving() {
    let mut rig = Rig::new();
    rig.sh("true");
    let spawner = spawner_of(rig.dir.path())[0];
    signal("-STOP", spawner);
    let before = Instant::now();
    rig.runtime.take().unwrap().shutdown();
    assert!(before.elapsed() < Duration::from_secs(30));
    kill(spawner);
}

pub(crate) fn a_spawner_that_cannot_be_started_is_tried_again_and_tasks_wait() {
    let place = fresh_dir();
    let broken = place.path().join("broken");
    let before = format!("[ -e '{}' ] && exit 3", broken.display());
    let mut rig = Rig::with(|config| by_script(config, place.path(), &before));
    let health = rig.runtime().health();
    let running = rig.start(sh("sleep 1000"));
    rig.started(running);
    fs::write(&broken, "").unwrap();
    kill(spawner_of(rig.dir.path())[0]);
    eventually("the loss to be told", || has(&health, ConditionKind::SpawnerDown));
    let waiting = rig.start(sh("echo at last"));
    let stopped = rig.start(sh("echo never"));
    rig.runtime().send(vec![Order::Stop { attempt: stopped }]);
    assert_eq!(rig.end(stopped).exit, Exit::Signal(15), "one that waits can be stopped");
    // Longer than a few attempts take.
    thread::sleep(Duration::from_secs(1));
    assert!(rig.reports(running).len() <= 1 && rig.reports(waiting).is_empty(), "nothing is decided meanwhile");
    assert!(has(&health, ConditionKind::SpawnerDown));
    fs::remove_file(&broken).unwrap();
    assert!(rig.lost(running).contains("spawner died"));
    assert_eq!(rig.end(waiting).exit, Exit::Code(0));
    assert_eq!(rig.stdout(waiting), "at last\n");
    eventually("all to be well", || health().is_empty());
}

pub(crate) fn without_descriptors_tasks_wait_and_none_fails() {
    let place = fresh_dir();
    let mut rig = Rig::with(|config| by_script(config, place.path(), "ulimit -n 64"));
    let health = rig.runtime().health();
    let script = "echo out; sleep 0.3; echo err >&2; echo value > /tmp/value";
    let wanted = WantedOutputs {
        result: true,
        parameters: vec![("v".to_owned(), "/tmp/value".to_owned())],
        ..WantedOutputs::default()
    };
    let attempts: Vec<AttemptId> = (0..40).map(|_| rig.start(Task { wanted: wanted.clone(), ..sh(script) })).collect();
    let mut delayed = false;
    let mut left = attempts.clone();
    while !left.is_empty() {
        // Ended attempts are forgotten at once, as an engine does: their files take descriptors.
        let ended = rig.any_end(&left);
        left.retain(|attempt| *attempt != ended);
        rig.runtime().send(vec![Order::Forget { attempt: ended }]);
        delayed |= has(&health, ConditionKind::StartsDelayed);
    }
    for attempt in attempts {
        let end = rig.end(attempt);
        assert_eq!(end.exit, Exit::Code(0));
        assert_eq!(end.collected.result.as_deref(), Some("out"));
        assert_eq!(end.collected.parameters[0].1, Found::Here("value".to_owned()));
        assert!(!end.log_truncated);
    }
    assert!(delayed, "64 descriptors are not enough for 40 tasks at once, and that is told");
    assert_eq!(rig.sh("echo after").0, Exit::Code(0));
    eventually("all to be well", || health().is_empty());
}

/// A small file system that is soon full. `None` if this user may not mount.
struct Small(PathBuf, Arc<tempfile::TempDir>);

impl Small {
    fn new(mebibytes: u32) -> Option<Self> {
        let dir = Arc::new(fresh_dir());
        let size = format!("size={mebibytes}m,mode=0700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "small"]).arg(dir.path()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            // SAFETY-free question to the system.
            let root = fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
            assert!(std::env::var_os("CI").is_none() || !root, "CI must be able to mount a small file system");
            eprintln!("SKIPPED: this user may not mount a file system, so a full disk cannot be tried");
            return None;
        }
        Some(Self(dir.path().to_owned(), dir))
    }

    fn fill(&self) {
        // Until there is no space left.
        let _ = Command::new("dd")
            .args(["if=/dev/zero", "bs=64k"])
            .arg(format!("of={}", self.0.join("filler").display()))
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

pub(crate) fn on_a_full_disk_tasks_wait_and_go_on_when_there_is_space() {
    let Some(small) = Small::new(32) else { return };
    let mut rig = Rig::in_dir(Arc::clone(&small.1), |_| {});
    let health = rig.runtime().health();
    let running = rig.start(sh("until [ -e /tmp/never ]; do echo a line of output; sleep 0.05; done"));
    rig.started(running);
    small.fill();
    eventually("the pressure to be told", || has(&health, ConditionKind::DiskPressure));
    let waiting: Vec<AttemptId> = (0..10).map(|_| rig.start(sh("echo went on"))).collect();
    thread::sleep(Duration::from_secs(1));
    for attempt in &waiting {
        assert!(rig.reports(*attempt).is_empty(), "nothing starts on a full disk, and nothing fails");
    }
    small.free();
    for attempt in waiting {
        let end = rig.end(attempt);
        assert_eq!((end.exit, end.log_truncated), (Exit::Code(0), false));
    }
    eventually("all to be well", || health().is_empty());
    rig.runtime().send(vec![Order::Kill { attempt: running }]);
    let end = rig.end(running);
    assert_eq!(end.exit, Exit::Signal(9), "what ran was not ended by the full disk");
    assert!(end.log_truncated);
    let note = String::from_utf8(rig.stream(running, Stream::Note)).unwrap();
    assert!(note.contains("bytes of output are missing here, behind byte"), "{note}");
    assert!(rig.stdout(running).ends_with("a line of output\n"), "the log goes on behind the gap");
    let length = fs::metadata(octoflow_runtime::logs::Logs::new(rig.dir.path()).path(running)).unwrap().len();
    assert_eq!(end.log_bytes, length);
}

pub(crate) fn a_loud_task_leaves_the_reserved_space_free() {
    let Some(small) = Small::new(32) else { return };
    let mut rig = Rig::in_dir(Arc::clone(&small.1), |_| {});
    let (attempt, end) = rig.run(sh("yes a line of output | head -c 60000000"));
    assert_eq!((end.exit, end.log_truncated), (Exit::Code(0), true));
    // The journal could still be written.
    fs::write(small.0.join("journal"), vec![1; 256 << 10]).unwrap();
    assert!(String::from_utf8(rig.stream(attempt, Stream::Note)).unwrap().contains("missing"));
}

pub(crate) fn without_a_floor_a_disk_that_is_really_full_ends_nothing() {
    let Some(small) = Small::new(16) else { return };
    let mut rig = Rig::in_dir(Arc::clone(&small.1), |config| config.space_floor = Some(0));
    rig.sh("true");
    small.fill();
    let attempts: Vec<AttemptId> = (0..300).map(|_| rig.start(sh("echo something; echo more >&2"))).collect();
    thread::sleep(Duration::from_secs(1));
    small.free();
    for attempt in attempts {
        let end = rig.end(attempt);
        assert_eq!(end.exit, Exit::Code(0));
        let whole = rig.stdout(attempt) == "something\n";
        assert!(whole || end.log_truncated, "what is missing is marked");
    }
}

pub(crate) fn whoever_writes_more_than_its_limit_is_evicted() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let mut task = sh("dd if=/dev/zero of=/tmp/big bs=1M count=32 2>/dev/null; sleep 1000");
    task.main.storage_limit = Some(8 << 20);
    let (_, end) = rig.run(task);
    assert!(
        matches!(&end.exit, Exit::Evicted(why) if why.contains("ephemeral-storage limit is 8192 KiB")),
        "{:?}",
        end.exit
    );
    let mut modest = sh("dd if=/dev/zero of=/tmp/small bs=1M count=4 2>/dev/null; sleep 2");
    modest.main.storage_limit = Some(8 << 20);
    assert_eq!(rig.run(modest).1.exit, Exit::Code(0));
}

pub(crate) fn a_task_that_fills_the_disk_is_evicted_and_others_go_on() {
    let Some(small) = Small::new(64) else { return };
    let mut rig = Rig::in_dir(Arc::clone(&small.1), |_| {});
    if !rig.isolated {
        return;
    }
    let other = rig.start(sh("sleep 1; echo mine > /tmp/mine; sleep 1; cat /tmp/mine"));
    let (_, end) = rig.run(sh("dd if=/dev/zero of=/tmp/big bs=1M 2>/dev/null; sleep 1000"));
    assert!(matches!(&end.exit, Exit::Evicted(why) if why.contains("wrote most of all")), "{:?}", end.exit);
    assert_eq!(rig.end(other).exit, Exit::Code(0));
    let health = rig.runtime().health();
    eventually("its space to be free again", || health().is_empty());
    assert_eq!(rig.sh("echo after").0, Exit::Code(0));
}

pub(crate) fn an_artifact_that_finds_no_space_waits_for_it() {
    let Some(small) = Small::new(32) else { return };
    let mut rig = Rig::in_dir(Arc::clone(&small.1), |_| {});
    let output = ArtifactOutput { name: "a".to_owned(), path: "/tmp/a".to_owned(), ..ArtifactOutput::default() };
    let wanted = WantedOutputs { artifacts: vec![output], ..WantedOutputs::default() };
    // It ends while the disk is full.
    let attempt = rig.start(Task { wanted, ..sh("echo content > /tmp/a; sleep 2") });
    rig.started(attempt);
    thread::sleep(Duration::from_millis(500));
    small.fill();
    thread::sleep(Duration::from_secs(3));
    assert!(rig.reports(attempt).len() <= 1, "its outputs wait");
    small.free();
    let end = rig.end(attempt);
    assert_eq!(end.exit, Exit::Code(0));
    assert!(matches!(end.collected.artifacts[0].1, Found::Here(_)), "{:?}", end.collected.artifacts);
}
