//! Tasks of several containers: order, ends, signals, output, and adoption by a new engine.

use std::time::Duration;

use octoflow_model::{
    ids::AttemptId,
    order::{End, Exit, Order, Report},
    pod::{Member, Part, Pod},
    task::{Mount, MountSource, Task, TaskContainer, WantedOutputs},
};
use octoflow_runtime::{
    logs::{Logs, Stream},
    port::Runtime as _,
};

use crate::rig::{Rig, eventually, processes_with};

/// Keeps a shell busy without a long-lived child that has to be killed as well.
const FOREVER: &str = "while :; do sleep 0.02; done";

fn member(part: Part, name: &str, script: &str) -> Member {
    let container = TaskContainer {
        name: name.to_owned(),
        image: "test".to_owned(),
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        ..TaskContainer::default()
    };
    Member { part, container, files: Vec::new(), mounts: Vec::new(), after: Vec::new(), probe: None }
}

fn init(name: &str, script: &str) -> Member {
    member(Part::Init, name, script)
}

fn main(script: &str) -> Member {
    member(Part::Main, "main", script)
}

fn sidecar(name: &str, script: &str) -> Member {
    member(Part::Sidecar, name, script)
}

fn after(name: &str, script: &str, after: &[u32]) -> Member {
    Member { after: after.to_vec(), ..member(Part::Main, name, script) }
}

fn pod(members: Vec<Member>) -> Task {
    let main = members.iter().find(|member| member.part == Part::Main).unwrap().container.clone();
    let main = TaskContainer { name: "main".to_owned(), ..main };
    let pod = Some(Box::new(Pod { members, ..Pod::default() }));
    Task { name: "test".to_owned(), main, grace: Duration::from_secs(30), pod, ..Task::default() }
}

fn in_both_isolations(test: impl Fn(&mut Rig)) {
    test(&mut Rig::new());
    test(&mut Rig::plain());
}

fn said(rig: &Rig, attempt: AttemptId, container: Option<&str>) -> String {
    let frames = Logs::new(rig.dir.path()).read(attempt).map(Result::unwrap);
    let bytes = frames.filter(|frame| frame.stream == Stream::Stdout && frame.container.as_deref() == container);
    String::from_utf8(bytes.flat_map(|frame| frame.bytes).collect()).unwrap()
}

fn exits(end: &End) -> Vec<Option<Exit>> {
    end.members.iter().map(|member| member.exit.clone()).collect()
}

fn code(code: i32) -> Option<Exit> {
    Some(Exit::Code(code))
}

pub(crate) fn init_containers_run_in_order_before_main() {
    in_both_isolations(|rig| {
        let place = rig.data().join("shared");
        let file = if rig.isolated { "/tmp/shared".to_owned() } else { place.display().to_string() };
        let (attempt, end) = rig.run(pod(vec![
            init("one", &format!("echo 1 > '{file}'; sleep 0.05")),
            init("two", &format!("echo 2 >> '{file}'")),
            main(&format!("cat '{file}'")),
        ]));
        assert_eq!((end.exit.clone(), exits(&end)), (Exit::Code(0), vec![code(0); 3]));
        assert_eq!(said(rig, attempt, None), "1\n2\n");
        let times = |at: usize| (end.members[at].started.unwrap(), end.members[at].ended.unwrap());
        assert!(times(0).1 <= times(1).0 && times(1).1 <= times(2).0, "one after another: {end:?}");
        assert_eq!(end.members[1].name, "two");
    });
}

pub(crate) fn a_failed_init_container_keeps_everything_else_from_running() {
    in_both_isolations(|rig| {
        let (attempt, end) = rig.run(pod(vec![
            init("one", "exit 3"),
            init("two", "echo two"),
            main("echo main"),
            sidecar("side", "echo side"),
        ]));
        assert_eq!(end.exit, Exit::Code(3));
        assert_eq!(exits(&end), [code(3), None, None, None]);
        assert!(Logs::new(rig.dir.path()).read(attempt).next().is_none(), "nobody else said a word");
    });
}

