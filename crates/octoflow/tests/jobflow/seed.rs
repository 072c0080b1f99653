//! The text of the seed, word for word. It lies beside the checkout.

#![expect(clippy::print_stderr, reason = "a skipped seed is told loudly")]

use std::{fs, path::Path};

use crate::stage::{Stage, names, shows};

/// The templates and the flow of the seed's text; none when it is not there, which CI does not forgive.
fn examples() -> Option<(String, String)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds/003_8d07733386eab467.txt");
    let Ok(text) = fs::read_to_string(&file) else {
        assert!(std::env::var_os("CI").is_none(), "the seed is required in CI: {} is missing", file.display());
        eprintln!("SKIPPED: the seed is not at {}", file.display());
        return None;
    };
    let mut blocks = text.split("```\n").filter(|block| block.starts_with("apiVersion"));
    Some((blocks.next().unwrap().to_owned(), blocks.next().unwrap().to_owned()))
}

#[test]
fn jf24_every_fault_of_the_seeds_text_is_told_once_and_clearly() {
    let Some((templates, flow)) = examples() else { return };
    let stage = Stage::new();
    let said = stage.ends(6, &["lint", &stage.file("templates.yaml", &templates)]);
    for name in ["A", "B", "C", "D", "E"] {
        assert_eq!(said.out.matches(&format!("metadata.name '{name}' is invalid")).count(), 1, "{said}");
    }
    assert_eq!(said.out.matches("error[").count(), 5, "{said}");
    assert_eq!(said.out.matches("neither volumeClaimName nor volumeClaim").count(), 5, "{said}");
    assert_eq!(said.out.matches("both volumeClaimName and volumeClaim").count(), 5, "{said}");

    // The status of the flow is no YAML; where it breaks is told.
    let said = stage.ends(6, &["lint", &stage.file("flow.yaml", &flow)]);
    assert_eq!(said.out.matches("error[").count(), 1, "{said}");
    shows(&said.out, &["a `,` or a closing bracket is missing", "flow.yaml:34:12"]);

    let spec = flow.split("status:\n").next().unwrap();
    let said = stage.ends(6, &["lint", &stage.file("spec.yaml", spec)]);
    assert_eq!(said.out.matches("error[").count(), 11, "five names, five targets and a policy: {said}");
    shows(&said.out, &["spec.JobRetainPolicy", "no entry is called '‘A’'", "write `A`: typographic quotes"]);
}

#[test]
fn jf24_the_seeds_flow_runs_with_names_in_lower_case() {
    let Some((templates, flow)) = examples() else { return };
    let stage = Stage::new();
    // What is wrong with the text is repaired, and what the machine has not (nginx, six cores) is replaced.
    let mut text = templates;
    let mut spec = flow.split("status:\n").next().unwrap().to_owned();
    for name in ["A", "B", "C", "D", "E"] {
        let small = name.to_lowercase();
        text = text.replace(&format!("name: {name}\n"), &format!("name: {small}\n"));
        spec = spec.replace(&format!("name: {name}\n"), &format!("name: {small}\n"));
        spec = spec.replace(&format!("‘{name}’"), &small);
    }
    let policy = spec.lines().find(|line| line.contains("JobRetainPolicy")).unwrap().to_owned();
    spec = spec.replace(&policy, "  JobRetainPolicy: retain");
    text = text.replace(
        "- image: nginx\n",
        "- image: nginx\n              command: [sh, -c, \"test -d /myinput && test -d /myoutput\"]\n",
    );
    text = text.replace("cpu: \"1\"", "cpu: \"10m\"");
    let class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high-priority}\nvalue: 1000\n";
    let file = stage.file("all.yaml", format!("{class}---\n{text}---\n{spec}"));
    let said = stage.ends(0, &["run", &file, "-o", "json", "--timeout", "60s"]);
    let done: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(done["status"]["state"]["phase"], "Succeed", "{said}");
    assert_eq!(names(&done, "completedJobs"), ["test-a", "test-b", "test-c", "test-d", "test-e"]);
    assert_eq!(done["status"]["conditions"]["test-a"]["taskStatusCount"]["default-nginx"]["phase"]["Succeeded"], 6);
}

#[test]
fn jf27_dashes_inside_a_script_do_not_end_a_document() {
    let stage = Stage::new();
    let text = "apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: a}
spec:
  tasks:
  - name: main
    template:
      spec:
        containers:
        - name: main
          image: busybox
          command:
          - sh
          - -c
          - |
            cat <<END
            ---
            END
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: test}
spec: {flows: [{name: a}]}
";
    stage.ends(0, &["run", &stage.file("two.yaml", text), "--timeout", "60s"]);
    let logs = stage.ends(0, &["logs", "test", "--no-prefix"]).out;
    assert_eq!(logs.trim(), "---");
}
