//! Pods of several containers and progress: nodes, ends, messages, numbers.

use std::time::Duration;

use octoflow_engine::{Command, Input};
use octoflow_model::{
    AttemptId, NodeIx, Report,
    order::Exit,
    pod::{Member, MemberEnd, Part},
    task::{EnvValue, MountSource},
};

use crate::{
    answer::{Answer, Script, exit, never},
    check::check,
    play::{Play, ROOMY, RUN},
};

const PAIR: &str = "
templates:
- name: main
  containerSet:
    containers:
    - {name: a, image: i, command: [c]}
    - {name: b, image: i, command: [c], dependencies: [a]}";

#[test]
fn a13_the_containers_of_a_set_are_nodes_below_their_pod() {
    let done = check(&format!(
        "{PAIR}
---
all: {{w: Pod Succeeded, w.a: Container Succeeded, w.b: Container Succeeded}}
phase: Succeeded
progress: 3/3"
    ));
    assert_eq!(done.children("w"), ["w.a"]);
    assert_eq!(done.children("w.a"), ["w.b"]);
    assert_eq!(done.boundary("w.a").as_deref(), Some("w"));
    assert_eq!(done.boundary("w.b").as_deref(), Some("w"));
    let (pod, container) = (done.node("w"), done.node("w.b"));
    assert_eq!((container["displayName"].as_str(), container["templateName"].as_str()), (Some("b"), Some("main")));
    assert_eq!((pod["progress"].as_str(), container["progress"].as_str()), (Some("1/1"), Some("1/1")));
}

#[test]
fn a13_containers_come_into_being_with_their_pod_and_wait_until_it_tells_of_them() {
    let mut play = Play::new(PAIR);
    let run = play.engine.run_of::<octoflow_engine::argo::Run>(RUN).unwrap();
    let phases: Vec<&str> = run.state.nodes.iter().map(|node| node.phase.word()).collect();
    assert_eq!(phases, ["Pending"; 3]);
    assert_eq!(run.state.progress, (0, 3));
    play.restart(ROOMY, true);
    assert_eq!(play.finish().phase(), "Succeeded");
}

#[test]
fn containers_are_followed_while_their_pod_runs() {
    let mut play = Play::new(PAIR);
    let attempt = AttemptId { run: RUN, task: NodeIx(0), attempt: 0 };
    let tell = |play: &mut Play, name: &str, exit: Option<Exit>| {
        let at = play.now;
        let ended = exit.as_ref().map(|_| at);
        let member = MemberEnd { name: name.to_owned(), started: Some(at), ended, exit };
        play.input(Input::Report(Report::Container { attempt, at, member: Box::new(member) }));
    };
    let phases = |play: &Play| -> Vec<&str> {
        play.engine.run_of::<octoflow_engine::argo::Run>(RUN).unwrap().state.nodes[1..]
            .iter()
            .map(|node| node.phase.word())
            .collect()
    };
    tell(&mut play, "a", None);
    assert_eq!(phases(&play), ["Running", "Pending"]);
    let facts = play.facts.len();
    tell(&mut play, "a", None);
    tell(&mut play, "nobody", Some(Exit::Code(1)));
    assert_eq!(play.facts.len(), facts, "nothing new was told");
    tell(&mut play, "a", Some(Exit::Code(0)));
    tell(&mut play, "b", None);
    assert_eq!(phases(&play), ["Succeeded", "Running"]);
    assert_eq!(play.engine.run_of::<octoflow_engine::argo::Run>(RUN).unwrap().state.progress, (1, 3));
    play.restart(ROOMY, false);
    let done = play.finish();
    assert_eq!((done.phase(), done.status()["progress"].as_str()), ("Succeeded", Some("3/3")));
}

#[test]
fn containers_of_a_set_inside_steps_have_the_name_of_their_step() {
    let done = check(
        "
templates:
- {name: main, steps: [[{name: s, template: set}], [{name: t, template: ok}]]}
- name: set
  containerSet: {containers: [{name: x, image: i, command: [c]}]}
---
all:
  w: Steps Succeeded
  w[0]: StepGroup Succeeded
  w[0].s: Pod Succeeded
  w[0].s.x: Container Succeeded
  w[1]: StepGroup Succeeded
  w[1].t: Pod Succeeded
progress: 3/3",
    );
    assert_eq!(done.node("w")["progress"], "3/3");
    assert_eq!(done.node("w[0].s")["progress"], "1/1", "a pod speaks for itself");
}

