//! `octoflow plan`: what would run, told without running it.

use serde_json::json;

use crate::stage::{DIAMOND, Stage, one_step};

const SORTED: &str = r#"
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: nightly}
spec:
  entrypoint: main
  onExit: tell
  parallelism: 4
  synchronization: {mutexes: [{name: night}]}
  arguments: {parameters: [{name: env, value: dev}, {name: days, value: '["mon", "tue"]'}]}
  templates:
  - name: main
    steps:
    - - {name: fetch, template: fetch, withParam: "{{workflow.parameters.days}}"}
    - - {name: check, template: work}
    - - {name: each, template: work, withParam: "{{steps.check.outputs.result}}"}
      - {name: publish, template: work, when: "{{workflow.parameters.env}} == prod"}
      - {name: again, template: main, when: "{{steps.check.outputs.result}} == more"}
  - name: fetch
    retryStrategy: {limit: 3}
    synchronization: {mutexes: [{name: source}]}
    container: {image: "alpine:3.20", command: [fetch]}
  - {name: work, script: {image: "alpine:3.20", command: [sh], source: "echo"}}
  - {name: tell, container: {image: "alpine:3.20", command: [echo]}}
"#;

#[test]
fn a_tree_shows_waves_loops_conditions_locks_and_the_longest_path() {
    let stage = Stage::new();
    let file = stage.file("w.yaml", SORTED);
    let said = stage.good(&["plan", &file]);
    for wanted in [
        "workflow nightly",
        "at most 4 at a time, needs mutex night",
        "main  Steps",
        "├─ 1 fetch × 2",
        "│  ├─ fetch(0:mon)  fetch, alpine:3.20; tried again up to 3 times; needs mutex source",
        "├─ 2 check  work, alpine:3.20",
        "├─ 3 each × {{steps.check.outputs.result}}  work, alpine:3.20",
        "├─ 3 publish  work; never: dev == prod",
        "└─ 3 again  main (Steps); when {{steps.check.outputs.result}} == more; ↺ main again",
        "onExit  tell, alpine:3.20",
        "4 tasks or more; the longest path has 4: fetch(0:mon) → check → each → onExit",
    ] {
        assert!(said.out.contains(wanted), "{wanted} is missing\n{said}");
    }
    let released = stage.good(&["plan", &file, "-p", "env=prod"]);
    assert!(released.out.contains("├─ 3 publish  work, alpine:3.20\n"), "{released}");
    assert!(!stage.data_dir().exists(), "a plan stores nothing");
}

#[test]
fn programs_get_an_object() {
    let stage = Stage::new();
    let file = stage.file("w.yaml", DIAMOND);
    let plan = stage.json(&["plan", "-o", "json", &file]);
    assert_eq!(plan["tasks"], json!({"least": 4, "most": 4}));
    assert_eq!(plan["longestPath"], json!({"tasks": 3, "names": ["A", "B", "D"]}));
    let tasks = plan["root"]["children"].as_array().unwrap();
    assert_eq!(tasks[3]["name"], "D");
    assert_eq!((&tasks[3]["wave"], tasks[3]["needs"].as_array().unwrap().len()), (&json!(3), 2));
}

#[test]
fn durations_of_a_file_or_of_an_earlier_run_make_an_estimate() {
    let stage = Stage::new();
    let file = stage.file("w.yaml", DIAMOND);
    let durations = stage.file("durations.yaml", "echo: 90s\n");
    let said = stage.good(&["plan", &file, "--durations", &durations]);
    assert!(said.out.contains("the longest path has 3, about 4m30s"), "{said}");
    let run = stage.file("one.yaml", one_step("one", "sleep 0.01"));
    stage.good(&["run", "--quiet", &run]);
    stage.json(&["plan", &run, "--durations", "one", "-o", "json"]);
    assert_eq!(stage.octoflow(&["plan", &run, "--durations", "nobody"]).code, 3);
    let wrong = stage.file("wrong.yaml", "echo: soon\n");
    assert_eq!(stage.octoflow(&["plan", &file, "--durations", &wrong]).code, 2);
}

#[test]
fn what_is_wrong_or_huge_is_told_as_such() {
    let stage = Stage::new();
    let wrong = stage.file("wrong.yaml", DIAMOND.replace("template: echo", "template: ehco"));
    let said = stage.octoflow(&["plan", &wrong]);
    assert_eq!((said.code, said.out.as_str()), (6, ""), "{said}");
    assert!(said.err.contains("did you mean `echo`?"), "{said}");
    let huge = SORTED.replace("withParam: \"{{workflow.parameters.days}}\"", "withSequence: {count: 1000}");
    let huge = stage.file("huge.yaml", huge);
    let said = stage.good(&["plan", &huge, "--rounds", "2"]);
    assert!(said.out.contains("… and 998 more like it") && said.out.contains("1002 tasks or more"), "{said}");
    let said = stage.good(&["plan", &huge, "--lines", "3"]);
    assert!(said.out.contains("the tree is cut; --lines shows more of it"), "{said}");
}
