//! Tests of TaskSet admission: by scenario, with the path of every problem, and all of them at once.

use octoflow_manifest::{Limits, Problem, Severity, read};
use serde_json::json;

use super::*;
use crate::kinds::{Kind, core::CONFIG_MAP};

/// The PodGroups that are there, with their `minMember`.
struct Objects(&'static [(&'static str, u64)]);

impl Catalog for Objects {
    fn has_object(&self, kind: &'static Kind, _: &str, name: &str) -> bool {
        *kind == CONFIG_MAP && name == "there"
    }
    fn pod_group(&self, _: &str, name: &str) -> Option<Value> {
        let (_, least) = self.0.iter().find(|(group, _)| *group == name)?;
        Some(json!({"spec": {"minMember": least}}))
    }
}

fn parsed(text: &str) -> Vec<Value> {
    let documents = read("test", text.as_bytes(), &Limits::default()).unwrap_or_else(|problems| panic!("{problems}"));
    documents.into_iter().map(|document| document.value).collect()
}

/// A TaskSet with these roles; a role that says nothing else has what it needs.
fn roles(text: &str) -> Value {
    let mut roles = parsed(text).remove(0);
    for role in roles.as_array_mut().into_iter().flatten() {
        let mut put = |field: &str, value: Value| {
            if role[field].is_null() {
                role[field] = value;
            }
        };
        put("replicas", json!(1));
        put("completionPolicy", json!({"maxFailed": 1, "minSucceeded": 1}));
        if role["template"]["spec"].is_null() {
            role["template"]["spec"] = json!({"containers": [{"name": "main", "image": "busybox"}]});
        }
    }
    json!({"apiVersion": API_VERSION, "kind": "TaskSet", "metadata": {"name": "t"}, "spec": {"roles": roles}})
}

fn told(problems: impl IntoIterator<Item = Problem>) -> Vec<String> {
    let place = |problem: &Problem| problem.path.as_ref().map(ToString::to_string).unwrap_or_default();
    problems.into_iter().map(|problem| format!("{} {}: {}", problem.code, place(&problem), problem.message)).collect()
}

/// The errors, each as `code place: message`.
fn refused(object: &Value) -> Vec<String> {
    match examine(object, &Objects(&[])) {
        Ok(_) => panic!("it was let in: {object:#}"),
        Err(problems) => told(problems.0.into_iter().filter(|problem| problem.severity == Severity::Error)),
    }
}

fn warned(object: &Value, objects: &Objects) -> Vec<String> {
    let admitted = examine(object, objects).unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    told(admitted.warnings)
}

/// Exactly these problems, by how they begin.
fn alike(found: &[String], wanted: &[&str]) {
    let fits = found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| found.starts_with(wanted));
    assert!(fits, "{found:#?}\nis not\n{wanted:#?}");
}

/// Returns the help text of a problem.
fn help(object: &Value) -> Vec<String> {
    let Err(problems) = examine(object, &Objects(&[])) else { panic!("it was let in") };
    problems.0.into_iter().filter_map(|problem| problem.help).collect()
}

#[test]
fn ts02_two_roles_of_one_name() {
    alike(
        &refused(&roles("[{name: a}, {name: b}, {name: a}]")),
        &["OF1015 spec.roles[2].name: two roles are called 'a'"],
    );
}

#[test]
fn ts03_policies_that_make_no_sense_name_their_field() {
    let policy = |policy: &str| roles(&format!("[{{name: a, replicas: 3, completionPolicy: {policy}}}]"));
    let at = |field: &str| format!("OF1080 spec.roles[0].completionPolicy.{field}: ");
    for (text, field) in [
        ("{maxFailed: 1, minSucceeded: 0}", "minSucceeded"),
        ("{maxFailed: 1, minSucceeded: 4}", "minSucceeded"),
        ("{maxFailed: 4, minSucceeded: 1}", "maxFailed"),
        ("{maxFailed: 1}", "minSucceeded"),
        ("{minSucceeded: 1}", "maxFailed"),
    ] {
        alike(&refused(&policy(text)), &[&at(field)]);
    }
    alike(&refused(&policy("{maxFailed: -2, minSucceeded: 1}")), &["OF1041 spec.roles[0].completionPolicy.maxFailed"]);
    alike(&refused(&policy("{}")), &[&at("minSucceeded"), &at("maxFailed")]);
    assert!(warned(&policy("{maxFailed: -1, minSucceeded: -1}"), &Objects(&[])).is_empty());
}

#[test]
fn ts04_no_tolerance_is_read_as_one_with_a_warning() {
    let object = roles("[{name: a, completionPolicy: {maxFailed: 0, minSucceeded: 1}}]");
    alike(
        &warned(&object, &Objects(&[])),
        &["OF1080 spec.roles[0].completionPolicy.maxFailed: role 'a': maxFailed 0 is read as 1"],
    );
}

