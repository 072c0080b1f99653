//! Preempted steps: ended for others, they wait again as new attempts. Nothing else follows from that end.

use std::time::Duration;

use octoflow_engine::{
    Capacity, Command, Input,
    argo::{Run, node::Leaf, status},
    schedule::{PreemptionKind, spec::NodeSpec},
};
use octoflow_model::{
    AttemptId, Fact, NodeIx, Order, Report,
    argo::WorkflowFact,
    order::{Collected, End, Exit},
    task::placement::{Taint, TaintEffect},
};
use serde_json::Value;

use crate::{
    answer::{Script, exit, never, responds},
    play::{Play, ROOMY, RUN},
    text::manifest,
};

const STEP: &str = "
templates:
- {name: main, steps: [[{name: a, template: work}], [{name: b, template: ok}]]}
- {name: work, retryStrategy: {limit: 1}, container: {image: i, command: [c]}}";

/// Everything on the only node is ended.
fn drain(play: &mut Play) {
    play.input(Input::Drain { node: "local".to_owned() });
}

fn cordon(play: &mut Play, cordoned: bool) {
    let spec = NodeSpec { cordoned, ..NodeSpec::from(ROOMY) };
    play.input(Input::Node { name: "local".to_owned(), spec: Some(Box::new(spec)) });
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn node(play: &Play, name: &str) -> Value {
    let run = play.engine.run_of::<Run>(RUN).expect("the run is there");
    let status = status::status(run);
    let nodes = status["nodes"].as_object().expect("a status has nodes");
    nodes.values().find(|node| node["name"] == name).unwrap_or_else(|| panic!("there is no {name}")).clone()
}

fn work(seconds: u64) -> Script {
    Script::default().on("work", exit(0).after(seconds))
}

#[test]
fn a_preempted_step_runs_again_as_a_new_attempt_and_pays_no_retry() {
    let mut play = Play::with(STEP, work(60));
    play.advance(seconds(5));
    drain(&mut play);
    play.advance(seconds(1));
    assert_eq!(play.starts.iter().filter(|(_, name)| name == "w[0].a(0)").count(), 2);
    let done = play.finish();
    assert_eq!(done.phase(), "Succeeded");
    assert!(done.find("w[0].a(1)").is_none(), "no retry was made");
    let step = done.node("w[0].a(0)");
    assert_eq!((step["phase"].as_str(), step["message"].as_str()), (Some("Succeeded"), None));
    assert_eq!(
        (&step["preempted"]["count"], &step["preempted"]["message"]),
        (&1.into(), &"Node local is drained".into())
    );
    let events = octoflow_engine::argo::DIALECT.view.events(&done.object);
    let told = events.iter().filter(|(_, event)| event["reason"] == "Preempted").count();
    assert_eq!(told, 1);
    let launched = |fact: &&Fact| matches!(fact, Fact::Workflow(WorkflowFact::Launched { .. }));
    assert_eq!(done.facts.iter().filter(launched).count(), 3);
}

#[test]
fn a_retry_that_is_left_is_still_left_after_a_preemption() {
    let mut play = Play::with(STEP, Script::default().on("w[0].a(0)", exit(1).after(60)).on("work", exit(0)));
    play.advance(seconds(5));
    drain(&mut play);
    let done = play.finish();
    assert_eq!((done.phase(), done.node_phase("w[0].a(0)")), ("Succeeded", "Failed"));
    assert_eq!(done.node_phase("w[0].a(1)"), "Succeeded");
}

#[test]
fn while_it_waits_it_is_pending_and_says_why() {
    let mut play = Play::with(STEP, work(60));
    play.tell_all();
    play.advance(seconds(5));
    cordon(&mut play, true);
    drain(&mut play);
    assert_eq!(node(&play, "w[0].a(0)")["phase"], "Running", "it has not ended yet");
    play.advance(seconds(1));
    let step = node(&play, "w[0].a(0)");
    assert_eq!((step["phase"].as_str(), step["message"].as_str()), (Some("Pending"), Some("Node local is drained")));
    assert!(step["hostNodeName"].is_null() && step["finishedAt"].is_null());
    let run = play.engine.run(RUN).expect("the run is there");
    let reasons = run.explain(Some(play.engine.scheduler()), None);
    let reason = &reasons.iter().find(|one| one.node == "a(0)").expect("it is explained").reason;
    assert!(reason.contains("Node local is drained"), "{reason}");
    assert_eq!(play.engine.scheduler().running(), 0, "its room is free");
    cordon(&mut play, false);
    assert_eq!(play.finish().phase(), "Succeeded");
}

#[test]
fn it_waits_since_it_was_added() {
    let mut play = Play::with(STEP, work(60));
    let since = play.engine.run(RUN).unwrap().waits_since(NodeIx(3));
    play.advance(seconds(30));
    cordon(&mut play, true);
    drain(&mut play);
    play.advance(seconds(1));
    let run = play.engine.run(RUN).unwrap();
    assert!(run.is_queued(NodeIx(3)));
    assert_eq!(run.waits_since(NodeIx(3)), since);
}

#[test]
fn whoever_is_stopped_while_it_is_preempted_ends_as_stopped() {
    for (command, kills) in [(Command::Stop, false), (Command::Terminate, true)] {
        let mut play = Play::with(STEP, Script::default().on("work", never()));
        play.advance(seconds(5));
        drain(&mut play);
        play.command(command).unwrap();
        let killed = play.orders.iter().any(|order| matches!(order, Order::Kill { .. }));
        assert_eq!(killed, kills);
        let done = play.finish();
        assert_eq!((done.phase(), done.node_phase("w[0].a(0)")), ("Failed", "Failed"));
        assert!(done.node_message("w[0].a(0)").contains("shutdown"), "{}", done.node_message("w[0].a(0)"));
        assert_eq!(done.starts.len(), 1);
    }
}

#[test]
fn a_deadline_ends_a_step_that_is_being_ended_for_another() {
    let spec = STEP.replace("retryStrategy: {limit: 1}", "activeDeadlineSeconds: 20");
    let mut play = Play::with(&spec, Script::default().on("work", never()));
    // Its process takes ten milliseconds to end.
    play.advance(Duration::from_millis(19_995));
    drain(&mut play);
    let done = play.finish();
    assert_eq!((done.phase(), done.starts.len()), ("Failed", 1));
    assert!(done.node_message("w[0].a").contains("deadline"), "{}", done.node_message("w[0].a"));
}

#[test]
fn a_deadline_counts_anew_for_the_next_attempt() {
    let spec = STEP.replace("retryStrategy: {limit: 1}", "activeDeadlineSeconds: 20");
    let mut play = Play::with(&spec, work(15));
    play.advance(seconds(12));
    drain(&mut play);
    // Eight seconds are left of the first attempt, fifteen are enough for the second.
    assert_eq!(play.finish().phase(), "Succeeded");
}

#[test]
fn a_timeout_ends_a_step_that_waits_again() {
    let spec = STEP.replace("retryStrategy: {limit: 1}", "timeout: 20s");
    let mut play = Play::with(&spec, work(60));
    play.advance(seconds(5));
    cordon(&mut play, true);
    drain(&mut play);
    play.advance(seconds(15));
    assert_eq!(node(&play, "w[0].a")["phase"], "Pending");
    let done = play.finish();
    assert_eq!((done.phase(), done.node_message("w[0].a")), ("Failed", "timeout"));
}

#[test]
fn a_step_that_is_lost_or_ends_well_while_it_is_preempted_waits_again_all_the_same() {
    for ending in [crate::answer::Ending::Lost("gone".to_owned()), crate::answer::Ending::Exit(0)] {
        let mut play =
            Play::with(STEP, Script::default().on("w[0].a(0)", crate::answer::Answer::ends(ending).after(5)));
        play.advance(seconds(1));
        let attempt = AttemptId { run: RUN, task: NodeIx(3), attempt: 0 };
        drain(&mut play);
        play.advance(seconds(1));
        let state = &play.engine.run_of::<Run>(RUN).unwrap().state;
        assert_eq!((state.attempt_number(NodeIx(3)), state.node(NodeIx(3)).leaf()), (1, Some(Leaf::Running)));
        assert!(play.orders.contains(&Order::Forget { attempt }));
    }
}

#[test]
fn late_reports_about_a_preempted_attempt_are_ignored() {
    let mut play = Play::with(STEP, work(60));
    play.advance(seconds(5));
    drain(&mut play);
    play.advance(seconds(1));
    let before = AttemptId { run: RUN, task: NodeIx(3), attempt: 0 };
    let (state, decided) = (play.engine.run_of::<Run>(RUN).unwrap().state.clone(), play.facts.len());
    play.orders.clear();
    let end = Box::new(End {
        exit: Exit::Code(0),
        started: None,
        collected: Collected::default(),
        log_truncated: false,
        log_bytes: 0,
        members: Vec::new(),
    });
    for report in [
        Report::Started { attempt: before, at: play.now },
        Report::Progress { attempt: before, at: play.now, done: 1, total: 2 },
        Report::Lost { attempt: before, at: play.now, why: "gone".to_owned() },
        Report::Ended { attempt: before, at: play.now, end },
    ] {
        play.input(Input::Report(report));
    }
    assert_eq!((&*play.engine.run_of::<Run>(RUN).unwrap().state, play.facts.len()), (&*state, decided));
    assert_eq!(play.orders, [Order::Forget { attempt: before }], "the runtime need not keep it");
    assert_eq!(play.finish().phase(), "Succeeded");
}

#[test]
fn the_containers_of_a_preempted_pod_run_again_with_it() {
    let spec = "
templates:
- name: main
  containerSet:
    containers:
    - {name: one, image: i, command: [c]}
    - {name: main, image: i, command: [c], dependencies: [one]}";
    let mut play = Play::with(spec, Script::default().on("main", exit(0).after(60)));
    play.advance(seconds(5));
    let attempt = AttemptId { run: RUN, task: NodeIx(0), attempt: 0 };
    let member = octoflow_model::pod::MemberEnd {
        name: "one".to_owned(),
        started: Some(play.now),
        ended: Some(play.now),
        exit: Some(Exit::Code(0)),
    };
    play.input(Input::Report(Report::Container { attempt, at: play.now, member: Box::new(member) }));
    assert_eq!(node(&play, "w.one")["phase"], "Succeeded");
    cordon(&mut play, true);
    drain(&mut play);
    play.advance(seconds(1));
    assert_eq!(
        (&node(&play, "w.one")["phase"], &node(&play, "w.main")["phase"]),
        (&"Pending".into(), &"Pending".into())
    );
    cordon(&mut play, false);
    let done = play.finish();
    assert_eq!((done.phase(), done.status()["progress"].as_str()), ("Succeeded", Some("3/3")));
    assert_eq!((done.count(), done.node_phase("w.one"), done.node_phase("w.main")), (3, "Succeeded", "Succeeded"));
}

#[test]
fn daemons_that_are_up_and_requests_are_never_preempted() {
    let spec = "
templates:
- {name: main, steps: [[{name: s, template: server}], [{name: h, template: call}, {name: a, template: work}]]}
- {name: server, daemon: true, container: {image: i, command: [serve]}}
- {name: call, http: {url: 'http://example.org'}}
- {name: work, container: {image: i, command: [c]}}";
    let script = work(30).on("server", never()).on("call", responds(200, "").after(40));
    let mut play = Play::with(spec, script);
    play.advance(seconds(5));
    drain(&mut play);
    let done = play.finish();
    assert_eq!(done.phase(), "Succeeded");
    let count = |name: &str| done.starts.iter().filter(|(_, started)| started.contains(name)).count();
    assert_eq!((count(".s"), count(".h"), count(".a")), (1, 1, 2));
}

#[test]
fn the_engine_may_die_at_every_point_of_a_preemption() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: work}, {name: c, template: work}], [{name: b, template: ok}]]}
- {name: work, container: {image: i, command: [c]}}";
    for early in [false, true] {
        for point in 0..20 {
            let mut play = Play::with(spec, work(30));
            for at in 0.. {
                match at {
                    0 => play.advance(seconds(5)),
                    1 => drain(&mut play),
                    _ => play.step(),
                }
                if play.over() {
                    break;
                }
                if at == point {
                    play.restart(ROOMY, early);
                }
            }
            let done = play.done();
            assert_eq!(done.phase(), "Succeeded", "died at {point}");
            for name in ["w[0].a", "w[0].c"] {
                assert_eq!(done.starts.iter().filter(|(_, started)| started == name).count(), 2, "died at {point}");
                assert_eq!(done.node(name)["preempted"]["count"], 1);
            }
        }
    }
}

