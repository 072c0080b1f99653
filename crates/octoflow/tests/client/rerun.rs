//! retry, resubmit and the archive.

use crate::place::{Place, shows};

fn fragile(place: &Place) -> String {
    let flag = place.path("flag");
    let text = format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: fragile}}
spec:
  entrypoint: main
  arguments: {{parameters: [{{name: who, value: me}}]}}
  templates:
  - name: main
    dag:
      tasks:
      - {{name: first, template: sh, arguments: {{parameters: [{{name: do, value: 'date +%N'}}]}}}}
      - {{name: second, template: sh, dependencies: [first], arguments: {{parameters: [{{name: do, value: 'test -e {}'}}]}}}}
      - {{name: third, template: sh, dependencies: [second], arguments: {{parameters: [{{name: do, value: 'echo for {{{{workflow.parameters.who}}}}'}}]}}}}
  - name: sh
    inputs: {{parameters: [{{name: do}}]}}
    container: {{image: busybox, command: [sh, -c], args: ['{{{{inputs.parameters.do}}}}']}}
",
        flag.display()
    );
    place.file("fragile.yaml", &text)
}

#[test]
fn what_failed_is_done_again_and_the_rest_is_kept() {
    let place = Place::start();
    let file = fragile(&place);
    place.ends(1, &["submit", &file, "--wait"]);
    let first = place.good(&["logs", "fragile", "first"]);

    let plan = place.good(&["retry", "fragile", "--dry-run"]);
    shows(
        &plan,
        &[
            "workflow fragile: 2 nodes to run again, 1 result stays\n",
            "NODE",
            "WHY",
            "second",
            "it ended Failed",
            "third",
        ],
    );
    let plan = place.good(&["retry", "fragile", "--dry-run", "--from", "first"]);
    shows(&plan, &["3 nodes to run again, 0 results stay", "first", "it was chosen"]);
    shows(&place.ends(7, &["retry", "fragile", "--node", "nobody"]).err, &["nobody"]);
    place.ends(3, &["retry", "nobody"]);

    place.file("flag", "");
    let said = place.ends(0, &["retry", "fragile", "-p", "who=you", "--watch"]);
    shows(&said.err, &["workflow fragile is being retried", "workflow fragile succeeded"]);
    shows(&said.out, &["fragile Succeeded"]);
    assert_eq!(place.good(&["logs", "fragile", "first"]), first, "it was not run again");
    assert_eq!(place.good(&["logs", "fragile", "third", "--no-prefix"]), "for you\n");
    shows(&place.ends(7, &["retry", "fragile"]).err, &["succeeded", "--node NODE"]);
    shows(&place.ends(7, &["retry", "fragile", "--node", "nobody"]).err, &["has no node 'nobody'"]);
}

#[test]
fn runs_are_submitted_once_more_and_found_by_their_uid() {
    let place = Place::start();
    let file = fragile(&place);
    place.ends(1, &["submit", &file, "--wait"]);
    let uid = place.good(&["get", "fragile", "-o", "jsonpath={.metadata.uid}"]);

    place.file("flag", "");
    let said = place.good(&["resubmit", "fragile", "--memoized", "-p", "who=us", "--wait"]);
    shows(&said, &["fragile-", " Succeeded"]);
    assert_eq!(place.good(&["logs", "@latest", "third", "--no-prefix"]), "for us\n");
    place.ends(3, &["resubmit", "nobody"]);
    shows(&place.ends(7, &["resubmit", "@latest", "--memoized"]).err, &["memoized"]);

    let listed = place.good(&["archive", "list"]);
    assert!(listed.starts_with("NAME"), "{listed}");
    assert_eq!(
        listed.lines().next().unwrap().split_whitespace().collect::<Vec<_>>(),
        ["NAME", "STATUS", "AGE", "DURATION", "UID"]
    );
    shows(&listed, &["fragile ", "Failed", &uid]);
    shows(&place.good(&["archive", "get", &uid]), &["Name:                fragile", "✖ second"]);
    place.ends(3, &["archive", "get", "no-such-uid"]);
    shows(&place.good(&["archive", "resubmit", &uid, "--wait"]), &["fragile-", " Succeeded"]);
    shows(&place.good(&["archive", "retry", &uid, "--wait"]), &["fragile Succeeded"]);
    let uid = place.good(&["get", "fragile", "-o", "jsonpath={.metadata.uid}"]);
    assert_eq!(place.good(&["archive", "delete", &uid]), format!("Archived workflow '{uid}' deleted\n"));
    place.ends(3, &["archive", "delete", &uid]);
}

/// Creates a Job under this name that fails until a file is there, and waits for its end.
fn parent_of_job(place: &Place, name: &str) -> String {
    let text = format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: parent}}
spec:
  entrypoint: main
  templates:
  - name: main
    resource:
      action: create
      successCondition: status.succeeded > 0
      failureCondition: status.failed > 0
      manifest: |
        apiVersion: batch/v1
        kind: Job
        metadata: {{{name}}}
        spec:
          backoffLimit: 0
          template:
            spec:
              restartPolicy: Never
              containers: [{{name: c, image: busybox, command: [test, -e, {}]}}]
",
        place.path("flag").display()
    );
    place.file("parent.yaml", &text)
}

#[test]
fn a_retry_creates_a_run_of_its_own_and_does_not_take_that_of_the_try_before() {
    let place = Place::start();
    place.ends(1, &["submit", &parent_of_job(&place, "generateName: child-"), "--wait"]);
    place.ends(1, &["retry", "parent", "--wait"]);
    place.file("flag", "");
    place.ends(0, &["retry", "parent", "--wait"]);
    let listed = place.good(&["list"]);
    assert_eq!(listed.matches("child-").count(), 3, "each try has a Job of its own: {listed}");
}

#[test]
fn a_retry_that_finds_the_name_taken_by_the_try_before_says_what_to_do() {
    let place = Place::start();
    place.ends(1, &["submit", &parent_of_job(&place, "name: child"), "--wait"]);
    place.file("flag", "");
    let said = place.ends(1, &["retry", "parent", "--wait"]);
    let shown = place.good(&["get", "parent"]);
    shows(
        &shown,
        &["jobs \"child\" already exists", "created before this workflow was retried", "metadata.generateName"],
    );
    assert!(said.out.contains("Error"), "{said}");
    place.good(&["delete", "job/child"]);
    place.ends(0, &["retry", "parent", "--wait"]);
}