#[test]
fn ts31_names_are_lower_case_letters_and_digits() {
    let longest = "a1".repeat(31) + "z";
    for (name, fits) in [
        ("my-job", false),
        ("UPPER", false),
        ("a.b", false),
        ("ä", false),
        ("a".repeat(64).as_str(), false),
        (longest.as_str(), true),
        ("0", true),
    ] {
        let mut object = roles("[{name: a}]");
        object["metadata"]["name"] = json!(name);
        let mut role = roles("[{name: a}]");
        role["spec"]["roles"][0]["name"] = json!(name);
        if fits {
            assert!(warned(&object, &Objects(&[])).is_empty() && warned(&role, &Objects(&[])).is_empty());
        } else {
            alike(&refused(&object), &["OF1014 metadata.name: "]);
            alike(&refused(&role), &["OF1014 spec.roles[0].name: "]);
        }
    }
    let mut object = roles("[{name: a}]");
    object["metadata"] = json!({"generateName": "train-"});
    alike(&refused(&object), &["OF1014 metadata.generateName: "]);
    object["metadata"] = json!({});
    alike(&refused(&object), &["OF1016 metadata: "]);
}

#[test]
fn ts33_no_roles() {
    alike(&refused(&roles("[]")), &["OF1016 spec.roles: a TaskSet needs at least one role"]);
    let object = json!({"apiVersion": API_VERSION, "kind": "TaskSet", "metadata": {"name": "t"}});
    alike(&refused(&object), &["OF1016 spec.roles: a TaskSet needs at least one role"]);
}

#[test]
fn unknown_words_and_fields_are_refused_with_the_nearest() {
    let object = roles("[{name: a, eventPolicy: [{event: RoleSuceeded, action: TasksetFailed}], dependson: []}]");
    let found = refused(&object);
    assert_eq!(found.len(), 3, "{found:#?}");
    for place in ["eventPolicy[0].event", "eventPolicy[0].action", "dependson"] {
        assert!(found.iter().any(|one| one.contains(&format!("spec.roles[0].{place}"))), "{place} in {found:#?}");
    }
    let help = help(&object).join("\n");
    for word in ["RoleSucceeded", "TaskSetFailed", "dependsOn"] {
        assert!(help.contains(word), "{word} in {help}");
    }
}

#[test]
fn a_rule_says_what_happens_and_what_follows() {
    alike(
        &refused(&roles("[{name: a, eventPolicy: [{event: RoleFailed}, {action: NoAction}]}]")),
        &["OF1016 spec.roles[0].eventPolicy[0].action: ", "OF1016 spec.roles[0].eventPolicy[1].event: "],
    );
    alike(
        &refused(&roles("[{name: a}, {name: b, dependsOn: [{condition: Running}]}]")),
        &["OF1016 spec.roles[1].dependsOn[0].role: "],
    );
}

#[test]
fn roles_wait_for_roles_that_are_there_and_not_in_circles() {
    let object = roles("[{name: worker}, {name: b, dependsOn: [workr]}]");
    alike(&refused(&object), &["OF1025 spec.roles[1].dependsOn[0]: role 'b' waits for 'workr', which is not a role"]);
    assert_eq!(help(&object), ["did you mean `worker`?"]);
    alike(&refused(&roles("[{name: a, dependsOn: [a]}]")), &["OF1027 spec.roles[0].dependsOn: "]);
    alike(
        &refused(&roles(
            "[{name: a, dependsOn: [b]}, {name: b, dependsOn: [{role: c, condition: Completed}]}, {name: c, dependsOn: [a]}]",
        )),
        &["OF1027 spec.roles[0].dependsOn: these roles wait for each other in a circle: a, b, c"],
    );
    alike(
        &refused(&roles("[{name: a}, {name: b, dependsOn: [{role: a, condition: Runing}]}]")),
        &["OF1041 spec.roles[1].dependsOn[0].condition: "],
    );
}

const GANG: &str = "template: {metadata: {annotations: {scheduling.k8s.io/group-name: g}}}";

