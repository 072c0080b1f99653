//! Tests of the admission of jobs: by scenario, with the path of every problem, and all of them at once.

use octoflow_manifest::{Limits, Problem, Severity, read};
use serde_json::json;

use super::*;
use crate::{
    admit::admit,
    kinds::{
        Kind,
        scheduling::{QueueState, QueueTree},
    },
    schedule::spec::QueueSpec,
};

/// A catalog with everything, and with these queues if there are any.
#[derive(Default)]
struct Objects(Option<QueueTree>);

impl Catalog for Objects {
    fn has_object(&self, _: &'static Kind, _: &str, name: &str) -> bool {
        name != "missing"
    }
    fn queue(&self, name: &str) -> Option<QueueState> {
        self.0.as_ref().map(|tree| tree.state(name))
    }
}

/// A job with this spec; a task that says nothing else has a container.
fn job(text: &str) -> Value {
    let documents = read("test", text.as_bytes(), &Limits::default()).unwrap_or_else(|problems| panic!("{problems}"));
    let mut spec = documents.into_iter().next().unwrap().value;
    for task in spec["tasks"].as_array_mut().into_iter().flatten() {
        if task["template"].is_null() {
            task["template"]["spec"] = json!({"containers": [{"name": "main", "image": "busybox"}]});
        }
    }
    json!({"apiVersion": API_VERSION, "kind": "Job", "metadata": {"name": "j"}, "spec": spec})
}

fn told(problems: impl IntoIterator<Item = Problem>) -> Vec<String> {
    let place = |problem: &Problem| problem.path.as_ref().map(ToString::to_string).unwrap_or_default();
    problems.into_iter().map(|problem| format!("{} {}: {}", problem.code, place(&problem), problem.message)).collect()
}

/// The errors, each as `code place: message`.
fn refused(object: &Value) -> Vec<String> {
    match examine(object, &Objects::default()) {
        Ok(_) => panic!("it was let in: {object:#}"),
        Err(problems) => told(problems.0.into_iter().filter(|problem| problem.severity == Severity::Error)),
    }
}

fn warned(object: &Value) -> Vec<String> {
    let admitted = examine(object, &Objects::default()).unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    told(admitted.warnings)
}

/// Exactly these problems, by how they begin.
fn alike(found: &[String], wanted: &[&str]) {
    let fits = found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| found.starts_with(wanted));
    assert!(fits, "{found:#?}\nis not\n{wanted:#?}");
}

#[test]
fn vj01_a_minimal_job_is_let_in_as_it_was_written() {
    let object = job("tasks: [{replicas: 3}]");
    let admitted = examine(&object, &Objects::default()).unwrap();
    assert_eq!(admitted.manifest, object);
    assert!(admitted.warnings.is_empty(), "{:?}", admitted.warnings);
}

#[test]
fn one_fault_is_told_once() {
    for (spec, wanted) in [
        (
            "{tasks: [{}], policies: [{event: OutOfSync, action: AbortJob}]}",
            "OF1041 spec.policies[0].event: `OutOfSync` is not one of: PodFailed, ",
        ),
        (
            "tasks: [{policies: [{events: [OutOfSync], action: AbortJob}]}]",
            "OF1041 spec.tasks[0].policies[0].events[0]: `OutOfSync` is not one of: PodFailed, ",
        ),
        (
            "tasks: [{replicas: 5, partitionPolicy: {totalPartitions: 3, partitionSize: 2, minPartitions: 3}}]",
            "OF1080 spec.tasks[0].partitionPolicy: task 'default0': 3 partitions of 2 pods are 6 pods",
        ),
        (
            "tasks: [{replicas: 5, partitionPolicy: {totalPartitions: many, partitionSize: 9, minPartitions: 1}}]",
            "OF1010 spec.tasks[0].partitionPolicy.totalPartitions: ",
        ),
        ("tasks: [{replicas: many, minAvailable: 3}]", "OF1010 spec.tasks[0].replicas: "),
    ] {
        alike(&refused(&job(spec)), &[wanted]);
    }
}