pub(crate) fn j24_a_sidecar_is_ended_when_main_has_ended() {
    in_both_isolations(|rig| {
        let (_, end) = rig.run(pod(vec![
            main("sleep 0.1; exit 4"),
            sidecar("sleeper", "exec sleep 1000"),
            sidecar("polite", &format!("trap 'exit 5' TERM; {FOREVER}")),
        ]));
        assert_eq!(end.exit, Exit::Code(4));
        let ends = exits(&end);
        assert_eq!(ends[1], Some(Exit::Signal(15)));
        // Its trap may not have been set yet when the signal came.
        assert!(ends[2] == code(5) || ends[2] == Some(Exit::Signal(15)), "{ends:?}");
    });
}

pub(crate) fn j24_a_sidecar_that_ignores_the_polite_signal_is_killed_after_the_grace() {
    let mut rig = Rig::new();
    let mut task = pod(vec![
        main("until [ -e /tmp/ready ]; do sleep 0.02; done"),
        sidecar("deaf", &format!("trap '' TERM; touch /tmp/ready; {FOREVER}")),
    ]);
    task.grace = Duration::from_millis(100);
    let (_, end) = rig.run(task);
    assert_eq!((end.exit.clone(), exits(&end)), (Exit::Code(0), vec![code(0), Some(Exit::Signal(9))]));
}

pub(crate) fn a_sidecar_is_there_when_main_runs() {
    let mut rig = Rig::new();
    let (attempt, end) = rig.run(pod(vec![
        // Moved, not written in place: main must not read it between truncation and write.
        sidecar("server", &format!("echo pong > /tmp/answer.part; mv /tmp/answer.part /tmp/answer; {FOREVER}")),
        main("until [ -s /tmp/answer ]; do sleep 0.02; done; cat /tmp/answer"),
    ]));
    assert_eq!((end.exit, said(&rig, attempt, None)), (Exit::Code(0), "pong\n".to_owned()));
    assert!(end.members[0].started <= end.members[1].started, "main comes after its sidecars");
}

pub(crate) fn a_sidecar_that_fails_by_itself_is_told() {
    let mut rig = Rig::new();
    let (_, end) = rig.run(pod(vec![main("sleep 0.3"), sidecar("side", "exit 2")]));
    assert_eq!((end.exit.clone(), exits(&end)), (Exit::Code(0), vec![code(0), code(2)]));
}

pub(crate) fn containers_are_told_of_while_they_run() {
    let mut rig = Rig::new();
    let attempt = rig.start(pod(vec![after("a", "exit 0", &[]), after("b", "exec sleep 1000", &[0])]));
    let told = |rig: &Rig| -> Vec<(String, bool)> {
        let reports = rig.reports(attempt).iter();
        reports
            .filter_map(|report| match report {
                Report::Container { member, .. } => Some((member.name.clone(), member.exit.is_some())),
                _ => None,
            })
            .collect()
    };
    let last = ("b".to_owned(), false);
    rig.hear(|rig| told(rig).contains(&last), "the second container");
    let mut ends: Vec<(String, bool)> = told(&rig);
    ends.dedup();
    assert!(ends.contains(&("a".to_owned(), true)) && ends.last() == Some(&last), "{ends:?}");
    rig.runtime().send(vec![Order::Kill { attempt }]);
    rig.end(attempt);
}

pub(crate) fn a_set_follows_its_dependencies() {
    in_both_isolations(|rig| {
        // Written in an order that is not the order of execution.
        let (attempt, end) = rig.run(pod(vec![
            after("last", "echo last", &[1, 2]),
            after("b", "echo b", &[3]),
            after("c", "echo c", &[3]),
            after("first", "echo first; sleep 0.05", &[]),
        ]));
        assert_eq!((end.exit.clone(), exits(&end)), (Exit::Code(0), vec![code(0); 4]));
        let frames = Logs::new(rig.dir.path()).read(attempt).map(Result::unwrap);
        let order: Vec<Box<str>> = frames.filter_map(|frame| frame.container).collect();
        assert_eq!((&*order[0], &*order[3], order.len()), ("first", "last", 4));
    });
}

