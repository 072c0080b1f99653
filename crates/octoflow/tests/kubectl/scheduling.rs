//! Queues, classes, groups and nodes as kubectl manages them, on the real binary.

use crate::rig::{Rig, eventually, shows};

const QUEUES: &str = "apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team}
spec: {deserved: {cpu: '1'}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team-a}
spec: {parent: team, weight: 2}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: scheduling.incubator.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: group}
spec: {minMember: 2}
";

/// A workflow whose only step runs until the file is there.
fn gated(name: &str, gate: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: {name}, labels: {{volcano.sh/queue-name: team-a}}}}
spec:
  entrypoint: main
  templates:
  - name: main
    container:
      image: busybox
      command: [sh, -c, 'until [ -e {gate} ]; do sleep 0.05; done']
"
    )
}

#[test]
fn queues_are_created_shown_and_not_deleted_under_load() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let file = rig.file("queues.yaml", QUEUES);
    shows(&rig.good(&["apply", "-f", &file]), &["queue.scheduling.volcano.sh/team-a created"]);
    shows(
        &rig.good(&["apply", "-f", &file]),
        &["team-a unchanged", "podgroup.scheduling.incubator.k8s.io/group unchanged"],
    );
    shows(&rig.good(&["get", "q"]), &["NAME", "PARENT", "default", "root", "team-a"]);
    shows(&rig.good(&["get", "queues", "-o", "wide"]), &["WEIGHT", "STATE", "ALLOCATED", "Open"]);
    shows(&rig.good(&["get", "pc"]), &["high", "1000", "PreemptLowerPriority"]);
    shows(&rig.good(&["get", "podgroups.scheduling.volcano.sh"]), &["group", "Pending"]);
    shows(&rig.good(&["explain", "queue.spec.deserved"]), &["lent"]);
    shows(&rig.good(&["describe", "queue", "team-a"]), &["Parent:", "team", "State:"]);
    shows(&rig.bad(&["delete", "queue", "team"]), &["Conflict", "team-a"]);
    shows(&rig.bad(&["delete", "queue", "default"]), &["always exists"]);
    shows(
        &rig.good(&["patch", "queue", "default", "--type", "merge", "-p", "{\"spec\":{\"weight\":3}}"]),
        &["patched"],
    );

    let gate = rig.path("gate").display().to_string();
    let workflow = rig.file("w.yaml", &gated("w", &gate));
    rig.good(&["create", "-f", &workflow]);
    let running = || rig.good(&["get", "queue", "team-a", "-o", "jsonpath={.status.running}"]);
    eventually("its task runs", || running() == "1");
    assert_eq!(rig.good(&["get", "queue", "team", "-o", "jsonpath={.status.running}"]), "1", "what is below counts");
    shows(&rig.bad(&["delete", "queue", "team-a"]), &["Conflict", "tasks wait or run in it"]);
    let wrong = rig.file("wrong.yaml", &gated("x", &gate).replace("team-a}", "taem-a}"));
    shows(&rig.bad(&["create", "-f", &wrong]), &["there is no queue `taem-a`", "did you mean `team-a`?"]);
    std::fs::write(rig.path("gate"), "").unwrap();
    eventually("its task is over", || running() == "0");
    rig.good(&["delete", "queue", "team-a"]);
    rig.good(&["delete", "queue", "team"]);
}

#[test]
fn a_node_is_cordoned_labelled_tainted_and_drained() {
    let Some(mut rig) = Rig::with_kubectl() else { return };
    let name = rig.good(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]);
    shows(&rig.good(&["label", "node", &name, "rack=7"]), &["labeled"]);
    shows(&rig.good(&["taint", "node", &name, "gpu=yes:PreferNoSchedule"]), &["tainted"]);
    let gate = rig.path("gate").display().to_string();
    rig.good(&["apply", "-f", &rig.file("queues.yaml", QUEUES)]);
    rig.good(&["create", "-f", &rig.file("w.yaml", &gated("w", &gate))]);
    let running = |rig: &Rig| rig.good(&["get", "queue", "team-a", "-o", "jsonpath={.status.running}"]);
    eventually("its task runs", || running(&rig) == "1");

    shows(&rig.good(&["drain", &name, "--timeout=60s"]), &["cordoned", "drained"]);
    assert_eq!(running(&rig), "0");
    shows(&rig.good(&["get", "nodes"]), &["Ready,SchedulingDisabled"]);
    rig.restart();
    shows(&rig.good(&["get", "nodes", "--show-labels"]), &["SchedulingDisabled", "rack=7"]);
    shows(&rig.good(&["describe", "node", &name]), &["gpu=yes:PreferNoSchedule", "Unschedulable:      true"]);
    assert_eq!(running(&rig), "0");

    shows(&rig.good(&["uncordon", &name]), &["uncordoned"]);
    eventually("its task runs again", || running(&rig) == "1");
    std::fs::write(rig.path("gate"), "").unwrap();
    eventually("the workflow succeeds", || {
        rig.good(&["get", "wf", "w", "-o", "jsonpath={.status.phase}"]) == "Succeeded"
    });
}