#[test]
fn vj02_each_mistake_is_told_with_its_path() {
    for (spec, wanted) in [
        ("{tasks: []}", "OF1016 spec.tasks: a Job needs at least one task"),
        ("tasks: [{name: a}, {name: a}]", "OF1015 spec.tasks[1].name: two tasks are called 'a'"),
        ("tasks: [{name: A}]", "OF1014 spec.tasks[0].name: tasks[0].name 'A' is invalid"),
        ("{minAvailable: 9, tasks: [{replicas: 3}]}", "OF1081 spec.minAvailable: minAvailable 9 is more than the 3"),
        ("tasks: [{replicas: 3, minAvailable: 4}]", "OF1081 spec.tasks[0].minAvailable: task 'default0'"),
        ("{plugins: {evn: []}, tasks: [{}]}", "OF1080 spec.plugins.evn: there is no plugin `evn`"),
        (
            "{plugins: {pytorch: [--prt=1]}, tasks: [{name: master}]}",
            "OF1080 spec.plugins.pytorch: plugin pytorch has no",
        ),
        ("{plugins: {mpi: []}, tasks: [{name: worker}]}", "OF1080 spec.plugins.mpi: plugin mpi needs a task `master`"),
        ("{plugins: {ray: []}, tasks: [{name: worker}]}", "OF1080 spec.plugins.ray: plugin ray needs a task `head`"),
        ("{volumes: [{volumeClaimName: c}], tasks: [{}]}", "OF1016 spec.volumes[0].mountPath: volumes[0].mountPath"),
        ("{volumes: [{mountPath: d, volumeClaimName: c}], tasks: [{}]}", "OF1038 spec.volumes[0].mountPath:"),
        ("{volumes: [{mountPath: /d, volumeClaim: x}], tasks: [{}]}", "OF1010 spec.volumes[0].volumeClaim:"),
        (
            "{volumes: [{mountPath: /d, volumeClaimName: c}, {mountPath: /d, volumeClaimName: e}], tasks: [{}]}",
            "OF1037 spec.volumes[1].mountPath: two volumes are mounted at '/d'",
        ),
        (
            "tasks: [{policies: [{event: PodFailed, exitCode: 1}]}]",
            "OF1080 spec.tasks[0].policies[0]: policies[0] is about",
        ),
        (
            "tasks: [{policies: [{action: AbortJob}]}]",
            "OF1080 spec.tasks[0].policies[0]: policies[0] must name an event",
        ),
        ("tasks: [{policies: [{exitCode: 0}]}]", "OF1080 spec.tasks[0].policies[0].exitCode: exit code 0 is success"),
        ("{policies: [{event: '*'}, {exitCode: 1}], tasks: [{}]}", "OF1080 spec.policies[0]: `*` is every event"),
        ("{policies: [{events: ['*', PodFailed]}], tasks: [{}]}", "OF1080 spec.policies[0]: `*` is every event"),
        (
            "{policies: [{event: PodFailed}, {events: [PodFailed]}], tasks: [{}]}",
            "OF1080 spec.policies[1]: two policies of one list are about the event PodFailed",
        ),
        ("{policies: [{exitCode: 3}, {exitCode: 3}], tasks: [{}]}", "OF1080 spec.policies[1].exitCode: two policies"),
        ("{policies: [{event: PodFailed, timeout: soon}], tasks: [{}]}", "OF1033 spec.policies[0].timeout: `soon`"),
        ("{runningEstimate: long, tasks: [{}]}", "OF1033 spec.runningEstimate: `long`"),
        ("{policies: [{event: PodFailed, action: SyncJob}], tasks: [{}]}", "OF1041 spec.policies[0].action"),
        (
            "tasks: [{name: a, dependsOn: {name: [b]}}]",
            "OF1025 spec.tasks[0].dependsOn.name[0]: task 'a' waits for 'b'",
        ),
        (
            "tasks: [{name: a, dependsOn: {name: [a]}}]",
            "OF1027 spec.tasks[0].dependsOn: tasks wait for each other in a circle: a->a",
        ),
        (
            "tasks: [{name: x}, {name: a, dependsOn: {name: [b]}}, {name: b, dependsOn: {name: [a]}}]",
            "OF1027 spec.tasks[1].dependsOn: tasks wait for each other in a circle: a->b->a",
        ),
        (
            "tasks: [{name: a, dependsOn: {name: [b]}}, {name: b, dependsOn: {name: [a]}}, {name: c, dependsOn: {name: [a]}}]",
            "OF1027 spec.tasks[0].dependsOn: tasks wait for each other in a circle: a->b->a",
        ),
        (
            "tasks: [{replicas: 5, partitionPolicy: {totalPartitions: 2, partitionSize: 2}}]",
            "OF1080 spec.tasks[0].partitionPolicy: task 'default0': 2 partitions of 2 pods are 4 pods",
        ),
        (
            "tasks: [{replicas: 4, partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 3}, minAvailable: 1}]",
            "OF1081 spec.tasks[0].partitionPolicy.minPartitions:",
        ),
        ("{queue: root, tasks: [{}]}", "OF1085 spec.queue: queue `root` is above all queues"),
        ("tasks: [{replicas: 60000}, {replicas: 60000}]", "OF1041 spec.tasks: 120000 pods in all"),
        (
            "tasks: [{template: {spec: {containers: []}}}]",
            "OF1016 spec.tasks[0].template.spec.containers: task 'default0' needs",
        ),
        ("{minSuccess: 0, tasks: [{}]}", "OF1041 spec.minSuccess"),
        ("{replicas: 3, tasks: [{}]}", "OF1003 spec.replicas"),
    ] {
        alike(&refused(&job(spec)), &[wanted]);
    }
}

