//! template, cluster-template and cron.

use crate::place::{Place, shows};

fn template(kind: &str, who: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: {kind}
metadata: {{name: build, labels: {{team: x}}}}
spec:
  entrypoint: main
  arguments: {{parameters: [{{name: who, value: {who}}}]}}
  templates:
  - name: main
    container: {{image: busybox, command: [echo, '{{{{workflow.parameters.who}}}}']}}
"
    )
}

#[test]
fn templates_of_both_reaches_are_kept() {
    let place = Place::start();
    for (command, kind) in [("template", "WorkflowTemplate"), ("cluster-template", "ClusterWorkflowTemplate")] {
        let file = place.file("t.yaml", &template(kind, "me"));
        assert_eq!(place.good(&[command, "lint", &file]), "no linting errors found!\n");
        shows(&place.ends(3, &[command, "update", &file]).err, &["build", "not found"]);
        assert_eq!(place.good(&[command, "create", &file]), format!("{kind} 'build' created\n"));
        shows(&place.ends(7, &[command, "create", &file]).err, &["already exists"]);
        let file = place.file("t.yaml", &template(kind, "you"));
        assert_eq!(place.good(&[command, "update", &file]), format!("{kind} 'build' updated\n"));
        shows(&place.good(&[command, "get", "build"]), &["Name:                build", "who = you"]);
        assert_eq!(place.json(&[command, "get", "build"])["kind"], kind);
        shows(&place.ends(3, &[command, "get", "biuld"]).err, &["did you mean `build`?"]);
        shows(
            &place.good(&[command, "list", "-l", "team=x"]),
            &["NAME", "AGE", "ENTRYPOINT", "TEMPLATES", "build", "main", "1"],
        );
        assert_eq!(place.good(&[command, "list", "-o", "name"]), "build\n");
        let from = format!("{}/build", kind.to_lowercase());
        shows(&place.good(&["submit", "--from", &from, "--log"]), &["you\n"]);

        let wrong = place.file("wrong.yaml", &template(kind, "me").replace("echo,", "echo, 1: 2,"));
        shows(&place.ends(6, &[command, "create", &wrong]).err, &["wrong.yaml:9", "nothing was sent"]);
        shows(&place.ends(6, &[command, "lint", &wrong]).err, &["wrong.yaml:9"]);
        assert_eq!(place.good(&[command, "delete", "build"]), format!("{kind} 'build' deleted\n"));
        place.ends(3, &[command, "delete", "build"]);
        shows(&place.good(&[command, "list"]), &["No ", " found"]);
    }
}

#[test]
fn schedules_are_kept_held_and_let_go() {
    let place = Place::start();
    let cron = "apiVersion: argoproj.io/v1alpha1
kind: CronWorkflow
metadata: {name: yearly}
spec:
  schedules: ['0 0 1 1 *']
  timezone: Europe/Berlin
  workflowSpec:
    entrypoint: main
    templates:
    - name: main
      container: {image: busybox, command: [echo, tick]}
";
    let file = place.file("cron.yaml", cron);
    assert_eq!(place.good(&["cron", "lint", &file]), "no linting errors found!\n");
    assert_eq!(place.good(&["cron", "create", &file]), "CronWorkflow 'yearly' created\n");
    shows(&place.ends(7, &["cron", "create", &file]).err, &["already exists"]);
    shows(&place.good(&["cron", "list"]), &["SCHEDULE", "SUSPENDED", "yearly", "0 0 1 1 *", "Europe/Berlin", "false"]);
    assert_eq!(place.good(&["cron", "suspend", "yearly"]), "CronWorkflow 'yearly' suspended\n");
    shows(&place.good(&["cron", "get", "yearly"]), &["Suspended:           true"]);
    assert_eq!(place.good(&["cron", "resume", "yearly"]), "CronWorkflow 'yearly' resumed\n");
    shows(&place.good(&["cron", "get", "yearly"]), &["Suspended:           false"]);
    place.ends(3, &["cron", "suspend", "nobody"]);
    shows(&place.good(&["submit", "--from", "cronwf/yearly", "--log"]), &["tick\n"]);
    let changed = place.file("cron.yaml", &cron.replace("0 0 1 1 *", "0 0 2 1 *"));
    assert_eq!(place.good(&["cron", "update", &changed]), "CronWorkflow 'yearly' updated\n");
    shows(&place.good(&["cron", "get", "yearly"]), &["0 0 2 1 *"]);
    let wrong = place.file("cron.yaml", &cron.replace("0 0 1 1 *", "every day"));
    shows(&place.ends(6, &["cron", "create", &wrong]).err, &["cron.yaml:5"]);
    assert_eq!(place.good(&["cron", "delete", "--all"]), "CronWorkflow 'yearly' deleted\n");
    place.ends(3, &["cron", "delete", "yearly"]);
}