#[test]
fn logs_of_preempted_attempts_are_found_beside_the_last_one() {
    let mut play = Play::with(STEP, work(60));
    play.advance(seconds(5));
    let attempt = AttemptId { run: RUN, task: NodeIx(3), attempt: 0 };
    drain(&mut play);
    play.advance(seconds(1));
    let last = AttemptId { attempt: 1, ..attempt };
    let run = play.engine.run(RUN).unwrap();
    let attempts = run.attempts();
    assert!(attempts.iter().any(|(_, attempt)| *attempt == last));
    let done = play.finish();
    let parts = octoflow_engine::argo::DIALECT.view.log_parts(&done.object, &attempts, &[]);
    let of_step: Vec<AttemptId> =
        parts.iter().map(|part| part.attempt).filter(|one| one.task == attempt.task).collect();
    assert_eq!(of_step, [attempt, last]);
}

#[test]
fn the_record_names_the_last_attempt_of_a_preempted_step() {
    let mut play = Play::with(STEP, work(10));
    play.advance(seconds(5));
    drain(&mut play);
    while !play.over() {
        play.step();
    }
    let run = play.engine.run(RUN).unwrap();
    let mut bytes = Vec::new();
    run.write_record(&mut bytes).unwrap();
    let record: Value = serde_json::from_slice(&bytes).unwrap();
    let id = node(&play, "w[0].a(0)")["id"].as_str().unwrap().to_owned();
    let last = AttemptId { run: RUN, task: NodeIx(3), attempt: 1 };
    assert_eq!(record["elsewhere"][&id], last.to_string());
    assert!(record["tasks"][&id].is_null());
    assert_eq!(record["tasks"].as_object().unwrap().len(), 1, "{}", record["tasks"]);
}