#[test]
fn a_taint_that_is_not_tolerated_ends_what_runs_and_keeps_it_away() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let name = rig.good(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]);
    rig.good(&["apply", "-f", &rig.file("queues.yaml", QUEUES)]);
    let gate = rig.path("gate").display().to_string();
    rig.good(&["create", "-f", &rig.file("w.yaml", &gated("w", &gate))]);
    let tolerant = gated("tolerant", &gate).replace(
        "    container:",
        "    tolerations: [{key: broken, operator: Exists, effect: NoExecute}]\n    container:",
    );
    rig.good(&["create", "-f", &rig.file("t.yaml", &tolerant)]);
    let running = || rig.good(&["get", "queue", "team-a", "-o", "jsonpath={.status.running}"]);
    eventually("both run", || running() == "2");
    shows(&rig.good(&["taint", "node", &name, "broken=disk:NoExecute"]), &["tainted"]);
    eventually("one is ended", || running() == "1");
    shows(&rig.good(&["describe", "node", &name]), &["broken=disk:NoExecute"]);
    let told = "has the taint broken, which is not tolerated";
    shows(&rig.good(&["get", "wf", "w", "-o", "jsonpath={.status.nodes}"]), &[told, "Pending"]);
    shows(&rig.good(&["describe", "wf", "w"]), &["Preempted", told]);
    let metrics = rig.get("/metrics").text();
    shows(
        &metrics,
        &["volcano_e2e_scheduling_latency_milliseconds_count 2", "octoflow_preemptions_total{reason=\"taint\"} 1"],
    );
    shows(&rig.good(&["taint", "node", &name, "broken-"]), &["untainted"]);
    eventually("it runs again", || running() == "2");
    std::fs::write(rig.path("gate"), "").unwrap();
    for workflow in ["w", "tolerant"] {
        eventually("the workflow succeeds", || {
            rig.good(&["get", "wf", workflow, "-o", "jsonpath={.status.phase}"]) == "Succeeded"
        });
    }
    eventually("what is through is counted", || {
        rig.get("/metrics").text().contains("volcano_queue_pod_group_completed_count{queue_name=\"team\"} 2")
    });
}

/// Everything that can be wrong with a queue is told at once, with its place, and nothing is stored.
#[test]
fn bad_queues_are_refused_whole_with_every_reason() {
    let Some(rig) = Rig::with_kubectl() else { return };
    rig.good(&["apply", "-f", &rig.file("queues.yaml", QUEUES)]);
    let queue = |name: &str, spec: &str| {
        format!(
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
        )
    };
    let cases = [
        ("deserved: {cpu: many}, capability: {memory: '-1'}", &["spec.capability.memory", "spec.deserved.cpu"][..]),
        ("guarantee: {resource: {cpu: '-2'}}", &["spec.guarantee", "cpu"]),
        ("deserved: {cpu: '99999999999999999999'}", &["spec.deserved.cpu"]),
        ("deserved: {cpu: 1e40}, guarantee: {resource: {cpu: '3'}}", &["spec.deserved.cpu"]),
        (
            "guarantee: {resource: {cpu: '3'}}, deserved: {cpu: '2'}, capability: {cpu: '1'}",
            &["guarantee", "capability"],
        ),
        ("parent: nobody", &["spec.parent", "nobody"]),
        ("parent: wrong", &["spec.parent"]),
        ("parent: team, deserved: {cpu: '4'}", &["spec.deserved.cpu", "team"]),
        ("weight: 0", &["spec.weight"]),
        ("weight: -3, deserved: {cpu: x}", &["spec.deserved.cpu", "spec.weight"]),
        ("weight: 99999999999", &["spec.weight"]),
    ];
    for (spec, reasons) in cases {
        let file = rig.file("wrong.yaml", &queue("wrong", spec));
        shows(&rig.bad(&["create", "-f", &file]), reasons);
    }
    // A cycle, and a move that the sums do not allow.
    shows(
        &rig.bad(&["patch", "queue", "team", "--type", "merge", "-p", "{\"spec\":{\"parent\":\"team-a\"}}"]),
        &["spec.parent"],
    );
    shows(
        &rig.bad(&["patch", "queue", "team-a", "--type", "merge", "-p", "{\"spec\":{\"deserved\":{\"cpu\":\"2\"}}}"]),
        &["spec.deserved.cpu"],
    );
    assert_eq!(rig.good(&["get", "queue", "team-a", "-o", "jsonpath={.spec.parent}"]), "team");
    shows(&rig.bad(&["get", "queue", "wrong"]), &["not found"]);
    let name = rig.good(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]);
    shows(
        &rig.bad(&[
            "patch",
            "node",
            &name,
            "--subresource",
            "status",
            "--type",
            "merge",
            "-p",
            "{\"status\":{\"capacity\":{\"cpu\":\"-4\"}}}",
        ]),
        &["status.capacity.cpu"],
    );
}

