//! `octoflow lint` and `octoflow schema`: what they find, how they say it, and how they end.

use std::{collections::HashSet, io::Write, process::Stdio};

use serde_json::Value;

use crate::stage::{DIAMOND, Said, Stage, one_step};

const CONFIGURED: &str = "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: configured}
spec:
  entrypoint: main
  arguments:
    parameters:
    - name: a
      valueFrom: {configMapKeyRef: {name: settings, key: a}}
  templates:
  - name: main
    container: {image: busybox, command: [echo, '{{workflow.parameters.a}}']}
";
const SETTINGS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n";

fn linted(stage: &Stage, words: &[&str]) -> Said {
    let said = stage.octoflow(&[&["lint"], words].concat());
    assert!(!stage.data_dir().exists(), "nothing is stored\n{said}");
    said
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}\n{said}"))
}

#[test]
fn j15_the_texts_and_exit_codes_of_lint() {
    let stage = Stage::new();
    let good = stage.file("good.yaml", DIAMOND);
    let said = linted(&stage, &[&good]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "no linting errors found!\n", ""));

    let bad = stage.file("bad.yaml", one_step("w", "true").replace("command:", "comand:").replace("args:", "argz:"));
    let said = linted(&stage, &[&good, &bad]);
    assert_eq!((said.code, said.err.as_str()), (6, "2 linting errors found!\n"), "{said}");

    let other = stage.file("other.yaml", "apiVersion: apps/v1\nkind: Deployment\nspec: {}\n");
    let nothing = "found nothing to lint in the specified paths, failing...";
    for words in [vec![other.as_str()], vec![&good, "--kinds", "cronworkflows"]] {
        let said = linted(&stage, &words);
        assert!(said.code == 6 && said.err.contains(nothing), "{said}");
    }
    std::fs::create_dir(stage.path("empty")).unwrap();
    let said = linted(&stage, &[stage.path("empty").to_str().unwrap()]);
    assert!(said.code == 6 && said.err.contains(nothing), "{said}");

    let said = linted(&stage, &["no-such-file.yaml"]);
    assert!(said.code == 2 && said.err.contains("there is no file `no-such-file.yaml`"), "{said}");
    assert_eq!(linted(&stage, &[]).code, 2);
    assert_eq!(linted(&stage, &[&good, "--kinds", "pods"]).code, 2);
}

#[test]
fn j27_unknown_fields_wrong_types_and_undefined_entrypoints_are_rejected() {
    let stage = Stage::new();
    let whole = one_step("w", "true");
    let cases = [
        (
            "field",
            whole.replace("      image:", "      imagee: x\n      image:"),
            "field.yaml:10:7",
            "unknown field `imagee`",
        ),
        ("type", whole.replace("entrypoint: main", "entrypoint: [main]"), "type.yaml:6:15", "expected text"),
        ("name", whole.replace("entrypoint: main", "entrypoint: mian"), "name.yaml:6:15", "did you mean `main`?"),
    ];
    for (name, text, place, words) in cases {
        let said = linted(&stage, &[&stage.file(&format!("{name}.yaml"), text)]);
        assert_eq!((said.code, said.err.as_str()), (6, "1 linting errors found!\n"), "{said}");
        assert!(said.out.contains(place) && said.out.contains(words), "{said}");
    }
}

#[test]
fn what_yaml_takes_for_something_else_is_to_be_quoted_as_it_is_written() {
    let stage = Stage::new();
    for word in ["y", "n", "N", "yes", "on", "Off", "True", "1.10", "0x1F", "1_000", "~1"] {
        let text = one_step("w", "true").replace("entrypoint: main", &format!("entrypoint: {word} # a name"));
        let said = linted(&stage, &[&stage.file("w.yaml", text)]);
        assert_eq!(said.code, 6, "{said}");
        let helped = said.out.contains(&format!("write it in quotes: \"{word}\"\n"));
        assert_eq!(helped, word != "~1", "{word}\n{said}");
    }
    // A value that comes from elsewhere in the text is told as it stands there.
    let text = one_step("w", "true").replace("  entrypoint: main", "  serviceAccountName: &a no\n  entrypoint: *a");
    let said = linted(&stage, &[&stage.file("w.yaml", text)]);
    assert_eq!(said.code, 6, "{said}");
    assert!(said.out.contains("write it in quotes: \"no\"") && !said.out.contains("\"false\""), "{said}");
}

