//! Crashes of engine and spawner at bad moments.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    sync::{Arc, Mutex},
};

use octoflow_model::{
    ids::{AttemptId, NodeIx, RunId},
    order::{Exit, Found, Order, Report},
    task::{Mount, MountSource, Task, WantedOutputs},
};
use octoflow_runtime::{
    port::Runtime as _,
    process::{self, Error},
};

use crate::rig::{Rig, command, config, eventually, fresh_dir, kill, processes_with, sh, spawner_of};

pub(crate) const ENGINE_ARGUMENT: &str = "__engine";

const WAIT: &str = "until [ -e /gate/open ]; do sleep 0.02; done";

fn attempt(task: u32) -> AttemptId {
    AttemptId { run: RunId(1), task: NodeIx(task), attempt: 0 }
}

/// An engine in a separate process, to be killed: starts the scripts given as arguments and waits for ever.
pub(crate) fn engine_main(arguments: &[OsString]) -> ExitCode {
    let data = Path::new(&arguments[0]);
    let out = Arc::new(Mutex::new(std::io::stdout()));
    let sink = move |reports: Vec<Report>| {
        for report in reports {
            let word = if matches!(report, Report::Started { .. }) { "started" } else { "ended" };
            writeln!(out.lock().unwrap(), "{word} {}", report.attempt()).unwrap();
        }
    };
    let (mut runtime, _) = process::open(config(data), Box::new(sink)).unwrap();
    let orders = arguments[1..].iter().zip(1..).map(|(script, number)| Order::Start {
        attempt: attempt(number),
        task: Box::new(wanting(script.to_str().unwrap())),
    });
    runtime.send(orders.collect());
    loop {
        std::thread::park();
    }
}

/// Returns a task that wants a result and a parameter. The directory it may name in its first line is mounted at
/// `/gate`: changes of the machine's files after the start are only visible through volumes.
fn wanting(script: &str) -> Task {
    let parameters = vec![("p".to_owned(), "/tmp/p".to_owned())];
    let mut task =
        Task { wanted: WantedOutputs { result: true, parameters, ..WantedOutputs::default() }, ..sh(script) };
    if let Some((gate, script)) = script.strip_prefix("gate=").and_then(|rest| rest.split_once('\n')) {
        let source = MountSource::Host { path: gate.to_owned() };
        task.mounts = vec![Mount { path: "/gate".to_owned(), source, sub_path: None, read_only: true }];
        script.clone_into(task.main.command.last_mut().unwrap());
    }
    task
}

struct Engine {
    process: Child,
    lines: BufReader<std::process::ChildStdout>,
    heard: Vec<String>,
}

impl Engine {
    fn start(data: &Path, scripts: &[&str]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg(ENGINE_ARGUMENT)
            .arg(data)
            .args(scripts)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self { process, lines, heard: Vec::new() }
    }