#[test]
fn g13_what_depends_on_a_killed_container_never_runs_and_the_pod_names_it() {
    check(&format!(
        "{PAIR}
---
answers: {{w: {{exit: 137, containers: {{a: 137, b: null}}}}}}
all: {{w: Pod Failed, w.a: Container Failed, w.b: Container Error}}
messages:
  w: 'a: Error (exit code 137)'
  w.a: Error (exit code 137)
  w.b: \"Error (exit code 64): dependency 'a' exited with non-zero code: 137\"
phase: Failed
message: 'a: Error (exit code 137)'
progress: 0/3"
    ));
}

#[test]
fn g13_the_signal_of_a_named_main_container_is_told_with_its_name() {
    for (signal, code) in [(15, 143), (9, 137)] {
        check(&format!(
            "
templates: [{{name: main, container: {{name: work, image: i, command: [c]}}}}]
---
answers: {{w: {{signal: {signal}}}}}
phase: Failed
message: 'work: Error (exit code {code})'"
        ));
    }
}

const SIDE: &str = "
templates:
- name: main
  container: {image: i, command: [c]}
  initContainers: [{name: before, image: i, command: [c]}]
  sidecars: [{name: side, image: i, command: [c]}]";

#[test]
fn j24_a_sidecar_that_had_to_be_ended_does_no_harm() {
    for code in [0, 137, 143] {
        check(&format!(
            "{SIDE}
---
answers: {{w: {{exit: 0, containers: {{side: {code}}}}}}}
all: {{w: Pod Succeeded}}
progress: 1/1"
        ));
    }
}

#[test]
fn a_sidecar_that_fails_by_itself_fails_the_node_and_a_failed_main_comes_first() {
    check(&format!(
        "{SIDE}
---
answers: {{w: {{exit: 0, containers: {{side: 2}}}}}}
phase: Failed
message: 'side: Error (exit code 2)'"
    ));
    let done = check(&format!(
        "{SIDE}
---
answers: {{w: {{exit: 3, containers: {{main: 3, side: 2}}}}}}
phase: Failed
message: 'main: Error (exit code 3)'"
    ));
    assert_eq!(done.node("w")["outputs"]["exitCode"], "3");
}

#[test]
fn a_failed_container_goes_by_its_own_name_where_it_has_one() {
    for (kind, name) in [("container", "own"), ("script", "own"), ("container", "main")] {
        let named = if name == "main" { String::new() } else { format!("name: {name}, ") };
        let source = if kind == "script" { ", source: x" } else { "" };
        check(&format!(
            "
templates:
- name: main
  {kind}: {{{named}image: i, command: [c]{source}}}
---
answers: {{main: 3}}
phase: Failed
message: '{name}: Error (exit code 3)'"
        ));
    }
}

#[test]
fn a_failed_init_container_is_named() {
    check(&format!(
        "{SIDE}
---
answers: {{w: {{exit: 1, containers: {{before: 1, main: null, side: null}}}}}}
phase: Failed
message: 'before: Error (exit code 1)'"
    ));
}

#[test]
fn j25_retries_and_their_pause_reach_the_runtime() {
    let done = check(
        "
arguments: {parameters: [{name: often, value: '2'}]}
templates:
- name: main
  containerSet:
    retryStrategy: {retries: '{{workflow.parameters.often}}', duration: 5s}
    containers: [{name: main, image: i, command: [c]}]
---
phase: Succeeded",
    );
    let pod = done.tasks["w"].pod.as_deref().unwrap();
    assert_eq!((pod.retries, pod.pause), (2, Duration::from_secs(5)));
}

#[test]
fn a_retried_pod_has_new_containers_each_time() {
    let play = Play::with(
        "
templates:
- name: main
  retryStrategy: {limit: 1}
  containerSet: {containers: [{name: a, image: i, command: [c]}]}",
        Script::default().on("w(0)", Answer { containers: vec![("a".to_owned(), Some(1))], ..exit(1) }),
    );
    let done = play.finish();
    let phases = done.phases();
    assert_eq!(phases["w(0).a"], "Container Failed");
    assert_eq!(phases["w(1).a"], "Container Succeeded");
    assert_eq!((phases["w"].as_str(), done.status()["progress"].as_str()), ("Retry Succeeded", Some("2/4")));
}