pub(crate) fn several_main_containers_are_over_together_and_the_named_one_decides() {
    in_both_isolations(|rig| {
        let scripts = [("helper", "sleep 0.05; exit 5"), ("worker", "exit 0"), ("slow", "sleep 0.3; exit 6")];
        for (chosen, exit) in [("worker", 0), ("slow", 6), ("helper", 5)] {
            let mut task = pod(scripts.iter().map(|(name, script)| after(name, script, &[])).collect());
            task.main.name = chosen.to_owned();
            let (_, end) = rig.run(task);
            assert_eq!((end.exit.clone(), exits(&end)), (Exit::Code(exit), vec![code(5), code(0), code(6)]));
            let (first, last) = (end.members[1].ended.unwrap(), end.members[2].ended.unwrap());
            assert!(first < last, "the task was not over when the first of them was: {end:?}");
        }
    });
}

pub(crate) fn what_depends_on_a_failed_container_never_starts() {
    let mut rig = Rig::new();
    let (attempt, end) = rig.run(pod(vec![
        after("a", "exit 7", &[]),
        after("b", "echo b", &[0]),
        after("c", "echo c", &[1]),
        after("free", "echo free", &[]),
    ]));
    assert_eq!(end.exit, Exit::Code(7));
    assert_eq!(exits(&end), [code(7), None, None, code(0)]);
    assert_eq!(said(&rig, attempt, Some("free")), "free\n");
}

fn retried(retries: u32) -> Task {
    let script = "if [ -e /tmp/tried ]; then echo well; else touch /tmp/tried; echo badly; exit 1; fi";
    let mut task = pod(vec![main(script), after("next", "echo next", &[0])]);
    if let Some(pod) = &mut task.pod {
        pod.retries = retries;
        pod.pause = Duration::from_millis(50);
    }
    task
}

pub(crate) fn j25_a_container_of_a_set_is_tried_again() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let (attempt, end) = rig.run(retried(2));
    assert_eq!((end.exit.clone(), exits(&end)), (Exit::Code(0), vec![code(0); 2]));
    assert_eq!(said(&rig, attempt, None), "badly\nwell\n");
    assert_eq!(said(&rig, attempt, Some("next")), "next\n");
}

pub(crate) fn j25_without_retries_one_failure_is_the_end() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let (_, end) = rig.run(retried(0));
    assert_eq!((end.exit.clone(), exits(&end)), (Exit::Code(1), vec![code(1), None]));
}

pub(crate) fn output_is_marked_and_the_result_is_mains_alone() {
    in_both_isolations(|rig| {
        let mut task =
            pod(vec![init("before", "echo before"), main("echo main; echo aside >&2"), sidecar("side", "echo side")]);
        task.wanted = WantedOutputs { result: true, ..WantedOutputs::default() };
        let (attempt, end) = rig.run(task);
        assert_eq!(end.collected.result.as_deref(), Some("main"));
        assert_eq!(said(rig, attempt, Some("before")), "before\n");
        assert_eq!(rig.stream(attempt, Stream::Stderr), b"aside\n");
    });
}

pub(crate) fn g13_signals_of_containers_are_told() {
    let mut rig = Rig::new();
    let (_, end) = rig.run(pod(vec![after("one", "kill -9 $$", &[]), after("two", "echo no", &[0])]));
    assert_eq!((end.exit.clone(), exits(&end)), (Exit::Signal(9), vec![Some(Exit::Signal(9)), None]));
    let (_, end) = rig.run(pod(vec![main("kill -TERM $$"), sidecar("side", "true")]));
    assert_eq!(end.exit, Exit::Signal(15));
}

pub(crate) fn a_polite_stop_reaches_main_first_and_starts_nothing_more() {
    in_both_isolations(|rig| {
        let attempt = rig.start(pod(vec![
            after("main", &format!("trap 'exit 6' TERM; echo ready; {FOREVER}"), &[]),
            after("later", "echo later", &[0]),
            sidecar("side", "exec sleep 1000"),
        ]));
        eventually("the pod to be ready", || said(rig, attempt, None) == "ready\n");
        rig.runtime().send(vec![Order::Stop { attempt }]);
        let end = rig.end(attempt);
        assert_eq!((end.exit.clone(), exits(&end)), (Exit::Code(6), vec![code(6), None, Some(Exit::Signal(15))]));
        assert!(end.members[0].ended <= end.members[2].ended, "the sidecar is there until main has ended");
    });
}