    fn wait_for(&mut self, line: &str) {
        while !self.heard.iter().any(|heard| heard == line) {
            let mut next = String::new();
            assert_ne!(self.lines.read_line(&mut next).unwrap(), 0, "the engine ended");
            self.heard.push(next.trim_end().to_owned());
        }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn believed(numbers: impl IntoIterator<Item = u32>, script: &str) -> Vec<(AttemptId, Box<Task>)> {
    numbers.into_iter().map(|number| (attempt(number), Box::new(wanting(script)))).collect()
}

pub(crate) fn a_killed_engine_finds_its_tasks_again() {
    let dir = Arc::new(fresh_dir());
    let gate = fresh_dir();
    let open = gate.path().join("open");
    // One ends while no engine is connected, one lives through it all.
    let quick = "echo quick; echo v > /tmp/p; exit 3";
    let slow = format!("gate={}\necho slow; echo w > /tmp/p; {WAIT}", gate.path().display());
    let mut engine = Engine::start(dir.path(), &[quick, &slow]);
    engine.wait_for("started 1-1-0");
    engine.wait_for("started 1-2-0");
    engine.kill();
    let spawner = spawner_of(dir.path());
    assert_eq!(spawner.len(), 1);

    let mut rig = Rig::in_dir(Arc::clone(&dir), |_| {});
    rig.runtime().adopt(believed(1..=2, "not used"), &[]);
    let end = rig.end(attempt(1));
    assert_eq!(end.exit, Exit::Code(3));
    assert_eq!(end.collected.result.as_deref(), Some("quick"));
    if rig.isolated {
        assert_eq!(end.collected.parameters[0].1, Found::Here("v".to_owned()));
    }
    rig.started(attempt(2));
    fs::write(&open, "").unwrap();
    let end = rig.end(attempt(2));
    assert_eq!((end.exit, end.collected.result.as_deref()), (Exit::Code(0), Some("slow")));
    assert_eq!(spawner_of(dir.path()), spawner, "the same spawner served both engines");
}

pub(crate) fn what_ended_without_an_engine_is_collected_later() {
    let dir = Arc::new(fresh_dir());
    let gate = fresh_dir();
    let open = gate.path().join("open");
    let script = format!("gate={}\necho hi; echo v > /tmp/p; {WAIT}; exit 5", gate.path().display());
    let mut engine = Engine::start(dir.path(), &[&script]);
    engine.wait_for("started 1-1-0");
    engine.kill();
    fs::write(&open, "").unwrap();
    eventually("the spawner to go away by itself", || spawner_of(dir.path()).is_empty());

    // Adopted twice: the first engine crashes before it can make the result durable.
    for last in [false, true] {
        let mut rig = Rig::in_dir(Arc::clone(&dir), |_| {});
        rig.runtime().adopt(believed([1], "not used"), &[]);
        let end = rig.end(attempt(1));
        assert_eq!((end.exit, end.collected.result.as_deref()), (Exit::Code(5), Some("hi")));
        if rig.isolated {
            assert_eq!(end.collected.parameters[0].1, Found::Here("v".to_owned()));
        }
        if last {
            rig.runtime().send(vec![Order::Forget { attempt: attempt(1) }]);
        } else {
            drop(rig.runtime.take());
            eventually("the spawner to go", || spawner_of(dir.path()).is_empty());
        }
    }
    eventually("the result to be forgotten", || !dir.path().join("spawner/results").exists());
}

pub(crate) fn an_order_that_was_never_sent_is_started_on_adoption() {
    for goodbye in [true, false] {
        let mut rig = Rig::new();
        let (old, _) = rig.run(sh("true"));
        rig.runtime().send(vec![Order::Forget { attempt: old }]);
        let mut rig = rig.reopen(goodbye);
        rig.runtime().adopt(believed([7], "echo started late"), &[]);
        let end = rig.end(attempt(7));
        assert_eq!(end.collected.result.as_deref(), Some("started late"));
    }
}

pub(crate) fn a_dead_spawner_means_lost() {
    let dir = Arc::new(fresh_dir());
    let mark = format!("4242{}", std::process::id());
    let script = format!("setsid sleep {mark} & exec sleep {mark}");
    let mut engine = Engine::start(dir.path(), &[&script]);
    engine.wait_for("started 1-1-0");
    eventually("both sleepers", || processes_with(&format!("sleep\0{mark}\0")).len() == 2);
    let spawner = spawner_of(dir.path())[0];
    engine.kill();
    kill(spawner);
    eventually("the spawner to die", || spawner_of(dir.path()).is_empty());

    // Twice, because the first engine may crash before it made the loss durable.
    for _ in 0..2 {
        let mut rig = Rig::in_dir(Arc::clone(&dir), |_| {});
        rig.runtime().adopt(believed(1..=2, "echo fresh"), &[]);
        assert!(rig.lost(attempt(1)).contains("spawner died"));
        rig.end(attempt(2));
        drop(rig.runtime.take());
        eventually("the spawner to go", || spawner_of(dir.path()).is_empty());
        assert!(processes_with(&format!("sleep\0{mark}\0")).is_empty(), "nothing of the dead spawner's lives");
    }
}

pub(crate) fn a_spawner_that_dies_under_a_living_engine_is_replaced() {
    let mut rig = Rig::new();
    let running = rig.start(command(&["sleep", "1000"]));
    rig.started(running);
    kill(spawner_of(rig.dir.path())[0]);
    assert!(rig.lost(running).contains("spawner died"));
    assert_eq!(rig.sh("echo again"), (Exit::Code(0), "again\n".to_owned()));
}

pub(crate) fn what_the_engine_does_not_believe_in_is_ended() {
    let dir = Arc::new(fresh_dir());
    let mark = format!("5353{}", std::process::id());
    let mut engine = Engine::start(dir.path(), &[&format!("exec sleep {mark}")]);
    engine.wait_for("started 1-1-0");
    engine.kill();
    let mut rig = Rig::in_dir(Arc::clone(&dir), |_| {});
    rig.runtime().adopt(Vec::new(), &[]);
    eventually("the unknown task to die", || processes_with(&format!("sleep\0{mark}\0")).is_empty());
    assert!(rig.reports(attempt(1)).is_empty());
}

pub(crate) fn a_second_engine_is_refused() {
    let rig = Rig::new();
    let second = process::open(config(rig.dir.path()), Box::new(|_| {}));
    assert!(matches!(second.err(), Some(Error::Refused { why }) if why.contains("another engine")));
}

pub(crate) fn a_clean_goodbye_leaves_no_process() {
    let mut rig = Rig::new();
    let (attempt, _) = rig.run(sh("echo x > /tmp/y"));
    rig.runtime().send(vec![Order::Forget { attempt }]);
    rig.runtime.take().unwrap().shutdown();
    assert!(spawner_of(rig.dir.path()).is_empty());
    let left = fs::read_dir(rig.dir.path().join("work")).unwrap().count();
    assert_eq!(left, 0, "nor any working file");
}

pub(crate) fn a_long_data_path_works() {
    let top = fresh_dir();
    let deep = top.path().join("d".repeat(120)).join("e".repeat(120));
    for _ in 0..2 {
        let (sender, reports) = std::sync::mpsc::channel();
        let sink = Box::new(move |batch| drop(sender.send(batch)));
        let (mut runtime, _) = process::open(config(&deep), sink).unwrap();
        runtime.adopt(Vec::new(), &[]);
        runtime.send(vec![Order::Start { attempt: attempt(1), task: Box::new(sh("exit 4")) }]);
        let end = reports.iter().flatten().find_map(|report| match report {
            Report::Ended { end, .. } => Some(end.exit),
            _ => None,
        });
        assert_eq!(end, Some(Exit::Code(4)));
        runtime.send(vec![Order::Forget { attempt: attempt(1) }]);
        runtime.shutdown();
    }
}

pub(crate) fn a_spawner_whose_data_directory_is_deleted_ends_with_its_tasks() {
    for isolated in [true, false] {
        let mut rig = if isolated { Rig::new() } else { Rig::plain() };
        let (seconds, done) = (if isolated { "86417" } else { "86418" }, rig.start(command(&["true"])));
        rig.end(done);
        let attempt = rig.start(command(&["sleep", seconds]));
        rig.started(attempt);
        let [spawner] = spawner_of(rig.dir.path())[..] else { panic!("there is one spawner") };
        // The engine is gone, and tasks continue for the next one.
        drop(rig.runtime.take());
        let task = format!("sleep\0{seconds}\0");
        // A start is told a moment before the program has its own name.
        eventually("its task under its own name", || !processes_with(&task).is_empty());
        fs::remove_dir_all(rig.dir.path()).unwrap();
        eventually("the spawner to go", || !processes_with("__spawner\0").contains(&spawner));
        assert!(processes_with(&task).is_empty(), "its task went with it");
    }
}

pub(crate) fn a_spawner_ends_on_sigterm_with_and_without_tasks_and_keeps_their_results() {
    let terminate = |pid: u32| {
        assert!(Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap().success());
    };
    let mut rig = Rig::new();
    let [first] = spawner_of(rig.dir.path())[..] else { panic!("there is one spawner") };
    terminate(first);
    eventually("another spawner", || matches!(spawner_of(rig.dir.path())[..], [next] if next != first));
    let attempt = rig.start(sh("trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done"));
    rig.started(attempt);
    eventually("its trap", || rig.stdout(attempt).contains("up"));
    let [second] = spawner_of(rig.dir.path())[..] else { panic!("there is one spawner") };
    // No engine is connected while it ends its task; the next engine gets the result.
    drop(rig.runtime.take());
    terminate(second);
    eventually("the spawner to go", || !processes_with("__spawner\0").contains(&second));
    let mut rig = rig.reopen_after_crash();
    rig.runtime().adopt(vec![(attempt, Box::new(sh("true")))], &[]);
    assert_eq!(rig.end(attempt).exit, Exit::Code(7));
}
