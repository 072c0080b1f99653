//! Looking at runs after they ended: list, get, describe, logs, explain, delete.

use crate::stage::{DIAMOND, Stage, in_steps, one_step};

/// A stage where `good` succeeded and `bad` failed.
fn stage_with_two_runs() -> Stage {
    let stage = Stage::new();
    stage.good(&["run", &stage.file("good.yaml", in_steps("good", "hello", "echo one; echo two >&2; echo three", ""))]);
    let bad = stage.octoflow(&["run", &stage.file("bad.yaml", in_steps("bad", "broken", "exit 1", "  onExit: bye"))]);
    assert_eq!(bad.code, 1, "{bad}");
    stage
}

#[test]
fn runs_are_listed_newest_first_and_filtered() {
    let stage = stage_with_two_runs();
    assert_eq!(stage.good(&["list", "-o", "name"]).out, "bad\ngood\n");
    let table = stage.good(&["list"]).out;
    assert!(table.starts_with("NAME  STATUS     AGE"), "{table}");
    assert_eq!(stage.good(&["list", "--status", "Failed", "-o", "name"]).out, "bad\n");
    assert_eq!(stage.good(&["list", "--prefix", "go", "-o", "name"]).out, "good\n");
    assert_eq!(stage.good(&["list", "-l", "workflows.argoproj.io/phase=Succeeded", "-o", "name"]).out, "good\n");
    assert_eq!(stage.good(&["list", "--running"]).out, "No workflows found\n");
    assert_eq!(stage.good(&["list", "--older", "1h"]).out, "No workflows found\n");
    assert_eq!(stage.good(&["list", "--limit", "1", "-o", "name"]).out, "bad\n");
    assert_eq!(stage.good(&["list", "--no-headers"]).out.lines().count(), 2);
    assert!(stage.good(&["list", "-o", "wide"]).out.contains("P/R/C"));
    assert_eq!(stage.json(&["list", "-o", "json"]).as_array().unwrap().len(), 2);
}