#[test]
fn members_of_a_gang_do_not_wait_for_each_other() {
    let at = "OF1081 spec.roles[1].template.metadata.annotations['scheduling.k8s.io/group-name']: roles 'b' and 'a'";
    alike(&refused(&roles(&format!("[{{name: a, {GANG}}}, {{name: b, dependsOn: [a], {GANG}}}]"))), &[at]);
    // Nor through a role in between.
    let object =
        roles(&format!("[{{name: a, {GANG}}}, {{name: x, dependsOn: [a]}}, {{name: b, dependsOn: [x], {GANG}}}]"));
    alike(&refused(&object), &["OF1081 spec.roles[0].template: gang 'g' can never be complete"]);
    // A gang that starts with some of its members can wait so.
    alike(&warned(&object, &Objects(&[("g", 1)])), &[]);
    let other = GANG.replace(": g}", ": h}");
    let object = roles(&format!(
        "[{{name: a, {GANG}, dependsOn: [c]}}, {{name: b, {GANG}}}, {{name: c, {other}}}, {{name: d, {other}, dependsOn: [b]}}]"
    ));
    alike(&refused(&object), &["OF1081 spec.roles[0].template: gang 'g' can never be complete"]);
    let object = roles(&format!("[{{name: a, {GANG}, dependsOn: [x]}}, {{name: b, {GANG}}}, {{name: x}}]"));
    alike(&warned(&object, &Objects(&[("g", 2)])), &[]);
}

#[test]
fn a_gang_that_wants_more_than_there_are_here_is_warned_of() {
    let object = roles(&format!("[{{name: a, {GANG}}}]"));
    alike(&warned(&object, &Objects(&[("g", 3)])), &["OF1081 spec.roles[0].template.metadata.annotations"]);
    alike(&warned(&object, &Objects(&[])), &["OF1040 spec.roles[0].template.metadata.annotations"]);
    let admitted = examine(&object, &Objects(&[("g", 3)])).unwrap();
    assert_eq!(admitted.stored.groups["g"], 3);
}

#[test]
fn a_policy_that_can_fail_to_decide_is_warned_of() {
    for (most, least, warns) in
        [(2, 2, false), (3, 2, true), (3, 3, true), (1, 3, false), (-1, 3, false), (3, -1, false)]
    {
        let object = roles(&format!(
            "[{{name: a, replicas: 3, completionPolicy: {{maxFailed: {most}, minSucceeded: {least}}}}}]"
        ));
        let found = warned(&object, &Objects(&[]));
        assert_eq!(found.iter().any(|one| one.contains("decide neither way")), warns, "{most} {least}: {found:?}");
    }
}

#[test]
fn exit_codes_are_codes_and_belong_to_replicas() {
    let codes =
        |codes: &str| roles(&format!("[{{name: a, retryPolicy: {{retry: true, retryableExitCodes: {codes}}}}}]"));
    assert!(warned(&codes("[1, '2-255', '7']"), &Objects(&[])).is_empty());
    for wrong in ["[-1]", "[256]", "['9-1']", "['x']", "['0-256']", "[3000000000]"] {
        let found = refused(&codes(wrong));
        assert_eq!(found.len(), 1, "{wrong}: {found:?}");
        alike(&found, &["OF1080 spec.roles[0].retryPolicy.retryableExitCodes[0]: "]);
    }
    let mut object = roles("[{name: a}]");
    object["spec"]["retryPolicy"] = json!({"retry": true, "permanentExitCodes": [1]});
    alike(&refused(&object), &["OF1034 spec.retryPolicy: exit codes are those of replicas"]);
}

#[test]
fn the_name_of_the_definition_is_read_as_the_group() {
    let mut object = roles("[{name: a}]");
    object["apiVersion"] = json!("tasksets.octopus.openi.pcl.cn/v1alpha1");
    let admitted = examine(&object, &Objects(&[])).unwrap();
    assert_eq!(admitted.manifest["apiVersion"], API_VERSION);
    object["apiVersion"] = json!("octopus.openi.pcl.cn/v1");
    alike(&refused(&object), &["OF1012 apiVersion: "]);
    object.as_object_mut().unwrap().remove("apiVersion");
    alike(&refused(&object), &["OF1012 apiVersion: apiVersion is required"]);
}

#[test]
fn pods_have_containers_with_something_to_run_and_volumes_they_name() {
    let pod = |pod: &str| roles(&format!("[{{name: a, template: {{spec: {pod}}}}}]"));
    let at = "spec.roles[0].template.spec";
    alike(&refused(&pod("{}")), &[&format!("OF1016 {at}.containers: role 'a' needs a container")]);
    alike(
        &refused(&pod("{containers: [{name: m}]}")),
        &[&format!("OF1016 {at}.containers[0]: container 'm' has neither")],
    );
    alike(
        &refused(&pod("{initContainers: [{name: m, image: i}], containers: [{name: m, image: i}]}")),
        &[&format!("OF1015 {at}.containers[0].name: two containers of role 'a' are called 'm'")],
    );
    let mounts = "{volumes: [{name: data, emptyDir: {}}], containers: [{name: m, image: i, volumeMounts: \
                  [{name: dat, mountPath: rel}]}]}";
    alike(
        &refused(&pod(mounts)),
        &[
            &format!("OF1037 {at}.containers[0].volumeMounts[0].name: "),
            &format!("OF1038 {at}.containers[0].volumeMounts[0].mountPath: "),
        ],
    );
    alike(
        &refused(&pod("{containers: [{name: m, image: i, terminationMessagePath: words}]}")),
        &[&format!("OF1038 {at}.containers[0].terminationMessagePath: ")],
    );
    alike(
        &warned(&pod("{restartPolicy: OnFailure, containers: [{name: m, image: i}]}"), &Objects(&[])),
        &[&format!("OF1013 {at}.restartPolicy: ")],
    );
    let env =
        "{containers: [{name: m, image: i, env: [{name: X, valueFrom: {configMapKeyRef: {name: gone, key: k}}}]}]}";
    alike(&warned(&pod(env), &Objects(&[])), &["OF1040 "]);
}