#[test]
fn a_task_says_everything_about_its_containers() {
    let done = check(
        "
arguments: {parameters: [{name: who, value: me}]}
volumes: [{name: work, emptyDir: {}}, {name: more, emptyDir: {}}]
templates:
- name: main
  terminationGracePeriodSeconds: 7
  container: {image: i, command: [c], volumeMounts: [{name: work, mountPath: /work}]}
  initContainers:
  - {name: one, image: j, command: [x], mirrorVolumeMounts: true, workingDir: /in,
     env: [{name: WHO, value: '{{workflow.parameters.who}}'}], args: [$(WHO)]}
  sidecars:
  - {name: two, image: k, tty: true, volumeMounts: [{name: more, mountPath: /more}]}
---
phase: Succeeded",
    );
    let task = &done.tasks["w"];
    let members = &task.pod.as_deref().unwrap().members;
    let parts: Vec<(Part, &str)> = members.iter().map(|member| (member.part, member.container.name.as_str())).collect();
    assert_eq!(parts, [(Part::Init, "one"), (Part::Main, "main"), (Part::Sidecar, "two")]);
    let one = &members[0];
    assert_eq!((one.container.args[0].as_str(), one.container.working_dir.as_deref()), ("me", Some("/in")));
    assert!(one.container.env.contains(&("ARGO_CONTAINER_NAME".to_owned(), EnvValue::Plain("one".to_owned()))));
    assert_eq!(one.mounts, task.mounts, "it sees what main sees");
    assert_eq!(members[2].mounts[0].source, MountSource::Scratch { name: "more".to_owned() });
    assert!(members[2].container.tty);
    assert_eq!(task.grace, Duration::from_secs(7));
    assert_eq!(task.progress.as_deref(), Some("ARGO_PROGRESS_FILE"));
}

#[test]
fn a_plain_task_has_no_pod() {
    let done = check("templates: [{name: main, container: {image: i, command: [c]}}]\n---\nphase: Succeeded");
    assert_eq!(done.tasks["w"].pod, None);
}

#[test]
fn the_result_of_a_set_is_that_of_main_and_others_have_none() {
    let spec = |name: &str| {
        format!(
            "
templates:
- {{name: main, steps: [[{{name: s, template: set}}], [{{name: t, template: echo,
   arguments: {{parameters: [{{name: m, value: '{{{{steps.s.outputs.result}}}}'}}]}}}}]]}}
- {{name: set, containerSet: {{containers: [{{name: {name}, image: i, command: [c]}}]}}}}"
        )
    };
    let done = check(&format!("{}\n---\nanswers: {{s: {{result: hello}}}}\nsaid: {{t: hello}}", spec("main")));
    assert!(done.tasks["w[0].s"].wanted.result);
    let play = Play::new(&spec("other"));
    assert!(!play.tasks["w[0].s"].wanted.result);
}

#[test]
fn stopping_a_run_ends_its_pods_and_their_containers() {
    let mut play = Play::with(PAIR, Script::default().on("w", never()));
    play.command(Command::Stop).unwrap();
    let done = play.finish();
    assert_eq!(done.phase(), "Failed");
    assert_eq!((done.node_phase("w.a"), done.node_message("w.a")), ("Failed", "Error (exit code 143)"));
}

#[test]
fn containers_of_a_lost_pod_are_lost_with_it() {
    let done = check(&format!(
        "{PAIR}
---
answers: {{w: {{lost: gone}}}}
nodes: {{w: Error, w.a: Error, w.b: Error}}
messages: {{w.a: 'lost: gone'}}
phase: Error"
    ));
    assert_eq!(done.status()["progress"], "0/3");
}

#[test]
fn a_pod_that_never_came_so_far_takes_its_containers_along() {
    check(&format!(
        "{PAIR}
---
answers: {{w: {{surroundings: no room}}}}
nodes: {{w: Error, w.a: Error, w.b: Error}}
messages: {{w: no room, w.b: no room}}"
    ));
}

fn progress(play: &mut Play, done: u32, total: u32) {
    let attempt = AttemptId { run: RUN, task: NodeIx(1), attempt: 0 };
    let at = play.now;
    play.input(Input::Report(Report::Progress { attempt, at, done, total }));
}

fn shown(play: &Play) -> (String, String) {
    let status = octoflow_engine::argo::status::status(
        play.engine.run_of::<octoflow_engine::argo::Run>(RUN).expect("the run is there"),
    );
    let nodes = status["nodes"].as_object().expect("nodes are a map");
    let of = |name: &str| {
        let node = nodes.values().find(|node| node["name"] == name).expect("the node is there");
        node["progress"].as_str().expect("it has progress").to_owned()
    };
    assert_eq!(status["progress"], *of("w"), "the root has what the run has");
    (of("w.p"), of("w"))
}

