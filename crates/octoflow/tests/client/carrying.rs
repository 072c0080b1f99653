//! diff, export, open and cp.

use std::fs;

use crate::place::{Place, one_step, shows};

#[test]
fn runs_are_compared_exported_and_opened_elsewhere() {
    let place = Place::start();
    let file = place.file("a.yaml", &one_step("a", "echo hello {{workflow.parameters.who}}; echo token=abc12345"));
    place.good(&["submit", &file, "--wait"]);
    place.good(&["submit", &file, "--name", "same", "--wait"]);
    place.good(&["submit", &file, "--name", "other", "-p", "who=you", "--wait"]);

    shows(&place.good(&["diff", "a", "same"]), &["the runs do not differ\n"]);
    let said = place.ends(1, &["diff", "a", "other"]);
    shows(&said.out, &["KIND", "WHAT", "a", "other", "parameter", "who", "nobody", "you"]);
    place.ends(3, &["diff", "a", "nobody"]);

    assert_eq!(place.good(&["export", "other", "-o", "other.octoflow"]), "other.octoflow\n");
    let text = fs::read_to_string(place.path("other.octoflow")).unwrap();
    assert!(!text.contains("abc12345"), "{text}");
    // It needs neither the server nor a data directory.
    let opened = |words: &[&str]| {
        let said: crate::place::Said =
            place.bare(&[&["open", "other.octoflow"], words].concat()).output().unwrap().into();
        assert_eq!(said.code, 0, "{said}");
        said.out
    };
    shows(&opened(&[]), &["Name:                other", "Status:              Succeeded", "✔ other"]);
    shows(&opened(&["describe"]), &["who:", "you", "Nodes:", "Exit code:      0"]);
    assert_eq!(opened(&["logs"]), "other: hello you\nother: token=***\n");
    assert_eq!(opened(&["get", "-o", "jsonpath={.status.phase}"]), "Succeeded");
    shows(&opened(&["explain"]), &["workflow other is Succeeded"]);
    shows(&place.ends(2, &["open", &file]).err, &["export"]);
    shows(&place.ends(1, &["diff", "a", "other.octoflow"]).out, &["parameter"]);
    place.ends(3, &["export", "nobody"]);
}

#[test]
fn artifacts_are_copied_to_disk() {
    let place = Place::start();
    let report = place.path("report.txt");
    let text = "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: makes}
spec:
  entrypoint: main
  templates:
  - name: main
    container: {image: busybox, command: [sh, -c], args: ['echo content > REPORT']}
    outputs:
      artifacts:
      - {name: report, path: REPORT, archive: {none: {}}}
";
    let file = place.file("makes.yaml", &text.replace("REPORT", report.to_str().unwrap()));
    place.good(&["submit", &file, "--wait"]);
    let copied = place.good(&["cp", "makes", "out"]);
    let path = copied.lines().next().unwrap();
    assert!(path.starts_with("out/makes/"), "{copied}");
    assert_eq!(fs::read_to_string(place.path(path)).unwrap(), "content\n");
    shows(&place.ends(3, &["cp", "makes", "--artifact-name", "nothing"]).err, &["no such artifacts"]);
    place.ends(3, &["cp", "makes", "--node", "nobody"]);
    place.ends(3, &["cp", "nobody"]);
}