#[test]
fn get_shows_the_tree_and_the_object() {
    let stage = stage_with_two_runs();
    let shown = stage.good(&["get", "bad"]).out;
    assert!(shown.contains("Name:                bad\n") && shown.contains("Status:              Failed\n"), "{shown}");
    assert!(shown.contains("\n └───✖ broken") && shown.contains("main: Error (exit code 1)"), "{shown}");
    assert!(shown.contains("\n\n ✔ bad.onExit"), "the exit handler is a tree of its own\n{shown}");
    assert_eq!(stage.json(&["get", "@latest", "-o", "json"])["metadata"]["name"], "bad");
    assert_eq!(stage.good(&["get", "good", "-o", "jsonpath={.status.phase}"]).out, "Succeeded");
    assert_eq!(
        stage
            .good(&["get", "good", "-o", r#"jsonpath={range .status.nodes.*}{.displayName}{"\n"}{end}"#])
            .out
            .lines()
            .count(),
        3
    );
    assert!(stage.good(&["get", "good", "-o", "short"]).out.starts_with("STEP"));
    assert!(!stage.good(&["get", "bad", "--status", "Failed"]).out.contains("onExit"));
    assert!(stage.good(&["get", "good", "-o", "yaml"]).out.contains("phase: Succeeded"));
}

#[test]
fn a_misspelt_name_is_not_found_but_guessed() {
    let stage = stage_with_two_runs();
    let said = stage.octoflow(&["get", "goood"]);
    assert_eq!(said.code, 3);
    assert!(said.err.contains("did you mean `good`?"), "{said}");
}

#[test]
fn describe_says_everything() {
    let stage = stage_with_two_runs();
    let shown = stage.good(&["describe", "bad"]).out;
    for part in
        ["Name:                bad", "Nodes:", "bad[0].broken  (Failed)", "Exit code:      1", "Template:       leaf"]
    {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(stage.good(&["describe", "good"]).out.contains("logs/"), "the place of the log is told");
}

#[test]
fn logs_are_cut_filtered_and_exact() {
    let stage = stage_with_two_runs();
    let logs = |more: &[&str]| stage.good(&[&["logs", "good"], more].concat());
    let all = logs(&[]).out;
    assert_eq!(all.lines().count(), 3, "{all}");
    assert_eq!(logs(&["--tail", "1"]).out.lines().count(), 1);
    assert_eq!(logs(&["--grep", "^thr..$", "--no-prefix"]).out, "three\n");
    assert_eq!(logs(&["hello", "-f"]).out, all, "following a finished run ends");
    assert!(logs(&["--timestamps"]).out.starts_with("hello: 20"));
    let raw = logs(&["hello", "-o", "raw"]);
    assert_eq!((raw.out.as_str(), raw.err.as_str()), ("one\nthree\n", "two\n"));
    let said = stage.octoflow(&["logs", "good", "helo"]);
    assert_eq!(said.code, 3);
    assert!(said.err.contains("did you mean `hello`?"), "{said}");
    assert_eq!(stage.octoflow(&["logs", "good", "--grep", "("]).code, 2);
    assert_eq!(stage.octoflow(&["logs", "good", "-c", "sidecar"]).code, 3);
}

#[test]
fn every_byte_of_a_step_comes_back() {
    let stage = Stage::new();
    stage.good(&["run", &stage.file("w.yaml", one_step("w", r"printf 'a\000b\377\r\nno end'"))]);
    let output = stage.command(&["logs", "w", "-o", "raw"]).output().unwrap();
    assert_eq!(output.stdout, b"a\0b\xff\r\nno end");
}

#[test]
fn explain_says_what_happened() {
    let stage = stage_with_two_runs();
    let said = stage.good(&["explain", "bad"]).out;
    assert!(
        said.contains("workflow bad is Failed") && said.contains("broken") && said.contains("exit code 1"),
        "{said}"
    );
    assert!(stage.good(&["explain", "good", "hello"]).out.contains("ended well"));
    assert_eq!(stage.octoflow(&["explain", "good", "nobody"]).code, 3);
    assert!(
        stage.json(&["explain", "bad", "-o", "json"]).as_array().unwrap().iter().any(|one| one["node"] == "broken")
    );
}

#[test]
fn deleted_runs_are_gone_with_their_logs() {
    let stage = stage_with_two_runs();
    let logs = || std::fs::read_dir(stage.data_dir().join("logs")).unwrap().count();
    let before = logs();
    assert_eq!(stage.good(&["delete", "good", "--dry-run"]).out, "Workflow 'good' would be deleted\n");
    assert_eq!(stage.good(&["delete", "good"]).out, "Workflow 'good' deleted\n");
    assert_eq!(logs(), before - 1);
    let said = stage.octoflow(&["delete", "good"]);
    assert_eq!(said.code, 3);
    assert!(said.err.contains("Workflow 'good' not found"), "{said}");
    assert_eq!(stage.good(&["delete", "--completed", "--older", "1h"]).out, "No workflows found\n");
    stage.good(&["delete", "--all"]);
    assert_eq!(stage.good(&["list"]).out, "No workflows found\n");
    // The name is free again.
    stage.good(&["run", &stage.path("good.yaml").display().to_string()]);
}

#[test]
fn a_finished_run_cannot_be_steered() {
    let stage = stage_with_two_runs();
    for word in ["stop", "terminate", "suspend", "resume"] {
        let said = stage.octoflow(&[word, "good"]);
        assert_eq!(said.code, 7, "{word}: {said}");
        assert!(said.err.contains("it is over"), "{said}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let stage = Stage::new();
    stage.good(&["run", &stage.file("diamond.yaml", DIAMOND)]);
    let mut child = stage.start(&["get", "@latest", "-o", "json"]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