const EXAMPLES: [&str; 4] = [
    include_str!("../../../../examples/scheduling/queues.yaml"),
    include_str!("../../../../examples/scheduling/flood.yaml"),
    include_str!("../../../../examples/scheduling/gang.yaml"),
    include_str!("../../../../examples/scheduling/never.yaml"),
];

const NEVER_IN_A_LOOP: &str = "
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: each-}
spec:
  entrypoint: main
  templates:
    - name: main
      steps: [[{name: one, template: large, withSequence: {count: '3'}}]]
    - name: large
      container: {image: busybox, command: ['true'], resources: {requests: {cpu: '9'}}}
";

/// The examples as a new user tries them, on a server with nothing but a declared number of cores.
#[test]
fn a_new_user_floods_one_queue_takes_back_with_a_gang_drains_restarts_and_plans() {
    let Some(mut rig) = Rig::with_kubectl() else { return };
    let server = format!("http://{}", rig.server.address);
    let octoflow = |rig: &Rig, words: &[&str]| {
        let told = rig.octoflow(&[words, &["--server", &server, "--token", "admin"]].concat());
        assert_eq!(told.code, 0, "octoflow {}\n{told}", words.join(" "));
        told.out
    };
    let node = rig.good(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]);
    octoflow(&rig, &["node", "set", &node, "--capacity", "cpu=8"]);
    let [queues, flood, gang, never] = EXAMPLES;
    let until = format!("until [ -e {} ]; do sleep 0.05; done", rig.path("gate").display());
    rig.good(&["apply", "-f", &rig.file("queues.yaml", queues)]);
    rig.good(&["create", "-f", &rig.file("flood.yaml", &flood.replace("sleep 20", &until))]);
    let running = |rig: &Rig, queue: &str| {
        rig.good(&["get", "queue", queue, "-o", "jsonpath={.status.running}"]).parse::<u32>().unwrap()
    };
    eventually("the flood has all cores", || running(&rig, "small") == 8);

    rig.good(&["create", "-f", &rig.file("gang.yaml", &gang.replace("sleep 10", &until))]);
    eventually("the gang has taken its share back", || (running(&rig, "small"), running(&rig, "large")) == (2, 6));
    let told = octoflow(&rig, &["explain", "flood", "-o", "json"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let waits = told.as_array().into_iter().flatten().chain(told["nodes"].as_array().into_iter().flatten());
    let waits: Vec<_> = waits.filter(|one| one["wait"].is_object()).collect();
    assert_eq!(waits.len(), 10, "{told:#}");
    let path = waits[0]["wait"]["queue"].as_array().unwrap();
    assert_eq!((&path[0]["name"], &path[1]["name"]), (&"small".into(), &"root".into()), "{told:#}");
    assert_eq!((&path[0]["used"]["cpu"], &path[0]["deserved"]["cpu"]), (&"2".into(), &"2".into()), "{told:#}");
    assert!(waits.iter().any(|one| one["wait"]["position"] == 1 && one["wait"]["change"].is_object()), "{told:#}");
    assert!(told.to_string().contains("gang"), "it says for whom steps were ended: {told:#}");

    // An eviction by kubectl is a failure of a replica, which its own policy answers; a drain of ours lets it wait again.
    shows(&octoflow(&rig, &["node", "drain", &node]), &["cordoned", "drained"]);
    eventually("nothing runs", || (running(&rig, "small"), running(&rig, "large")) == (0, 0));
    shows(&octoflow(&rig, &["explain", "gang"]), &["1 node cordoned", &format!("uncordon node {node}")]);
    let pods = || rig.good(&["get", "pods", "-o", "jsonpath={.items[*].metadata.name}"]);
    let pod = pods().split(' ').find(|name| name.starts_with("gang-worker")).unwrap().to_owned();
    shows(&rig.good(&["describe", "pod", &pod]), &["FailedScheduling", "1 node cordoned"]);
    rig.restart();
    assert_eq!((running(&rig, "small"), running(&rig, "large")), (0, 0));
    shows(&rig.good(&["uncordon", &node]), &["uncordoned"]);
    eventually("both have their share again", || (running(&rig, "small"), running(&rig, "large")) == (2, 6));

    let never = rig.file("never.yaml", never);
    shows(&rig.bad(&["create", "--dry-run=server", "-f", &never]), &["cpu", "9", "8"]);
    let planned = rig.octoflow(&["plan", &never, "--server", &server, "--token", "admin"]);
    shows(&format!("{}{}", planned.out, planned.err), &["no node has more than 8", "OF1086"]);
    // The same in a loop whose numbers are written out.
    let each = rig.file("each.yaml", NEVER_IN_A_LOOP);
    shows(&rig.bad(&["create", "--dry-run=server", "-f", &each]), &["cpu", "9", "8"]);
    std::fs::write(rig.path("gate"), "").unwrap();
    eventually("both are over", || {
        rig.good(&["get", "wf", "flood", "-o", "jsonpath={.status.phase}"]) == "Succeeded"
            && rig.good(&["get", "taskset", "gang", "-o", "jsonpath={.status.state}"]) == "Succeeded"
    });
}
