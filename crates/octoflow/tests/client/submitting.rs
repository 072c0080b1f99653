//! submit, wait, watch.

use std::fs;

use crate::place::{Place, one_step, shows};

#[test]
fn manifests_are_submitted_with_wishes_and_followed_to_their_end() {
    let place = Place::start();
    let hello = place.file("hello.yaml", &one_step("hello", "echo hello {{workflow.parameters.who}}"));

    assert_eq!(place.good(&["submit", &hello]), "workflow hello submitted\n");
    assert_eq!(place.ends(7, &["submit", &hello]).err, "error: workflows.argoproj.io \"hello\" already exists\n");
    shows(&place.good(&["wait", "hello", "@latest"]), &["hello Succeeded (1/1", "hello Succeeded"]);

    let said = place.ends(0, &["submit", &hello, "--name", "named", "-p", "who=me", "-l", "team=x,b=y", "--wait"]);
    shows(&said.out, &["named Succeeded (1/1 in"]);
    assert_eq!(said.err, "workflow named submitted\n");
    let object = place.json(&["get", "named"]);
    assert_eq!(object["metadata"]["labels"]["team"], "x");
    assert_eq!(object["spec"]["arguments"]["parameters"][0]["value"], "me");

    fs::write(place.path("who.yaml"), "who: us\n").unwrap();
    let words = ["submit", &hello, "--generate-name", "gen-", "--parameter-file", "who.yaml", "--log"];
    shows(&place.good(&words), &["hello us\n", "gen-", " Succeeded"]);

    let said = place.ends(0, &["submit", &hello, "--name", "seen", "--watch", "-o", "name"]);
    assert_eq!(said.out, "seen\n");
    shows(&said.err, &["workflow seen submitted", "seen succeeded", "workflow seen succeeded"]);

    let failing = place.file("failing.yaml", &one_step("failing", "exit 3"));
    shows(&place.ends(1, &["submit", &failing, "--wait"]).out, &["failing Failed"]);
    assert_eq!(place.ends(1, &["wait", "hello", "failing"]).out.lines().count(), 2);
    assert_eq!(place.ends(1, &["watch", "failing"]).out.lines().count(), 1);
    let said = place.ends(3, &["wait", "hello", "nobody"]);
    shows(&said.err, &["there is no run `nobody`"]);
    place.good(&["wait", "hello", "nobody", "--ignore-not-found"]);

    let slow = place.file("slow.yaml", &one_step("slow", "sleep 600"));
    place.ends(124, &["submit", &slow, "--wait", "--timeout", "100ms"]);
    place.ends(124, &["wait", "slow", "--timeout", "100ms"]);
    place.ends(124, &["watch", "slow", "--timeout", "100ms"]);
    place.good(&["terminate", "slow"]);
}

#[test]
fn nothing_is_sent_that_is_wrong_and_dry_runs_leave_no_trace() {
    let place = Place::start();
    let good = place.file("good.yaml", &one_step("good", "true"));
    let wrong = place.file("wrong.yaml", &one_step("wrong", "true").replace("entrypoint", "entrypont"));

    let said = place.ends(6, &["submit", &good, &wrong]);
    shows(&said.err, &["wrong.yaml:7:3", "entrypont", "nothing was"]);
    assert_eq!(place.good(&["list"]), "No workflows found\n");

    shows(&place.good(&["submit", &good, "--dry-run"]), &["kind: Workflow", "name: good"]);
    shows(&place.good(&["submit", &good, "--server-dry-run"]), &["kind: Workflow", "name: good"]);
    assert_eq!(place.good(&["list"]), "No workflows found\n");

    // What only the server can know: a template that is not there.
    let refers = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: r-}\nspec:\n  workflowTemplateRef: {name: build}\n";
    let refers = place.file("refers.yaml", refers);
    shows(&place.ends(6, &["submit", &refers]).err, &["refers.yaml:5", "build"]);

    // With the template in the same files it is made first, and a second time it is replaced.
    let template = "apiVersion: argoproj.io/v1alpha1\nkind: WorkflowTemplate\nmetadata: {name: build}\nspec:\n  entrypoint: main\n  arguments: {parameters: [{name: who, value: me}]}\n  templates:\n  - name: main\n    container: {image: busybox, command: [sh, -c], args: ['echo for {{workflow.parameters.who}}']}\n";
    let template = place.file("template.yaml", template);
    for _ in 0..2 {
        shows(&place.good(&["submit", &template, &refers, "--log"]), &["for me\n"]);
    }
    shows(&place.good(&["submit", "--from", "workflowtemplate/build", "-p", "who=you", "--log"]), &["for you\n"]);
    shows(&place.ends(3, &["submit", "--from", "wftmpl/nobody"]).err, &["nobody", "not found"]);
    shows(&place.ends(2, &["submit", "--from", "nonsense"]).err, &["KIND/NAME"]);
    shows(&place.ends(2, &["submit", "nothing.yaml"]).err, &["there is no file"]);
}
