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

/// Runs a manifest with a bound on memory: whoever needs more is ended by the system, and the test with it.
fn bounded(stage: &Stage, kilobytes: u64, file: &str) -> Said {
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("ulimit -d {kilobytes}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_octoflow")])
        .args(["run", "--quiet", "--timeout", "300s", file])
        .env("OCTOFLOW_DATA_DIR", stage.data_dir())
        .output()
        .unwrap();
    output.into()
}

const GIGABYTE: u64 = 1024 * 1024;

fn workflow(spec: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{name: w}}\nspec:\n  entrypoint: main\n{spec}"
    )
}

#[test]
fn a_recursion_across_references_ends_at_its_limit_or_is_refused() {
    let stage = Stage::new();
    let library = |name: &str, other: &str, condition: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: WorkflowTemplate\nmetadata: {{name: {name}}}\nspec:\n  templates:\n  - name: t\n    \
             steps: [[{{name: s, {condition}templateRef: {{name: {other}, template: t}}}}]]\n---\n"
        )
    };
    let both = |condition: &str| {
        let main =
            workflow("  templates:\n  - {name: main, steps: [[{name: s, templateRef: {name: ping, template: t}}]]}\n");
        format!("{}{}{main}", library("ping", "pong", condition), library("pong", "ping", condition))
    };
    let endless = refused(&stage, &stage.file("endless.yaml", both("")));
    assert!(endless.err.contains("OF1042"), "{endless}");
    let said = bounded(&stage, 2 * GIGABYTE, &stage.file("conditional.yaml", both("when: '{{workflow.name}} == w', ")));
    assert!(said.code == 1 && said.err.contains("Maximum recursion depth exceeded"), "{said}");
}

#[test]
fn a_value_that_grows_from_step_to_step_ends_in_an_error_of_a_node() {
    let stage = Stage::new();
    let grown = "{{inputs.parameters.x}}".repeat(20);
    let spec = format!(
        "  arguments: {{parameters: [{{name: x, value: {}}}]}}\n  templates:\n  - name: main\n    inputs: {{parameters: [{{name: x}}]}}\n    \
         steps: [[{{name: again, template: main, when: '{{{{workflow.name}}}} == w', arguments: {{parameters: [{{name: x, value: '{grown}'}}]}}}}]]\n",
        "0123456789abcdef".repeat(4)
    );
    let said = bounded(&stage, 2 * GIGABYTE, &stage.file("growing.yaml", workflow(&spec)));
    assert!(said.code == 1 && said.err.contains("would take more than 64 MiB"), "{said}");
}

#[test]
fn a_loop_of_many_items_needs_little_memory_and_one_of_too_many_is_refused() {
    let stage = Stage::new();
    let spec = |count: &str| {
        format!(
            "  templates:\n  - name: main\n    steps: [[{{name: many, template: pause, withSequence: {{count: {count}}}}}]]\n  \
             - {{name: pause, suspend: {{duration: '0'}}}}\n"
        )
    };
    let said = bounded(&stage, GIGABYTE, &stage.file("many.yaml", workflow(&spec("5000"))));
    assert!(said.code == 0 && said.out.contains("Succeeded (5000/5000"), "{said}");
    let refused = stage.octoflow(&["run", &stage.file("more.yaml", workflow(&spec("1000001")))]);
    assert!(refused.code == 6 && refused.err.contains("the limit is 1000000"), "{refused}");
}

#[test]
fn expressions_that_want_everything_get_an_error() {
    let stage = Stage::new();
    let greedy = [
        "sprig.repeat(1000000000, 'x')",
        "toJson(1..1000000000)",
        "sprig.until(1000000000)",
        "reduce(1..64, #acc + #acc, 'xx')",
        "sprig.regexReplaceAll('', repeat('y', 10000), repeat('x', 100000))",
    ];
    for (number, text) in greedy.iter().enumerate() {
        let spec = format!(
            "  templates:\n  - name: main\n    inputs: {{parameters: [{{name: x, value: \"{{{{={text}}}}}\"}}]}}\n    suspend: {{duration: '0'}}\n"
        );
        let manifest = workflow(&spec).replace("name: w}", &format!("name: w{number}}}"));
        let said = bounded(&stage, 2 * GIGABYTE, &stage.file("greedy.yaml", manifest));
        assert!(said.code == 1, "{text}: {said}");
        assert!(
            said.err.contains("compute this in a task instead") || said.out.contains("compute this in a task"),
            "{said}"
        );
    }
    let deep = format!("{{{{={}1{}}}}}", "(".repeat(10_000), ")".repeat(10_000));
    let spec = format!("  templates:\n  - name: main\n    container: {{image: busybox, command: [echo, '{deep}']}}\n");
    let said = stage.octoflow(&["lint", &stage.file("deep.yaml", workflow(&spec))]);
    assert!(said.code == 6 && said.out.contains("OF1030"), "{said}");
}