#[test]
fn everything_is_told_at_once() {
    let mut object = roles(
        "[{name: A, replicas: 2, completionPolicy: {maxFailed: 3, minSucceeded: 0}}, \
         {name: b, dependsOn: [nobody], eventPolicy: [{event: RoleFailed, action: Nothing}]}, {name: b}]",
    );
    object["metadata"]["name"] = json!("my-job");
    object["spec"]["retries"] = json!(1);
    let found = refused(&object);
    for place in [
        "metadata.name:",
        "spec.retries:",
        "spec.roles[0].name:",
        "spec.roles[0].completionPolicy.minSucceeded:",
        "spec.roles[0].completionPolicy.maxFailed:",
        "spec.roles[1].dependsOn[0]:",
        "spec.roles[1].eventPolicy[0].action:",
        "spec.roles[2].name:",
    ] {
        assert!(found.iter().any(|one| one.contains(place)), "{place} in {found:#?}");
    }
}

#[test]
fn replicas_have_bounds() {
    alike(&refused(&roles("[{name: a, replicas: 0}]")), &["OF1041 spec.roles[0].replicas: "]);
    alike(&refused(&roles("[{name: a, replicas: 10001}]")), &["OF1041 spec.roles[0].replicas: "]);
    let many: Vec<String> = (0..11).map(|at| format!("{{name: r{at}, replicas: 10000}}")).collect();
    alike(&refused(&roles(&format!("[{}]", many.join(", ")))), &["OF1041 spec.roles: 110000 replicas in all"]);
    let mut object = roles("[{name: a}]");
    object["spec"]["roles"][0].as_object_mut().unwrap().remove("replicas");
    alike(&refused(&object), &["OF1016 spec.roles[0].replicas: roles[0].replicas is required"]);
}

const SEED: &str = "
apiVersion: octopus.openi.pcl.cn/v1alpha1
kind: TaskSet
metadata: {name: tensorflowdemo}
spec:
  retryPolicy: {retry: false, maxRetryCount: 1}
  roles:
  - name: ps
    replicas: 1
    completionPolicy: {maxFailed: 1, minSucceeded: 1}
    retryPolicy: {retry: false, delay: 60, maxRetryCount: 1}
    template:
      METADATA
      spec:
        schedulerName: kube-batch
        restartPolicy: Never
        containers: [{name: worker, image: busybox, command: [sh, -c, 'sleep 100;exit 0']}]
  - name: worker
    replicas: 3
    eventPolicy: [{event: RoleSucceeded, action: TaskSetSucceeded}]
    completionPolicy: {maxFailed: MOST, minSucceeded: 2}
    retryPolicy: {retry: true, delay: 10, maxRetryCount: 2}
    template:
      METADATA
      spec:
        schedulerName: kube-batch
        restartPolicy: Never
        containers:
        - name: worker
          image: busybox
          command: [sh, -c, 'sleep 30;exit 0']
          resources: {limits: {nvidia.com/gpu: 1}}";

#[test]
fn the_examples_of_the_contract_are_let_in() {
    let example =
        |metadata: &str, most: &str| parsed(&SEED.replace("METADATA", metadata).replace("MOST", most)).remove(0);
    let first = warned(&example("metadata: {}", "2"), &Objects(&[]));
    assert!(first.iter().all(|one| one.contains("nvidia")), "{first:#?}");
    let gang = "metadata: {annotations: {scheduling.k8s.io/group-name: pg-1}}";
    let second = warned(&example(gang, "3"), &Objects(&[]));
    assert!(second.iter().any(|one| one.contains("2 failed replicas decide neither way")), "{second:#?}");
    assert!(second.iter().any(|one| one.starts_with("OF1040") && one.contains("PodGroup 'pg-1' is not loaded")));
    let loaded = warned(&example(gang, "3"), &Objects(&[("pg-1", 4)]));
    assert!(!loaded.iter().any(|one| one.contains("PodGroup")), "{loaded:#?}");
}
