//! Workflows run to their end: what is printed where, and which code comes out.

use std::{io::Write, process::Stdio};

use serde_json::Value;

use crate::stage::{DIAMOND, Said, Stage, in_steps, one_step};

#[test]
fn a_diamond_runs_and_its_steps_can_be_read_afterwards() {
    let stage = Stage::new();
    let said = stage.good(&["run", &stage.file("diamond.yaml", DIAMOND)]);
    assert_eq!(said.out.lines().count(), 1, "the result is one line\n{said}");
    assert!(said.out.starts_with("dag-diamond-") && said.out.contains("Succeeded"), "{said}");
    for event in ["● A started", "✔ A succeeded", "✔ D succeeded", "✔ workflow dag-diamond-"] {
        assert!(said.err.contains(event), "{event}\n{said}");
    }
    let logs = stage.good(&["logs", "@latest"]).out;
    let lines: Vec<&str> = logs.lines().collect();
    assert_eq!(lines.len(), 4, "{logs}");
    assert_eq!((lines[0], lines[3]), ("A: say-A", "D: say-D"));
    assert!(lines.contains(&"B: say-B") && lines.contains(&"C: say-C"), "{logs}");
}

#[test]
fn a_failing_step_ends_with_1_and_is_shown_with_its_last_words() {
    let stage = Stage::new();
    let text = in_steps("w", "bad", "echo about to break; echo oh no >&2; exit 3", "");
    let said = stage.octoflow(&["run", &stage.file("fail.yaml", text)]);
    assert_eq!(said.code, 1, "{said}");
    assert!(said.err.contains("✖ bad failed: main: Error (exit code 3)"), "{said}");
    assert!(said.err.contains("    about to break\n    oh no\n"), "{said}");
    assert!(said.err.contains("octoflow logs w bad"), "{said}");
    assert!(said.out.starts_with("w Failed"), "{said}");
    assert!(said.out.contains("child 'bad' failed"), "people know steps by name\n{said}");
}

#[test]
fn a_dry_run_shows_what_would_be_submitted_and_stores_nothing() {
    let stage = Stage::new();
    let file = stage.file("diamond.yaml", DIAMOND);
    let said = stage.good(&["run", &file, "--dry-run", "-p", "extra=1"]);
    assert!(said.out.contains("entrypoint: diamond") && said.out.contains("name: extra"), "{said}");
    assert!(!stage.data_dir().exists(), "nothing is stored");
}

#[test]
fn json_is_alone_on_standard_output() {
    let stage = Stage::new();
    let file = stage.file("w.yaml", one_step("w", "echo noise; echo more >&2"));
    let said = stage.good(&["run", &file, "-o", "json", "--log"]);
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(object["status"]["phase"], "Succeeded");
    assert_eq!(object["status"]["nodes"]["w"]["phase"], "Succeeded");
    assert!(said.err.contains("w: noise"), "the log goes where it does not disturb\n{said}");
    let said = stage.good(&["run", &file, "-o", "yaml", "--name", "v", "--quiet"]);
    assert!(said.out.contains("phase: Succeeded") && said.err.is_empty(), "{said}");
    let said = stage.good(&["run", &file, "-o", "name", "--name", "u"]);
    assert_eq!(said.out, "u\n");
}

#[test]
fn log_prints_what_steps_write() {
    let stage = Stage::new();
    let said = stage.good(&[
        "run",
        &stage.file("w.yaml", in_steps("w", "talk", "echo hello; printf unfinished", "")),
        "--log",
    ]);
    assert!(said.out.contains("talk: hello\ntalk: unfinished\n"), "{said}");
}

#[test]
fn parameters_come_from_file_and_command_line() {
    let stage = Stage::new();
    let text = one_step("w", "echo {{workflow.parameters.a}}-{{workflow.parameters.b}}-{{workflow.parameters.c}}")
        .replace(
            "  entrypoint: main",
            "  entrypoint: main\n  arguments: {parameters: [{name: a, value: x}, {name: b, value: x}, {name: c}]}",
        );
    let values = stage.file("values.yaml", "b: 1.10\nc: from-file\n");
    let file = stage.file("w.yaml", text);
    let said = stage.good(&["run", &file, "--parameter-file", &values, "-p", "c=from=line", "-p", "messge=x"]);
    assert!(said.err.contains("the workflow has no parameter `messge`"), "{said}");
    assert_eq!(stage.good(&["logs", "w"]).out, "w: x-1.10-from=line\n");
}

#[test]
fn another_entrypoint_can_be_chosen() {
    let stage = Stage::new();
    let file = stage.file("w.yaml", in_steps("w", "a", "echo leaf", ""));
    stage.good(&["run", &file, "--entrypoint", "bye"]);
    assert_eq!(stage.good(&["logs", "w"]).out, "w: the exit handler ran\n");
}

#[test]
fn manifests_come_from_standard_input_and_config_maps_beside_them() {
    let stage = Stage::new();
    let map = stage.file(
        "map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {greeting: hello from a map}\n",
    );
    let text = one_step("w", "echo $GREETING").replace(
        "      command:",
        "      env: [{name: GREETING, valueFrom: {configMapKeyRef: {name: settings, key: greeting}}}]\n      command:",
    );
    let mut child = stage.command(&["run", "-", "-f", &map]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 0, "{said}");
    assert_eq!(stage.good(&["logs", "w"]).out, "w: hello from a map\n");
}

#[test]
fn several_workflows_run_together_and_the_worst_code_wins() {
    let stage = Stage::new();
    let good = stage.file("good.yaml", one_step("good", "true"));
    let bad = stage.file("bad.yaml", one_step("bad", "exit 4"));
    let said = stage.octoflow(&["run", &good, &bad, "-o", "json"]);
    assert_eq!(said.code, 1, "{said}");
    let objects: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let phases: Vec<&str> = objects.iter().filter_map(|object| object["status"]["phase"].as_str()).collect();
    assert_eq!(phases, ["Succeeded", "Failed"]);
    assert!(said.err.contains("[good]") && said.err.contains("[bad]"), "{said}");
}

#[test]
fn a_name_can_be_used_once() {
    let stage = Stage::new();
    let file = stage.file("w.yaml", one_step("w", "true"));
    stage.good(&["run", &file]);
    let said = stage.octoflow(&["run", &file]);
    assert_eq!(said.code, 7, "{said}");
    assert!(said.err.contains("octoflow delete w"), "{said}");
    stage.good(&["run", &file, "--generate-name", "again-"]);
}

#[test]
fn namespaces_keep_runs_apart() {
    let stage = Stage::new();
    let file = stage.file("w.yaml", one_step("w", "true"));
    stage.good(&["run", &file, "-n", "team"]);
    stage.good(&["get", "w", "-n", "team"]);
    let said = stage.octoflow(&["get", "w"]);
    assert_eq!(said.code, 3);
    assert!(said.err.contains("use -n team"), "{said}");
    assert!(stage.good(&["list", "-A"]).out.contains("team"), "all namespaces are listed");
}

#[test]
fn a_run_that_takes_too_long_is_stopped_with_124() {
    let stage = Stage::new();
    let file = stage.file("w.yaml", in_steps("w", "slow", "sleep 600", "  onExit: bye"));
    let said = stage.octoflow(&["run", &file, "--timeout", "300ms"]);
    assert_eq!(said.code, 124, "{said}");
    assert!(said.err.contains("the time limit is reached"), "{said}");
    let logs = stage.good(&["logs", "w"]).out;
    assert!(logs.contains("the exit handler ran"), "stopping is clean: {logs}");
}