#[test]
fn a_task_without_room_waits_behind_nobody_that_came_later() {
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: work}, {name: b, template: work}]]}
- {name: work, container: {image: i, command: [c]}}";
    let one = Capacity { slots: 1, ..ROOMY };
    let mut play = Play::prepared(manifest(spec), work(30), one, &[]);
    play.advance(seconds(5));
    drain(&mut play);
    play.advance(seconds(1));
    let done = play.finish();
    let names: Vec<&str> = done.started();
    assert_eq!(names, ["w[0].a", "w[0].a", "w[0].b"], "it kept its place");
}

const TOLERANT: &str = "
templates:
- {name: main, steps: [[{name: a, template: work}, {name: b, template: tolerant}, {name: c, template: patient}]]}
- {name: work, container: {image: i, command: [c]}}
- {name: tolerant, tolerations: [{operator: Exists}], container: {image: i, command: [c]}}
- {name: patient, tolerations: [{operator: Exists, tolerationSeconds: 30}], container: {image: i, command: [c]}}";

fn taint(play: &mut Play, added: Option<octoflow_model::Time>) {
    let taint = |added| Taint { added: Some(added), ..Taint::new("broken", "", TaintEffect::NoExecute) };
    let spec = NodeSpec { taints: added.map(taint).into_iter().collect(), ..NodeSpec::from(ROOMY) };
    play.input(Input::Node { name: "local".to_owned(), spec: Some(Box::new(spec)) });
}