#[test]
fn all_problems_of_all_files_come_at_once_whatever_their_order() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.path("tree/deep/.hidden")).unwrap();
    stage.file("tree/a.yaml", "kind: [\n");
    stage.file("tree/deep/b.yaml", one_step("w", "true").replace("entrypoint:", "entrypont:"));
    stage.file("tree/deep/notes.txt", "not: [a manifest");
    stage.file("tree/deep/.hidden/c.yaml", "kind: [\n");
    stage.file("tree/deep/compose.yaml", "services: {web: {image: nginx}}\n");
    let settings = stage.file("settings.yaml", SETTINGS.replace("data:", "dta:"));
    let tree = stage.path("tree").to_str().unwrap().to_owned();
    let said = linted(&stage, &[&tree, &settings]);
    assert_eq!(said.code, 6, "{said}");
    for place in ["tree/a.yaml:2:1", "tree/deep/b.yaml:6:3", "settings.yaml:4:1"] {
        assert!(said.out.contains(place), "{place}\n{said}");
    }
    assert!(said.out.contains("6 |   entrypont: main"), "the line is shown\n{said}");
    assert!(!said.out.contains("hidden") && !said.out.contains("compose"), "{said}");
    assert_eq!(linted(&stage, &[&settings, &tree, &settings]).out, said.out, "neither order nor repetition matters");
}

#[test]
fn references_are_resolved_across_files_and_what_is_missing_is_a_warning() {
    let stage = Stage::new();
    let (workflow, settings) = (stage.file("a.yaml", CONFIGURED), stage.file("b.yaml", SETTINGS));
    for order in [[&workflow, &settings], [&settings, &workflow]] {
        let said = linted(&stage, &[order[0], order[1], "--strict"]);
        assert_eq!((said.code, said.out.as_str()), (0, "no linting errors found!\n"), "{said}");
    }
    let only = linted(&stage, &[&workflow, &settings, "--kinds", "workflows", "--strict"]);
    assert_eq!(only.code, 0, "what is not judged can still be referred to\n{only}");

    let said = linted(&stage, &[&workflow]);
    assert_eq!(said.code, 0, "{said}");
    assert!(said.out.contains("warning[OF1040]") && said.out.ends_with("\nno linting errors found!\n"), "{said}");
    let strict = linted(&stage, &[&workflow, "--strict"]);
    assert_eq!((strict.code, strict.err.as_str()), (6, "1 linting errors found!\n"), "{strict}");
    assert!(strict.out.contains("error[OF1040]"), "{strict}");
}

#[test]
fn warnings_are_told_beside_errors() {
    let stage = Stage::new();
    let text =
        one_step("w", "true").replace("  entrypoint: main", "  entrypoint: main\n  hostNetwork: true\n  nonsense: 1");
    let said = linted(&stage, &[&stage.file("w.yaml", text)]);
    assert_eq!((said.code, said.err.as_str()), (6, "1 linting errors found!\n"), "{said}");
    assert!(said.out.contains("warning[OF1013]") && said.out.contains("error[OF1003]"), "{said}");
}

