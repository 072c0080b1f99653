//! Commands that run nothing: help, usage errors, completions, version, doctor.

use crate::stage::Stage;

#[test]
fn help_names_every_command() {
    let said = Stage::new().good(&["--help"]);
    for command in [
        "run",
        "lint",
        "test",
        "plan",
        "list",
        "get",
        "describe",
        "logs",
        "explain",
        "metrics",
        "delete",
        "stop",
        "terminate",
        "suspend",
        "resume",
        "schema",
        "completion",
        "doctor",
        "version",
    ] {
        assert!(said.out.contains(&format!("  {command} ")), "{command} is missing in\n{said}");
    }
    assert!(!said.out.contains("__spawner"), "the spawner is nobody's command\n{said}");
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_meant() {
    let stage = Stage::new();
    let cases: [(&[&str], &str); 7] = [
        (&[], "Usage"),
        (&["dance"], "unrecognized subcommand"),
        (&["lst"], "list"),
        (&["run"], "<FILE"),
        (&["run", "x.yaml", "--timeout", "soon"], "write it like 30s"),
        (&["get", "x", "-o", "xml"], "expected wide, short, name, json, yaml, jsonpath="),
        (&["run", "no-such-file.yaml"], "there is no file `no-such-file.yaml`"),
    ];
    for (words, expected) in cases {
        let said = stage.octoflow(words);
        assert_eq!(said.code, 2, "{words:?}\n{said}");
        assert!(said.err.contains(expected), "{words:?}\n{said}");
        assert_eq!(said.out, "", "{words:?}");
    }
}

#[test]
fn runtimes_that_do_not_exist_yet_are_refused() {
    let stage = Stage::new();
    for runtime in ["docker", "kubernetes"] {
        let said = stage.octoflow(&["run", "x.yaml", "--runtime", runtime]);
        assert_eq!(said.code, 2, "{said}");
        assert!(said.err.contains("not available yet in this build"), "{said}");
    }
}

#[test]
fn shells_get_their_completions() {
    let stage = Stage::new();
    for (shell, mark) in [("bash", "complete -F"), ("zsh", "#compdef octoflow"), ("fish", "complete -c octoflow")] {
        let said = stage.good(&["completion", shell]);
        assert!(said.out.contains(mark), "{shell}: {said}");
        for word in ["lint", "schema", "sarif"] {
            assert!(said.out.contains(word), "{shell} does not know {word}");
        }
    }
    assert_eq!(stage.octoflow(&["completion", "cmd"]).code, 2);
}

#[test]
fn the_version_is_told_to_people_and_programs() {
    let stage = Stage::new();
    assert_eq!(stage.good(&["version"]).out, format!("octoflow {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(stage.json(&["version", "-o", "json"])["version"], env!("CARGO_PKG_VERSION"));
    assert!(stage.good(&["--version"]).out.contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_doctor_looks_and_leaves_nothing_behind() {
    let stage = Stage::new();
    let said = stage.good(&["doctor"]);
    let checks = [
        "data directory",
        "permissions",
        "free space",
        "database",
        "secrets",
        "open runs",
        "lock",
        "isolation",
        "memory limits",
        "sh",
        "python",
        "kernel",
    ];
    for check in checks {
        assert!(said.out.contains(check), "{check}: {said}");
    }
    assert!(!stage.data_dir().exists(), "looking makes nothing");
    let findings = stage.json(&["doctor", "-o", "json"]);
    assert_eq!(findings.as_array().unwrap().len(), checks.len());
}

#[test]
fn a_data_directory_that_cannot_be_written_is_found_by_the_doctor() {
    let stage = Stage::new();
    let said = stage.octoflow(&["doctor", "--data-dir", "/proc/octoflow"]);
    assert_eq!(said.code, 1, "{said}");
    assert!(said.out.contains("fail") && said.out.contains("--data-dir"), "{said}");
}

#[test]
fn without_any_run_the_lists_are_empty_and_names_unknown() {
    let stage = Stage::new();
    assert_eq!(stage.good(&["list"]).out, "No workflows found\n");
    assert_eq!(stage.good(&["list", "-o", "json"]).out.trim(), "[]");
    for words in
        [["get", "x"], ["logs", "@latest"], ["explain", "x"], ["describe", "x"], ["delete", "x"], ["stop", "x"]]
    {
        let said = stage.octoflow(&words);
        assert_eq!(said.code, 3, "{words:?}\n{said}");
    }
    assert_eq!(stage.octoflow(&["run", "--resume", "x"]).code, 3);
    let unused = format!("OF{}", 9999);
    assert_eq!(stage.octoflow(&["explain", &unused]).code, 3);
}