#[test]
fn a_taint_ends_those_who_do_not_tolerate_it_and_others_when_their_time_is_over() {
    let script = ["work", "tolerant", "patient"]
        .into_iter()
        .fold(Script::default(), |script, name| script.on(name, exit(0).after(100)));
    let mut play = Play::with(TOLERANT, script);
    play.tell_all();
    play.advance(seconds(5));
    let now = play.now;
    taint(&mut play, Some(now));
    play.advance(seconds(1));
    let phases = |play: &Play| ["w[0].a", "w[0].b", "w[0].c"].map(|name| node(play, name)["phase"].clone());
    assert_eq!(phases(&play), ["Pending", "Running", "Running"]);
    let told = "Node local has the taint broken, which is not tolerated";
    assert_eq!(node(&play, "w[0].a")["message"], told);
    play.advance(seconds(28));
    assert_eq!(phases(&play), ["Pending", "Running", "Running"]);
    play.advance(seconds(2));
    assert_eq!(phases(&play), ["Pending", "Running", "Pending"], "its time is over, and it is not started here again");
    let counted = play.engine.scheduler().counters().preemptions.get(&PreemptionKind::Tainted).copied();
    assert_eq!(counted, Some(2));
    taint(&mut play, None);
    let done = play.finish();
    assert_eq!(done.phase(), "Succeeded");
    let times = |name: &str| done.node(name)["preempted"]["count"].clone();
    assert_eq!([times("w[0].a"), times("w[0].b"), times("w[0].c")], [1.into(), Value::Null, 1.into()]);
    let events = octoflow_engine::argo::DIALECT.view.events(&done.object);
    let told = events.iter().filter(|(_, event)| event["message"].as_str().is_some_and(|text| text.contains(told)));
    assert_eq!(told.filter(|(_, event)| event["reason"] == "Preempted").count(), 2);
}

#[test]
fn a_taint_that_is_taken_away_in_time_ends_nobody_and_a_restart_forgets_none() {
    let mut play = Play::with(
        TOLERANT,
        ["work", "tolerant", "patient"]
            .into_iter()
            .fold(Script::default(), |script, name| script.on(name, exit(0).after(100))),
    );
    play.tell_all();
    play.advance(seconds(5));
    let now = play.now;
    taint(&mut play, Some(now));
    play.advance(seconds(20));
    taint(&mut play, None);
    play.advance(seconds(40));
    assert_eq!(node(&play, "w[0].c")["phase"], "Running");
    let now = play.now;
    taint(&mut play, Some(now));
    let wake = play.engine.wake_at().expect("its time will be over");
    assert!(wake <= now.saturating_add(seconds(30)), "{wake}");
}