#[test]
fn j22_progress_is_what_the_task_says_and_all_of_it_at_a_good_end() {
    let spec = "templates: [{name: main, dag: {tasks: [{name: p, template: ok}]}}]";
    let mut play = Play::new(spec);
    let both = |text: &str| (text.to_owned(), text.to_owned());
    assert_eq!(shown(&play), both("0/1"));
    progress(&mut play, 0, 100);
    assert_eq!(shown(&play), both("0/100"));
    progress(&mut play, 50, 100);
    assert_eq!(shown(&play), both("50/100"));
    let facts = play.facts.len();
    progress(&mut play, 50, 100);
    assert_eq!(play.facts.len(), facts, "the same again is no news");
    play.restart(ROOMY, false);
    assert_eq!(shown(&play), both("50/100"));
    let done = play.finish();
    assert_eq!(
        (done.node("w.p")["progress"].as_str(), done.status()["progress"].as_str()),
        (Some("100/100"), Some("100/100"))
    );
}

#[test]
fn j22_a_failed_task_stays_where_it_was() {
    let spec = "templates: [{name: main, dag: {tasks: [{name: p, template: fail}]}}]";
    let mut play = Play::new(spec);
    progress(&mut play, 50, 100);
    let done = play.finish();
    assert_eq!(done.node("w.p")["progress"], "50/100");
}

#[test]
fn a_patch_that_cannot_be_read_is_an_error_of_the_node() {
    check(
        "
templates:
- {name: main, steps: [[{name: s, template: patched, arguments: {parameters: [{name: p, value: '[1'}]}}]]}
- name: patched
  inputs: {parameters: [{name: p}]}
  podSpecPatch: '{\"a\": {{inputs.parameters.p}}}'
  container: {image: i, command: [c]}
---
nodes: {s: Error}
messages: {s: podSpecPatch is neither JSON nor YAML}",
    );
    check(
        "
arguments: {parameters: [{name: p, value: words}]}
podSpecPatch: '{{workflow.parameters.p}}'
templates: [{name: main, container: {image: i, command: [c]}}]
---
nodes: {w: Error}
messages: {w: spec.podSpecPatch must be one object}",
    );
}

#[test]
fn all_containers_of_a_pod_count_for_the_scheduler() {
    let done = check(
        "
templates:
- name: main
  container: {image: i, command: [c], resources: {requests: {cpu: 100m}}}
  initContainers: [{name: before, image: i, command: [c], resources: {requests: {cpu: '1', memory: 1Ki}}}]
  sidecars: [{name: side, image: i, command: [c], resources: {limits: {cpu: 200m}}}]
---
phase: Succeeded",
    );
    let resources = &done.tasks["w"].resources;
    assert_eq!((resources.cpu_milli, resources.memory_bytes), (1000, 1024));
}

#[test]
fn g13_the_limit_of_memory_of_every_container_reaches_its_task() {
    let done = check(
        "
arguments: {parameters: [{name: room, value: 50Mi}]}
templates:
- name: main
  container: {image: i, command: [c],
    resources: {requests: {memory: 1Ki}, limits: {memory: '{{workflow.parameters.room}}'}}}
  initContainers: [{name: before, image: i, command: [c], resources: {limits: {memory: 1Ki, cpu: 2}}}]
  sidecars:
  - {name: side, image: i, command: [c], resources: {limits: {memory: 1.5k}}}
  - {name: free, image: i, command: [c], resources: {requests: {memory: 1Ki}}}
---
phase: Succeeded",
    );
    let task = &done.tasks["w"];
    let limits = |members: &[Member]| -> Vec<Option<u64>> {
        members.iter().map(|member| member.container.memory_limit).collect()
    };
    assert_eq!(task.main.memory_limit, Some(50 << 20));
    assert_eq!(limits(&task.pod.as_deref().unwrap().members), [Some(1024), Some(50 << 20), Some(1500), None]);
    assert_eq!(task.resources.memory_bytes, 1024 + 1500 + 1024, "the scheduler counts what is asked for");

    let done = check(
        "
templates:
- {name: main, steps: [[{name: s, template: script}], [{name: t, template: set}]]}
- {name: script, script: {image: i, command: [c], source: x, resources: {limits: {memory: 1Mi}}}}
- name: set
  containerSet:
    containers:
    - {name: a, image: i, command: [c], resources: {limits: {memory: 2Mi}}}
    - {name: b, image: i, command: [c]}
---
phase: Succeeded",
    );
    assert_eq!(done.tasks["w[0].s"].main.memory_limit, Some(1 << 20));
    assert_eq!(limits(&done.tasks["w[1].t"].pod.as_deref().unwrap().members), [Some(2 << 20), None]);
}

#[test]
fn a_limit_of_memory_that_is_no_amount_is_an_error_of_the_node() {
    check(
        "
arguments: {parameters: [{name: room, value: plenty}]}
templates:
- name: main
  container: {image: i, command: [c], resources: {limits: {memory: '{{workflow.parameters.room}}'}}}
---
nodes: {w: Error}
messages: {w: \"resources.limits.memory 'plenty' is not an amount\"}",
    );
}