#[test]
fn vj02_all_mistakes_are_told_at_once() {
    let found = refused(&job(
        "{minAvailable: 9, plugins: {none: []}, tasks: [{name: a, replicas: 1, minAvailable: 2}, {name: a, policies: [{exitCode: 0}]}]}",
    ));
    alike(
        &found,
        &[
            "OF1081 spec.minAvailable",
            "OF1081 spec.tasks[0].minAvailable",
            "OF1015 spec.tasks[1].name",
            "OF1080 spec.tasks[1].policies[0].exitCode",
            "OF1080 spec.plugins.none",
        ],
    );
}

#[test]
fn names_of_pods_fit_into_labels() {
    let mut long = job("tasks: [{name: a-task-with-a-long-name, replicas: 1000}]");
    long["metadata"]["name"] = json!("a-job-with-a-name-that-is-quite-long");
    alike(&refused(&long), &["OF1014 spec.tasks[0].name: its pods would have names of 64 characters"]);
    long["metadata"] = json!({"generateName": "a-job-with-a-name-that-is-quite"});
    alike(&refused(&long), &["OF1014 spec.tasks[0].name: its pods would have names of 64 characters"]);
    long["metadata"] = json!({"name": "Upper"});
    alike(&refused(&long), &["OF1014 metadata.name: metadata.name 'Upper' is invalid"]);
    long["metadata"] = json!({});
    alike(&refused(&long), &["OF1016 metadata: metadata.name or metadata.generateName is required"]);
}

#[test]
fn vj24_queues_that_take_nothing_are_refused() {
    let mut tree = QueueTree::default();
    tree.put(QueueSpec::new("team"), false);
    tree.put(QueueSpec { parent: Some("team".into()), ..QueueSpec::new("leaf") }, false);
    tree.put(QueueSpec::new("old"), true);
    let objects = Objects(Some(tree));
    for queue in ["old", "none", "team", "root"] {
        let problems = admit(&job(&format!("{{queue: {queue}, tasks: [{{}}]}}")), &objects).unwrap_err();
        alike(&told(problems.0), &["OF1085 spec.queue: "]);
    }
    assert!(admit(&job("{queue: leaf, tasks: [{}]}"), &objects).is_ok());
}

