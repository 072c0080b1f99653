//! Manifests that are wrong: every one is refused with code 6, says where, and leaves nothing behind.

use crate::stage::{Said, Stage, one_step};

fn refused(stage: &Stage, file: &str) -> Said {
    let said = stage.octoflow(&["run", file]);
    assert_eq!(said.code, 6, "{said}");
    assert_eq!(said.out, "", "a refusal is talk, not data");
    assert!(!stage.data_dir().exists(), "nothing is stored\n{said}");
    said
}

#[test]
fn all_typos_are_told_at_once_with_line_and_suggestion() {
    let stage = Stage::new();
    let text = one_step("w", "true").replace("entrypoint:", "entrypont:").replace("command:", "comand:");
    let said = refused(&stage, &stage.file("typo.yaml", text));
    assert!(said.err.contains("typo.yaml:6:3") && said.err.contains("did you mean `entrypoint`?"), "{said}");
    assert!(said.err.contains("did you mean `command`?"), "{said}");
    assert!(said.err.contains("entrypont: main"), "the line is shown\n{said}");
    assert!(said.err.contains("nothing was run"), "{said}");
}

#[test]
fn problems_of_several_files_come_together() {
    let stage = Stage::new();
    let one = stage.file("one.yaml", "kind: [\n");
    let two = stage.file("two.yaml", "a: b: c\n");
    let said = stage.octoflow(&["run", &one, "-f", &two]);
    assert_eq!(said.code, 6, "{said}");
    assert!(said.err.contains("one.yaml") && said.err.contains("two.yaml"), "{said}");
}

#[test]
fn hostile_texts_are_refused() {
    let stage = Stage::new();
    let bomb: String = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, level| {
        let below = level - 1;
        format!("{text}a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]\n")
    });
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let sequence = one_step("w", "true").replace(
        "  - name: main\n    container:",
        "  - name: main\n    steps:\n    - - name: many\n        template: leaf\n        withSequence: {count: \"1000000000\"}\n  - name: leaf\n    container:",
    );
    let cyclic = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: w}\nspec:\n  entrypoint: a\n  templates:\n  \
                  - name: a\n    dag: {tasks: [{name: x, template: b, dependencies: [y]}, {name: y, template: b, dependencies: [x]}]}\n  \
                  - name: b\n    container: {image: busybox, command: [\"true\"]}\n";
    let two_types = one_step("w", "true").replace("    container:", "    suspend: {}\n    container:");
    let parentheses = one_step("w", "true").replace(
        "  - name: main\n    container:",
        &format!(
            "  - name: main\n    steps:\n    - - name: x\n        template: leaf\n        when: \"{}1 == 1{}\"\n  - name: leaf\n    container:",
            "(".repeat(100_000),
            ")".repeat(100_000)
        ),
    );
    let cases: [(&str, Vec<u8>); 9] = [
        ("bomb", bomb.into_bytes()),
        ("deep", deep.into_bytes()),
        ("scalar", one_step("w", &"x".repeat(10_000_000)).into_bytes()),
        ("utf8", b"kind: \xff\xfe\n".to_vec()),
        ("sequence", sequence.into_bytes()),
        ("cyclic", cyclic.into()),
        ("two-types", two_types.into_bytes()),
        ("parentheses", parentheses.into_bytes()),
        ("text", b"just some words".to_vec()),
    ];
    for (name, bytes) in cases {
        let said = refused(&stage, &stage.file(&format!("{name}.yaml"), bytes));
        assert!(said.err.contains("error"), "{name}: {said}");
        assert!(said.err.len() < 20_000, "{name}: a refusal stays readable, this one has {} bytes", said.err.len());
    }
}

#[test]
fn other_kinds_are_refused_by_name() {
    let stage = Stage::new();
    let file = stage
        .file("cron.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata: {name: c}\nspec: {}\n");
    assert!(refused(&stage, &file).err.contains("CronWorkflow"));
}

#[test]
fn a_workflow_needs_a_name_from_somewhere() {
    let stage = Stage::new();
    let file = stage.file("nameless.yaml", one_step("w", "true").replace("  name: w\n", "  labels: {}\n"));
    assert!(refused(&stage, &file).err.contains("name"));
    stage.good(&["run", &file, "--name", "given"]);
    stage.good(&["get", "given"]);
}

#[test]
fn files_without_a_workflow_are_refused() {
    let stage = Stage::new();
    let file = stage.file("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: b}\n");
    assert!(refused(&stage, &file).err.contains("there is no Workflow"));
}
