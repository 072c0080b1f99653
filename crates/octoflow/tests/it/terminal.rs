//! Output on a real terminal: the commands below `script`, which gives them a pty, with a workflow that attacks it.

use std::process::{Command, Stdio};

use crate::stage::Stage;

/// Clipboard, title, clear screen, cursor, a report that is typed back, keyboard modes, a C1 control, an override of the
/// direction of text, a string without an end; and a colour, which may stay.
const ATTACK: &str = "\x1b]52;c;cm0gLXJmIC8=\x07\x1b]0;title\x1b\\\x1b[2J\x1b[1;1H\x1b[6n\x1b[>4;1m\u{9b}2J\u{202e}\x1b[32mgreen\x1b[0m visible\x08\n\x1b]52;c;never ended\nlast line\n";

/// A step that prints the attack, in a loop whose items and therefore names have sequences in them, too.
fn attacking() -> String {
    let printf: String = ATTACK.bytes().map(|byte| format!("\\\\{byte:03o}")).collect();
    format!(
        r#"apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: hostile}}
spec:
  entrypoint: main
  arguments: {{parameters: [{{name: who, value: "a\e]0;title\ab\e[2J"}}]}}
  templates:
  - name: main
    steps:
    - - name: step
        template: print
        withItems: ["\e]0;title\a\e[2Jitem"]
  - name: print
    container: {{image: busybox, command: [sh, -c], args: ["printf '{printf}'; exit 3"]}}
"#
    )
}

/// What the command writes to a terminal, standard output and standard error together.
fn on_a_terminal(stage: &Stage, words: &[&str]) -> String {
    let quoted = |word: &&str| format!("'{}'", word.replace('\'', r"'\''"));
    let line: Vec<String> = [env!("CARGO_BIN_EXE_octoflow")].iter().chain(words).map(quoted).collect();
    let said = Command::new("script")
        .args(["-q", "-e", "-c", &line.join(" "), "/dev/null"])
        .env("OCTOFLOW_DATA_DIR", stage.data_dir())
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .expect("`script` gives a terminal; `cargo xtask setup` installs it");
    // A terminal makes two letters of a line feed.
    String::from_utf8_lossy(&said.stdout).replace("\r\n", "\n")
}

/// Insists that every control in a text is a line feed, a tab or a colour.
fn harmless(what: &str, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\t')) {
        let sequence = &rest[at..];
        let colour = sequence.strip_prefix("\x1b[").and_then(|tail| {
            let (parameters, after) = tail.split_once('m')?;
            parameters.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b';')).then_some(after)
        });
        rest = colour.unwrap_or_else(|| panic!("{what} let a control sequence through: {sequence:?}\nin {text:?}"));
    }
    assert!(!text.contains('\u{202e}'), "{what} let an override of the direction through: {text:?}");
}

#[test]
fn neither_output_nor_names_control_a_terminal() {
    let stage = Stage::new();
    let file = stage.file("hostile.yaml", attacking());
    let log = on_a_terminal(&stage, &["run", &file, "--log"]);
    harmless("run --log", &log);
    assert!(log.contains("\x1b[32mgreen\x1b[0m visible"), "colours stay: {log:?}");
    assert!(log.contains(r"\u009b2J\u202e"), "{log:?}");
    assert!(log.contains("last line"), "a string without an end hides nothing more: {log:?}");

    let live = on_a_terminal(&stage, &["run", &file, "--name", "again"]);
    assert!(live.contains("\x1b[J"), "the tree is drawn in place: {live:?}");
    let drawn = live.split('\n').map(|line| {
        let erased = line.strip_prefix("\x1b[").and_then(|rest| rest.split_once("A\r\x1b[J"));
        erased.filter(|(lines, _)| lines.bytes().all(|byte| byte.is_ascii_digit())).map_or(line, |(_, rest)| rest)
    });
    harmless("run", &drawn.collect::<Vec<_>>().join("\n"));

    for words in [
        &["logs", "hostile"][..],
        &["logs", "hostile", "-f"],
        &["logs", "hostile", "-o", "raw"],
        &["get", "hostile"],
        &["get", "hostile", "-o", "json"],
        &["get", "hostile", "-o", "yaml"],
        &["get", "hostile", "-o", "jsonpath={.spec.arguments.parameters[0].value}"],
        &["describe", "hostile"],
        &["explain", "hostile"],
        &["list"],
        &["diff", "hostile", "again"],
        &["logs", "hostile", "no \x1b]0;title\x07 such node"],
        &["lint", &file],
    ] {
        harmless(&words.join(" "), &on_a_terminal(&stage, words));
    }
    let plain = on_a_terminal(&stage, &["logs", "hostile", "--no-color"]);
    assert!(plain.contains("green visible") && !plain.contains('\x1b'), "{plain:?}");
    let raw = on_a_terminal(&stage, &["logs", "hostile", "--raw"]);
    assert!(raw.contains("\x1b]52;c;cm0gLXJmIC8=\x07") && raw.contains("\x1b[2J"), "{raw:?}");
}

#[test]
fn behind_a_pipe_output_is_byte_for_byte_and_names_are_harmless() {
    let stage = Stage::new();
    let file = stage.file("hostile.yaml", attacking());
    stage.octoflow(&["run", &file]);
    let piped = |words: &[&str]| stage.command(words).output().unwrap().stdout;
    assert_eq!(String::from_utf8(piped(&["logs", "hostile", "--no-prefix"])).unwrap(), ATTACK);
    assert_eq!(String::from_utf8(piped(&["logs", "hostile", "-o", "raw"])).unwrap(), ATTACK);
    for words in [&["get", "hostile"][..], &["describe", "hostile"], &["list"], &["explain", "hostile"]] {
        let text = String::from_utf8(piped(words)).unwrap();
        assert!(!text.contains('\x1b'), "{words:?}: {text:?}");
    }
    let value = piped(&["get", "hostile", "-o", "jsonpath={.spec.arguments.parameters[0].value}"]);
    assert_eq!(String::from_utf8(value).unwrap(), "a\x1b]0;title\x07b\x1b[2J");
}

#[test]
fn the_tree_of_a_flow_shows_its_jobs_tasks_and_pods_while_it_runs() {
    let stage = Stage::new();
    let file = stage.file(
        "flow.yaml",
        "apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: a}
spec:
  tasks:
  - name: worker
    template: {spec: {containers: [{name: main, image: busybox, command: [sleep, '1']}]}}
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: f}
spec: {flows: [{name: a}]}
",
    );
    let shown = on_a_terminal(&stage, &["run", &file]);
    for part in ["└─", "worker-0", "f-a-worker-0"] {
        assert!(shown.contains(part), "{part} in {shown:?}");
    }
    let pod = shown.find("worker-0").unwrap_or_default();
    assert!(shown[pod..].contains("Succeed"), "the pod is shown before the end: {shown:?}");
}