#[test]
fn what_has_no_effect_is_a_warning() {
    for (spec, wanted) in [
        ("{networkTopology: {mode: hard}, tasks: [{}]}", "OF1013 spec.networkTopology"),
        ("tasks: [{topologyPolicy: best-effort}]", "OF1013 spec.tasks[0].topologyPolicy"),
        (
            "{policies: [{event: PodPending, action: AbortJob}], tasks: [{}]}",
            "OF1080 spec.policies[0]: PodPending counts",
        ),
        ("{policies: [{event: Unknown, action: AbortJob}], tasks: [{}]}", "OF1080 spec.policies[0]: Unknown is never"),
        (
            "tasks: [{policies: [{event: JobUpdated, action: AbortJob}]}]",
            "OF1080 spec.tasks[0].policies[0]: JobUpdated is about no pod",
        ),
        (
            "{volumes: [{mountPath: /d, volumeClaimName: c, volumeClaim: {}}], tasks: [{}]}",
            "OF1037 spec.volumes[0]: volumes[0] has both volumeClaimName and volumeClaim",
        ),
        ("{volumes: [{mountPath: /d}], tasks: [{}]}", "OF1037 spec.volumes[0]: volumes[0] has neither"),
        ("{minSuccess: 2, tasks: [{}]}", "OF1080 spec.minSuccess: minSuccess 2 is more than the 1 pods"),
        ("tasks: [{replicas: 0}]", "OF1080 spec.tasks: the Job has no pods"),
        ("{plugins: {tensorflow: []}, tasks: [{}]}", "OF1080 spec.plugins.tensorflow: plugin tensorflow has no effect"),
        (
            "{plugins: {pytorch: []}, tasks: [{name: worker}]}",
            "OF1080 spec.plugins.pytorch: plugin pytorch has no effect",
        ),
        (
            "{volumes: [{mountPath: /d, volumeClaimName: missing}], tasks: [{}]}",
            "OF1040 spec.volumes[0].volumeClaimName",
        ),
        (
            "tasks: [{name: a}, {name: b, dependsOn: {name: [a]}}]",
            "OF1081 spec.minAvailable: minAvailable 2 includes pods of tasks that wait for others",
        ),
        (
            "tasks: [{policies: [{event: PodFailed, action: RestartPartition}]}]",
            "OF1080 spec.tasks[0].policies[0].action: the task has no partitions",
        ),
    ] {
        alike(&warned(&job(spec)), &[wanted]);
    }
    let quiet = "{minAvailable: 1, tasks: [{name: a}, {name: b, dependsOn: {name: [a]}}]}";
    assert!(warned(&job(quiet)).is_empty());
}

#[test]
fn advice_needs_no_other_object() {
    let object = job("{volumes: [{mountPath: /d, volumeClaimName: missing}], minSuccess: 2, tasks: [{}]}");
    alike(&told(advice(&object)), &["OF1080 spec.minSuccess"]);
}

#[test]
fn a_chain_of_thousands_of_tasks_is_let_in() {
    let tasks: Vec<Value> = (0..20_000)
        .map(|at| {
            let needs = if at == 0 { json!([]) } else { json!([format!("t{}", at - 1)]) };
            json!({"name": format!("t{at}"), "dependsOn": {"name": needs},
                   "template": {"spec": {"containers": [{"name": "m", "image": "i"}]}}})
        })
        .collect();
    let mut object = job("{minAvailable: 1, tasks: [{}]}");
    object["spec"]["tasks"] = json!(tasks);
    assert!(examine(&object, &Objects::default()).is_ok());
}