pub(crate) fn whoever_ignores_a_stop_is_killed_after_the_grace() {
    let mut rig = Rig::new();
    let mut task = pod(vec![main(&format!("trap '' TERM; echo ready; {FOREVER}")), sidecar("side", "exec sleep 1000")]);
    task.grace = Duration::from_millis(100);
    let attempt = rig.start(task);
    eventually("the pod to be ready", || said(&rig, attempt, None) == "ready\n");
    rig.runtime().send(vec![Order::Stop { attempt }]);
    let end = rig.end(attempt);
    assert_eq!(end.exit, Exit::Signal(9));
    assert!(end.members.iter().all(|member| member.exit.is_some()), "{end:?}");
}

pub(crate) fn a_kill_ends_every_container() {
    in_both_isolations(|rig| {
        let mark = format!("66{}", rig.data().to_string_lossy().len() + std::process::id() as usize);
        let attempt = rig.start(pod(vec![
            main(&format!("trap '' TERM; sleep {mark} & echo ready; wait")),
            sidecar("side", &format!("trap '' TERM; sleep {mark} & echo ready; wait")),
        ]));
        let asleep = || processes_with(&format!("sleep\0{mark}\0")).len();
        // A container that has not reported its start has no end either, so the test waits for its report, not for its
        // process.
        eventually("the pod to be ready", || {
            asleep() == 2 && [None, Some("side")].iter().all(|one| said(rig, attempt, *one) == "ready\n")
        });
        rig.runtime().send(vec![Order::Kill { attempt }]);
        let end = rig.end(attempt);
        assert_eq!((end.exit.clone(), exits(&end)), (Exit::Signal(9), vec![Some(Exit::Signal(9)); 2]));
        eventually("everything to be gone", || asleep() == 0);
    });
}

pub(crate) fn a_background_process_of_a_container_does_not_outlive_the_pod() {
    in_both_isolations(|rig| {
        let mark = format!("55{}", rig.data().to_string_lossy().len() + std::process::id() as usize);
        let leave = format!("setsid sleep {mark} >/dev/null 2>&1 & sleep {mark} >/dev/null 2>&1 &");
        let (_, end) = rig.run(pod(vec![main(&leave), sidecar("side", &leave)]));
        assert_eq!(end.exit, Exit::Code(0));
        eventually("the rest to be gone", || processes_with(&format!("sleep\0{mark}\0")).is_empty());
    });
}

pub(crate) fn a_program_that_is_not_there_is_that_containers_fault() {
    in_both_isolations(|rig| {
        let mut helper = sidecar("helper", "");
        helper.container.command = vec!["no-such-program".to_owned()];
        let (_, end) = rig.run(pod(vec![main("true"), helper]));
        assert_eq!(end.exit, Exit::Code(0));
        let not_found = "exec: \"no-such-program\": executable file not found in $PATH".to_owned();
        assert_eq!(exits(&end), [code(0), Some(Exit::NotStarted(not_found))]);
    });
}

pub(crate) fn an_unknown_image_is_that_containers_fault() {
    let mut rig = Rig::new();
    let mut helper = init("helper", "");
    helper.container.command = Vec::new();
    let (_, end) = rig.run(pod(vec![helper, main("true")]));
    assert!(matches!(&end.exit, Exit::NotStarted(why) if why.contains("set `command`")), "{end:?}");
    assert_eq!(exits(&end), [Some(end.exit.clone()), None]);
}

fn scratch(path: &str, name: &str) -> Mount {
    let source = MountSource::Scratch { name: name.to_owned() };
    Mount { path: path.to_owned(), source, sub_path: None, read_only: false }
}

pub(crate) fn scratch_volumes_are_shared_between_containers() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let mut writer = init("writer", "echo hi > /there/file");
    writer.mounts = vec![scratch("/there", "work")];
    let mut task = pod(vec![writer, main("cat /here/file")]);
    task.mounts = vec![scratch("/here", "work")];
    let (attempt, end) = rig.run(task.clone());
    assert_eq!((end.exit, said(&rig, attempt, None)), (Exit::Code(0), "hi\n".to_owned()));
    let (_, end) = Rig::plain().run(task);
    assert!(matches!(end.exit, Exit::Environment(why) if why.contains("without isolation")));
}

