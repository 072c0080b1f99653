//! Hostile manifests, and honest ones that are merely large: answered quickly, with a stack of ordinary size.

use serde_json::{Value, json};

use super::{Objects, with_templates, wrongs};
use crate::dialects::argo::admit::admit;

const MANY: usize = 100_000;

fn with_tasks(tasks: Vec<Value>) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "large"},
        "spec": {"entrypoint": "main", "templates": [
            {"name": "main", "dag": {"tasks": tasks}},
            {"name": "leaf", "inputs": {"parameters": [{"name": "p", "default": ""}]}, "container": {"image": "busybox"}},
        ]}
    })
}

fn codes(object: &Value) -> Vec<&'static str> {
    admit(object, &Objects::default())
        .err()
        .map(|problems| problems.iter().map(|problem| problem.code).collect())
        .unwrap_or_default()
}

#[test]
fn a_chain_of_a_hundred_thousand_tasks_is_admitted() {
    let tasks = (0..MANY).map(|at| match at {
        0 => json!({"name": "t0", "template": "leaf"}),
        _ => json!({"name": format!("t{at}"), "template": "leaf", "depends": format!("t{}", at - 1)}),
    });
    assert_eq!(codes(&with_tasks(tasks.collect())), [] as [&str; 0]);
}

#[test]
fn a_circle_of_a_hundred_thousand_tasks_is_one_short_problem() {
    let tasks = (0..MANY).map(
        |at| json!({"name": format!("t{at}"), "template": "leaf", "dependencies": [format!("t{}", (at + 1) % MANY)]}),
    );
    let problems = admit(&with_tasks(tasks.collect()), &Objects::default()).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems.0[0].code, "OF1027");
    assert!(problems.0[0].message.contains("t0->t1->t2"), "{}", problems.0[0].message);
    assert!(problems.0[0].message.len() < 300);
}

#[test]
fn a_hundred_thousand_references_to_far_ancestors_are_checked() {
    let tasks = (0..MANY).map(|at| {
        let value = format!("{{{{tasks.t{}.outputs.result}}}}", at / 2);
        let arguments = json!({"parameters": [{"name": "p", "value": value}]});
        match at {
            0 => json!({"name": "t0", "template": "leaf"}),
            _ => json!({"name": format!("t{at}"), "template": "leaf", "depends": format!("t{}", at - 1), "arguments": arguments}),
        }
    });
    assert_eq!(codes(&with_tasks(tasks.collect())), [] as [&str; 0]);
}

#[test]
fn a_hundred_thousand_mistakes_are_told_in_a_hundred() {
    let tasks = (0..MANY).map(|at| json!({"name": format!("t{at}"), "template": format!("laef{at}"), "depnds": "x", "when": "{{tasks.x.status}}"}));
    let found = codes(&with_tasks(tasks.collect()));
    assert_eq!(found.len(), 101);
    assert_eq!(found.last(), Some(&"OF1043"));
}

#[test]
fn many_inputs_times_many_calls_is_not_their_product() {
    let inputs: Vec<Value> = (0..50_000).map(|at| json!({"name": format!("p{at}")})).collect();
    let mut object = with_tasks((0..50_000).map(|at| json!({"name": format!("t{at}"), "template": "leaf"})).collect());
    object["spec"]["templates"][1]["inputs"]["parameters"] = inputs.into();
    assert_eq!(codes(&object).len(), 101);
}

#[test]
fn a_sequence_of_a_billion_is_refused_with_both_numbers() {
    let text = with_templates(
        "  - name: main\n    steps: [[{name: a, template: leaf, withSequence: {count: 1000000000}}]]\n  - {name: leaf, container: {image: busybox}}\n",
    );
    assert_eq!(wrongs(&text), [("OF1023".to_owned(), "spec.templates[0].steps[0][0].withSequence".to_owned())]);
    let message = super::message_of(&text, "OF1023");
    assert!(
        message.contains("1000000000") && message.contains("1000000,") || message.ends_with("1000000"),
        "{message}"
    );
}

#[test]
fn an_expression_of_a_hundred_thousand_parentheses_is_refused() {
    let deep = format!("{}1{}", "(".repeat(MANY), ")".repeat(MANY));
    for (field, code) in [("when", "OF1031"), ("withParam", "OF1030")] {
        let text = if field == "when" { deep.clone() } else { format!("{{{{={deep}}}}}") };
        let mut object = with_tasks(vec![json!({"name": "a", "template": "leaf"})]);
        object["spec"]["templates"][0]["dag"]["tasks"][0][field] = text.into();
        assert_eq!(codes(&object), [code], "{field}");
    }
    let mut object = with_tasks(vec![json!({"name": "a", "template": "leaf", "depends": deep})]);
    assert_eq!(codes(&object), ["OF1024"]);
    object["spec"]["templates"][1]["retryStrategy"] = json!({"expression": "!".repeat(MANY)});
    assert_eq!(codes(&object), ["OF1024", "OF1030"]);
}

#[test]
fn templates_that_call_each_other_are_admitted() {
    let call = |name: &str| json!([[{"name": "go", "template": name, "when": "{{workflow.name}} == x"}]]);
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "round"},
        "spec": {"entrypoint": "a", "templates": [{"name": "a", "steps": call("b")}, {"name": "b", "steps": call("a")}]}
    });
    assert_eq!(codes(&object), [] as [&str; 0]);
}

#[test]
fn braces_without_end_cost_no_more_than_their_length() {
    for text in [
        "{{".repeat(MANY),
        "{{=".repeat(MANY),
        format!("{}{}", "{{=".repeat(MANY), "}}".repeat(MANY)),
        "{{a}}".repeat(MANY),
    ] {
        let mut object = with_tasks(vec![json!({"name": "a", "template": "leaf"})]);
        object["spec"]["templates"][1]["container"]["args"] = json!([text]);
        assert!(codes(&object).len() <= 101);
    }
}

#[test]
fn values_of_any_kind_in_any_place_are_answered() {
    let junk = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("{{"),
        json!([]),
        json!({}),
        json!([[[]]]),
        json!({"name": 1}),
    ];
    let sound = with_tasks(vec![
        json!({"name": "a", "template": "leaf", "depends": "", "withItems": [1], "arguments": {"parameters": [{"name": "p", "value": 1}]}}),
    ]);
    let mut pointers = vec![String::new()];
    let mut next = 0;
    while next < pointers.len() {
        let pointer = pointers[next].clone();
        match sound.pointer(&pointer) {
            Some(Value::Object(fields)) => pointers.extend(fields.keys().map(|key| format!("{pointer}/{key}"))),
            Some(Value::Array(items)) => pointers.extend((0..items.len()).map(|index| format!("{pointer}/{index}"))),
            _ => {}
        }
        next += 1;
    }
    let mut wrong = 0;
    for pointer in &pointers {
        for value in &junk {
            let mut object = sound.clone();
            *object.pointer_mut(pointer).expect("the pointer was found in it") = value.clone();
            wrong += usize::from(!codes(&object).is_empty());
        }
    }
    assert!(wrong > pointers.len() * 5, "only {wrong} of {} were wrong", pointers.len() * junk.len());
}