#[test]
fn standard_input_is_linted_and_a_workflow_needs_a_name() {
    let stage = Stage::new();
    let mut child = stage.command(&["lint", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let text = one_step("w", "true").replace("  name: w\n", "  labels: {a: b}\n");
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 6, "{said}");
    assert!(said.out.contains("<stdin>:4:3 (metadata)") && said.out.contains("neither a name"), "{said}");
}

#[test]
fn programs_get_json_annotations_and_sarif() {
    let stage = Stage::new();
    let bad = stage.file("bad.yaml", one_step("w", "true").replace("entrypoint:", "entrypont:"));

    let said = linted(&stage, &[&bad, "-o", "json"]);
    assert_eq!((said.code, said.err.as_str()), (6, "2 linting errors found!\n"), "{said}");
    let typo = json(&said).as_array().unwrap().iter().find(|one| one["code"] == "OF1003").cloned().unwrap();
    assert_eq!((&typo["line"], &typo["column"], &typo["file"]), (&6.into(), &3.into(), &Value::from(bad.as_str())));
    assert_eq!((&typo["severity"], &typo["path"]), (&"error".into(), &"spec.entrypont".into()));

    let said = linted(&stage, &[&bad, "-o", "github"]);
    let expected = format!("::error file={bad},line=6,col=3,endColumn=12,title=OF1003::unknown field `entrypont`");
    assert!(said.code == 6 && said.out.lines().any(|line| line.starts_with(&expected)), "{said}");

    let said = linted(&stage, &[&bad, "-o", "sarif"]);
    let log = json(&said);
    assert_eq!((said.code, &log["version"]), (6, &"2.1.0".into()), "{said}");
    let results = log["runs"][0]["results"].as_array().unwrap();
    let typo = results.iter().find(|one| one["ruleId"] == "OF1003").unwrap();
    let region = &typo["locations"][0]["physicalLocation"]["region"];
    assert_eq!((&region["startLine"], &region["startColumn"]), (&6.into(), &3.into()));

    let good = stage.file("good.yaml", DIAMOND);
    for (format, text) in [("json", "[]\n"), ("github", "")] {
        let said = linted(&stage, &[&good, "-o", format]);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, text, "no linting errors found!\n"));
    }
    let log = json(&linted(&stage, &[&good, "-o", "sarif"]));
    assert_eq!(log["runs"][0]["results"], Value::Array(Vec::new()));
}

#[test]
fn schemas_are_listed_and_printed() {
    let stage = Stage::new();
    let kinds = stage.good(&["schema"]).out;
    assert!(kinds.lines().any(|kind| kind == "Workflow") && kinds.lines().any(|kind| kind == "ConfigMap"), "{kinds}");
    for kind in kinds.lines() {
        let schema = stage.json(&["schema", kind]);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        // A test file may leave its kind out, so it has a choice of one there.
        let named = &schema["properties"]["kind"];
        let name = kind.split('.').next().unwrap();
        assert!(named["const"] == name || named["enum"][0] == name, "{kind}: {named}");
        assert_eq!(schema["additionalProperties"], false);
    }
    assert_eq!(stage.good(&["schema", "workflow"]).out, stage.good(&["schema", "Workflow"]).out);
    let listed: HashSet<&str> = kinds.lines().collect();
    assert_eq!(listed.len(), kinds.lines().count(), "{kinds}");
    let version = |word: &str| stage.json(&["schema", word])["properties"]["apiVersion"]["const"].clone();
    for word in ["vcjob", "VJ", "jobs.batch.volcano.sh", "Job.batch.volcano.sh", "batch.volcano.sh/v1alpha1/Job"] {
        assert_eq!(version(word), "batch.volcano.sh/v1alpha1", "{word}");
    }
    for word in ["Job", "jobs", "Job.batch", "batch/v1/Job"] {
        assert_eq!(version(word), "batch/v1", "{word}");
    }
    let said = stage.octoflow(&["schema", "Pod"]);
    assert!(said.code == 2 && said.err.contains("Workflow"), "{said}");
    assert!(!stage.data_dir().exists());
}

#[test]
fn what_is_not_run_here_is_named_and_a_broken_document_hides_no_other() {
    let stage = Stage::new();
    let web = stage.file("web.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {}\n");
    let said = linted(&stage, &[&web]);
    assert_eq!(said.code, 6, "{said}");
    assert!(said.err.contains("found nothing to lint") && said.err.contains("a Deployment of apps/v1 ("), "{said}");

    let text = format!("{}---\na: [\n", DIAMOND.replace("entrypoint:", "entrypiont:"));
    let said = linted(&stage, &[&stage.file("both.yaml", text)]);
    assert!(said.out.contains("entrypiont") && said.out.contains("OF1002"), "{said}");
    let text = format!("a: 1\na: 2\n---\n{}", DIAMOND.replace("entrypoint:", "entrypiont:"));
    let said = linted(&stage, &[&stage.file("after.yaml", text)]);
    assert!(said.out.contains("entrypiont") && said.out.contains("`a`"), "{said}");
}