pub(crate) fn two_volumes_at_one_path_are_refused() {
    let mut rig = Rig::new();
    let mut other = sidecar("other", "true");
    other.mounts = vec![scratch("/work", "theirs")];
    let mut task = pod(vec![main("true"), other]);
    task.mounts = vec![scratch("/work", "mine")];
    let (_, end) = rig.run(task);
    assert!(matches!(end.exit, Exit::Environment(why) if why.contains("`/work`") && why.contains("different")));
}

pub(crate) fn every_container_has_its_own_surroundings() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let mut one = init("one", "echo $WHO; pwd; echo ${OCTOFLOW_ATTEMPT:+marked}");
    one.container.env = vec![("WHO".to_owned(), octoflow_model::task::EnvValue::Plain("one".to_owned()))];
    one.container.working_dir = Some("/tmp/made/for/one".to_owned());
    let mut two = main("echo ${WHO:-nobody}; pwd; test -t 1 && echo terminal");
    two.container.tty = true;
    let (attempt, end) = rig.run(pod(vec![one, two]));
    assert_eq!(end.exit, Exit::Code(0));
    assert_eq!(said(&rig, attempt, Some("one")), "one\n/tmp/made/for/one\nmarked\n");
    assert_eq!(said(&rig, attempt, None), "nobody\r\n/\r\nterminal\r\n");
}

pub(crate) fn a_loud_pod_arrives_whole() {
    let mut rig = Rig::new();
    let loud = |byte: char| format!("head -c 1048577 /dev/zero | tr '\\0' {byte}");
    let (attempt, end) = rig.run(pod(vec![after("main", &loud('m'), &[]), after("other", &loud('o'), &[])]));
    assert_eq!(end.exit, Exit::Code(0));
    let (mine, other) = (said(&rig, attempt, None), said(&rig, attempt, Some("other")));
    assert!(mine.len() == 1_048_577 && mine.bytes().all(|byte| byte == b'm'));
    assert!(other.len() == 1_048_577 && other.bytes().all(|byte| byte == b'o'));
}

fn gated(gate: &std::path::Path) -> Task {
    let mut task = pod(vec![
        main("echo up; until [ -e /gate/open ]; do sleep 0.02; done; echo on; exit 3"),
        sidecar("side", "exec sleep 1000"),
    ]);
    task.wanted = WantedOutputs { result: true, ..WantedOutputs::default() };
    let source = MountSource::Host { path: gate.display().to_string() };
    task.mounts = vec![Mount { path: "/gate".to_owned(), source, sub_path: None, read_only: true }];
    task
}

fn checks_the_end(end: &End) {
    assert_eq!((end.exit.clone(), exits(end)), (Exit::Code(3), vec![code(3), Some(Exit::Signal(15))]));
    assert_eq!(end.collected.result.as_deref(), Some("up\non"));
    assert_eq!(end.members[1].name, "side");
}

pub(crate) fn a_pod_outlives_its_engine_and_is_adopted() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let gate = crate::rig::fresh_dir();
    let attempt = rig.start(gated(gate.path()));
    eventually("the pod to be up", || said(&rig, attempt, None) == "up\n");
    let mut rig = rig.reopen(false);
    rig.runtime().adopt(vec![(attempt, Box::new(gated(gate.path())))], &[]);
    rig.started(attempt);
    std::fs::write(gate.path().join("open"), "").unwrap();
    checks_the_end(&rig.end(attempt));
}

pub(crate) fn a_pod_that_ended_without_an_engine_is_collected_later() {
    let mut rig = Rig::new();
    if !rig.isolated {
        return;
    }
    let gate = crate::rig::fresh_dir();
    let attempt = rig.start(gated(gate.path()));
    eventually("the pod to be up", || said(&rig, attempt, None) == "up\n");
    let data = rig.data();
    drop(rig.runtime.take());
    std::fs::write(gate.path().join("open"), "").unwrap();
    // Without an engine the spawner records the end and exits.
    eventually("the spawner to be gone", || crate::rig::spawner_of(&data).is_empty());
    let mut rig = Rig::in_dir(std::sync::Arc::clone(&rig.dir), |_| {});
    rig.runtime().adopt(vec![(attempt, Box::new(gated(gate.path())))], &[]);
    checks_the_end(&rig.end(attempt));
}
