//! Ctrl-C, SIGTERM, kill -9, and other processes that want something of a run.

use std::{
    fs,
    process::{Child, Command},
};

use crate::stage::{Said, Stage, eventually, in_steps, one_step, signal};

/// Starts a run and waits until its step has made a file.
fn started(stage: &Stage, file: &str, mark: &str) -> Child {
    let child = stage.start(&["run", file]);
    eventually("the step is under way", || stage.path(mark).exists());
    child
}

fn ended(child: Child) -> Said {
    child.wait_with_output().unwrap().into()
}

fn phase(stage: &Stage, name: &str) -> String {
    stage.good(&["get", name, "-o", "jsonpath={.status.phase}"]).out
}

/// A step that makes a file outside its own view of the machine's files, then waits.
fn slow(stage: &Stage, name: &str, more: &str) -> String {
    let volume = format!("  volumes: [{{name: out, hostPath: {{path: {}}}}}]\n{more}", stage.path("").display());
    in_steps(name, "slow", "touch /out/started; sleep 600", &volume).replacen(
        "      image: busybox\n",
        "      image: busybox\n      volumeMounts: [{name: out, mountPath: /out}]\n",
        1,
    )
}

#[test]
fn one_ctrl_c_stops_cleanly() {
    let stage = Stage::new();
    let child = started(&stage, &stage.file("w.yaml", slow(&stage, "w", "  onExit: bye")), "started");
    signal(&child, "INT");
    let said = ended(child);
    assert_eq!(said.code, 130, "{said}");
    assert!(said.err.contains("press Ctrl-C again to kill"), "{said}");
    assert_eq!(phase(&stage, "w"), "Failed");
    assert!(stage.good(&["logs", "w"]).out.contains("the exit handler ran"), "{said}");
}

#[test]
fn two_ctrl_c_end_it_at_once() {
    let stage = Stage::new();
    let text = slow(&stage, "w", "  onExit: bye").replace("echo the exit handler ran", "touch /tmp/x; sleep 600");
    let child = started(&stage, &stage.file("w.yaml", text), "started");
    signal(&child, "INT");
    eventually("the exit handler is under way", || {
        let nodes = stage.octoflow(&["get", "w", "-o", "jsonpath={.status.nodes.*.name}"]);
        nodes.out.contains("w.onExit")
    });
    signal(&child, "INT");
    let said = ended(child);
    assert_eq!(said.code, 130, "{said}");
    assert_eq!(phase(&stage, "w"), "Failed");
}

#[test]
fn being_asked_to_go_leaves_the_step_to_be_restored() {
    let stage = Stage::new();
    let text = slow(&stage, "w", "").replace("sleep 600", "while [ ! -e /out/go ]; do sleep 0.05; done; echo went on");
    let child = started(&stage, &stage.file("w.yaml", text), "started");
    signal(&child, "TERM");
    let said = ended(child);
    assert_eq!(said.code, 130, "{said}");
    assert!(said.err.contains("octoflow run --resume w"), "{said}");
    assert_eq!(phase(&stage, "w"), "Running");
    let refused = stage.octoflow(&["stop", "w"]);
    assert_eq!(refused.code, 7, "{refused}");
    assert!(refused.err.contains("was interrupted"), "{refused}");
    stage.file("go", "");
    stage.good(&["run", "--resume", "w"]);
    assert_eq!(stage.good(&["logs", "w"]).out, "slow: went on\n", "the step was not started again");
}

#[test]
fn a_killed_run_is_restored_and_no_finished_step_runs_again() {
    let stage = Stage::new();
    let count = "echo x >> /out/count; touch /out/started; while [ ! -e /out/go ]; do sleep 0.05; done";
    let text = slow(&stage, "w", "").replace("touch /out/started; sleep 600", count);
    let mut child = started(&stage, &stage.file("w.yaml", text), "started");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(phase(&stage, "w"), "Running");
    stage.file("go", "");
    let said = stage.good(&["run", "--resume", "w"]);
    assert!(said.out.contains("w Succeeded"), "{said}");
    assert_eq!(fs::read_to_string(stage.path("count")).unwrap(), "x\n", "the step ran once");
    let again = stage.octoflow(&["run", "--resume", "w"]);
    assert_eq!(again.code, 7, "{again}");
}

#[test]
fn a_second_writer_is_turned_away() {
    let stage = Stage::new();
    let child = started(&stage, &stage.file("w.yaml", slow(&stage, "w", "")), "started");
    let said = stage.octoflow(&["run", &stage.file("v.yaml", one_step("v", "true"))]);
    assert_eq!(said.code, 7, "{said}");
    assert!(said.err.contains(&child.id().to_string()) && said.err.contains("--data-dir"), "{said}");
    assert!(stage.good(&["list"]).out.contains("Running"), "readers are welcome");
    eventually("the step is explained", || stage.good(&["explain", "w"]).out.contains("running since"));
    let refused = stage.octoflow(&["delete", "w"]);
    assert_eq!(refused.code, 7, "{refused}");
    signal(&child, "INT");
    ended(child);
}

#[test]
fn another_process_can_stop_a_run() {
    let stage = Stage::new();
    let child = started(&stage, &stage.file("w.yaml", slow(&stage, "w", "  onExit: bye")), "started");
    assert_eq!(stage.good(&["stop", "w"]).out, "workflow w is being stopped\n");
    let said = ended(child);
    assert_eq!(said.code, 1, "it was not this process that was interrupted\n{said}");
    assert!(stage.good(&["logs", "w"]).out.contains("the exit handler ran"));
}

#[test]
fn a_waiting_step_is_resumed_from_outside() {
    let stage = Stage::new();
    let text = in_steps("w", "ask", "true", "").replace(
        "    container:\n      image: busybox\n      command: [sh, -c]\n      args: [\"true\"]\n",
        "    suspend: {}\n",
    );
    let child = stage.start(&["run", &stage.file("w.yaml", text)]);
    eventually("the step waits", || stage.octoflow(&["get", "w"]).out.contains("ǁ ask"));
    let wrong = stage.octoflow(&["resume", "w", "--node-field-selector", "displayName=nobody"]);
    assert_eq!(wrong.code, 7, "{wrong}");
    stage.good(&["resume", "w", "--node-field-selector", "displayName=ask"]);
    let said = ended(child);
    assert_eq!(said.code, 0, "{said}");
    assert!(said.err.contains("octoflow resume w --node-field-selector displayName=ask"), "{said}");
}

#[test]
fn logs_are_followed_until_the_run_ends() {
    let stage = Stage::new();
    let text = slow(&stage, "w", "").replace(
        "touch /out/started; sleep 600",
        "echo first; touch /out/started; while [ ! -e /out/go ]; do sleep 0.05; done; echo last",
    );
    let child = started(&stage, &stage.file("w.yaml", text), "started");
    let follower = stage.start(&["logs", "w", "-f"]);
    stage.file("go", "");
    assert_eq!(ended(follower).out, "slow: first\nslow: last\n");
    assert_eq!(ended(child).code, 0);
}

#[test]
fn nothing_is_left_running_after_the_end() {
    let stage = Stage::new();
    stage.good(&["run", &stage.file("w.yaml", one_step("w", "true"))]);
    let place = stage.data_dir().display().to_string();
    eventually("the spawner has left", || {
        let list = Command::new("ps").args(["-eo", "args"]).output().unwrap();
        !String::from_utf8_lossy(&list.stdout).lines().any(|line| line.contains("__spawner") && line.contains(&place))
    });
}
