//! What is fuzzed, and what must hold for every text: no panic, the same answer twice, places inside the text, and
//! within the limits each reader states. A target answers with what is broken.

use std::{collections::BTreeMap, panic};

use octoflow_engine::{
    argo::{
        admit::{Catalog, examine, examine_template, unused},
        refer::Reach,
    },
    expr::{
        self, Error,
        depends::{self, TaskOutcome},
        lang::{self, Env},
        random::Seed,
        when,
    },
    kinds::Kind,
};
use octoflow_manifest::{Limits, read, to_yaml};
use octoflow_model::{
    Time,
    taskset::{API_VERSION, KIND},
    volcano,
};
use serde_json::{Value, json};

use super::{drive, flow, kubejob, plugin};

/// Something that reads texts.
#[derive(Debug)]
pub struct Target {
    pub name: &'static str,
    pub(super) check: fn(&[u8]) -> Result<(), String>,
}

pub static TARGETS: [Target; 16] = [
    Target { name: "expression", check: expression },
    Target { name: "when", check: condition },
    Target { name: "depends", check: dependency },
    Target { name: "template", check: template },
    Target { name: "manifest", check: manifest },
    Target { name: "taskset", check: task_set },
    Target { name: "volcano", check: job },
    Target { name: "kubejob", check: kubejob::job },
    Target { name: "cronjob", check: kubejob::cron_job },
    Target { name: "jobflow", check: flow::job_flow },
    Target { name: "jobtemplate", check: flow::job_template },
    Target { name: "patch", check: flow::patch },
    Target { name: "selector", check: plugin::selector },
    Target { name: "increment", check: plugin::increment },
    Target { name: "plugin", check: plugin::job },
    Target { name: "answer", check: plugin::answer },
];

impl Target {
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// What is broken about this text, panics included.
    pub fn try_text(&self, text: &[u8]) -> Result<(), String> {
        panic::catch_unwind(|| (self.check)(text)).unwrap_or_else(|cause| {
            let words = cause.downcast_ref::<String>().map(String::as_str);
            Err(format!("it panics: {}", words.or(cause.downcast_ref::<&str>().copied()).unwrap_or("without a word")))
        })
    }
}

fn broken<T>(what: impl Into<String>) -> Result<T, String> {
    Err(what.into())
}

/// An error must point into the text, and showing it must work.
fn place(error: &Error, text: &str) -> Result<(), String> {
    let length = text.chars().count();
    if error.column == 0 || error.column > length + 1 {
        return broken(format!("column {} of a text of {length} characters: {error}", error.column));
    }
    if error.message.is_empty() || error.message.chars().count() > 5_000 {
        return broken(format!("a message of {} characters", error.message.chars().count()));
    }
    let _ = error.render(text);
    Ok(())
}

/// Names an expression can use.
struct Names(BTreeMap<String, expr::Value>);

impl Env for Names {
    fn root(&self, name: &str) -> Option<expr::Value> {
        self.0.get(name).cloned()
    }

    fn eval_context(&self) -> Option<lang::EvalContext> {
        Some(lang::EvalContext { moment: Time::from_secs(1_700_000_000).timestamp(), seed: Seed::of("fuzz") })
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

fn names() -> Names {
    let known = json!({
        "inputs": {"parameters": {"a": "1", "b-c": "text", "list": "[1,2,{\"k\":\"v\"}]", "empty": ""}},
        "steps": {"x": {"outputs": {"result": "{\"k\": [1, 2.5, null, true]}", "parameters": {"p": "ü"}}}},
        "workflow": {"name": "w", "parameters": {"p": "v"}},
        "item": {"n": 7, "s": "seven", "l": [1, "two", null]},
        "list": [3, 1, 2, 1], "words": ["b", "a", ""], "nothing": null, "yes": true, "number": 2.5,
        "retries": "2",
    });
    let Value::Object(known) = known else { unreachable!("the names above are an object") };
    Names(known.into_iter().map(|(name, value)| (name, expr::Value::from(value))).collect())
}

fn expression(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    let program = match lang::parse(text) {
        Ok(program) => program,
        Err(error) => return place(&error, text),
    };
    let length = text.chars().count();
    for reference in program.roots() {
        if reference.path.is_empty() || reference.column == 0 || reference.column + reference.length > length + 1 {
            return broken(format!("a reference outside the text: {reference:?}"));
        }
    }
    let names = names();
    let first = program.evaluate(&names);
    if first != program.evaluate(&names) {
        return broken("the same expression gives two answers");
    }
    match first {
        Err(error) => place(&error, text),
        Ok(value) => {
            let spelled = value.to_json();
            // What is made is limited; spelling it out as JSON escapes a character to six at most.
            if spelled.len() > 6 * lang::Limits::BYTES {
                return broken(format!("a value of {} bytes", spelled.len()));
            }
            let again = serde_json::from_str::<Value>(&spelled).map(expr::Value::from);
            match again {
                Ok(again) if again.to_json() == spelled => Ok(()),
                // There is no JSON for infinity.
                _ if spelled.contains("Inf") || spelled.contains("NaN") => Ok(()),
                Ok(again) => broken(format!("{spelled} is read back as {}", again.to_json())),
                Err(error) => broken(format!("the value is spelled as what is no JSON: {error}: {spelled:.200}")),
            }
        }
    }
}

fn condition(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    let first = when::evaluate(text);
    if first != when::evaluate(text) {
        return broken("the same condition gives two answers");
    }
    let known = |name: &str| matches!(name, "a" | "b").then(|| expr::Value::from("1"));
    if let Err(error) = when::evaluate_with(text, &known) {
        place(&error, text)?;
    }
    first.map_or_else(|error| place(&error, text), |_| Ok(()))
}

fn dependency(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    let condition = match depends::parse(text) {
        Ok(condition) => condition,
        Err(error) => return place(&error, text),
    };
    if condition.terms().is_empty() || condition.tasks().is_empty() {
        return broken("a condition without a task");
    }
    for term in condition.terms() {
        if !text.contains(&term.task) || term.column == 0 || term.column > text.chars().count() {
            return broken(format!("a task that is not in the text: {term:?}"));
        }
    }
    let ask = |answer: bool| condition.evaluate(&mut |_, _| answer);
    let (no, yes) = (ask(false), ask(true));
    if !text.contains('!') && (no || !yes) {
        return broken(format!("without a negation it is {no} of nothing and {yes} of everything"));
    }
    let by_name = |task: &str, outcome: TaskOutcome| (task.len() + outcome as usize).is_multiple_of(2);
    if condition.evaluate(&mut |task, outcome| by_name(task, outcome))
        != condition.evaluate(&mut |task, outcome| by_name(task, outcome))
    {
        return broken("the same condition gives two answers");
    }
    Ok(())
}

/// The text as the argument of a step and of its template, put through the engine.
fn template(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    let leaf = |name: &str| {
        json!({"name": name, "inputs": {"parameters": [{"name": "t"}, {"name": "u", "default": "{{workflow.name}}"}]},
            "outputs": {"parameters": [{"name": "p", "valueFrom": {"path": "/tmp/p"}}]},
            "container": {"image": "i", "command": ["c"], "args": [text, "{{inputs.parameters.t}}"]}})
    };
    let call = |name: &str, value: &str| json!({"name": name, "template": "leaf", "arguments": {"parameters": [{"name": "t", "value": value}]}});
    let mut looped = call("c", text);
    looped["withItems"] = json!([{"n": 1, "s": "x"}, {"n": 2, "s": "}}"}]);
    let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "w", "labels": {"l": "1"}},
        "spec": {"entrypoint": "main", "arguments": {"parameters": [{"name": "p", "value": "{{x"}]},
            "templates": [{"name": "main", "steps": [[call("a", "plain")], [call("b", text), looped]]}, leaf("leaf")]}});
    judge(&object)?;
    // What admission refuses must still not break the engine: journals of other versions are run too.
    let first = drive::run(&object, octoflow_model::submission::Stored::default())?;
    if first != drive::run(&object, octoflow_model::submission::Stored::default())? {
        return broken("the same text is filled in two ways");
    }
    Ok(())
}

fn manifest(bytes: &[u8]) -> Result<(), String> {
    let documents = match read("fuzz", bytes, &Limits::default()) {
        Ok(documents) => documents,
        Err(problems) if problems.iter().count() == 0 => return broken("refused without a problem"),
        Err(problems) => {
            problems.render(false);
            return Ok(());
        }
    };
    for document in documents {
        let written = to_yaml(&document.value);
        match read("again", written.as_bytes(), &Limits::default()) {
            Ok(again) if again.len() == 1 && again[0].value == document.value => {}
            Ok(again) => return broken(format!("{} is read back as {:?}", document.value, again[0].value)),
            // An empty document is none.
            Err(_) if document.value.is_null() => {}
            Err(problems) => return broken(format!("what was written cannot be read: {problems}\n{written:.500}")),
        }
        if let Some(stored) = judge(&document.value)? {
            drive::run(&stored.0, stored.1)?;
        }
    }
    Ok(())
}

/// A TaskSet by any spelling: it is judged, and what is let in comes to an end or waits for a reason.
fn task_set(bytes: &[u8]) -> Result<(), String> {
    run_as(API_VERSION, KIND, bytes)
}

/// A Volcano Job by any spelling, in the same way.
fn job(bytes: &[u8]) -> Result<(), String> {
    run_as(volcano::API_VERSION, volcano::KIND, bytes)
}

/// Judges and runs an object of a kind twice.
pub(super) fn run_as(version: &str, kind: &str, bytes: &[u8]) -> Result<(), String> {
    let Ok(documents) = read("fuzz", bytes, &Limits::default()) else { return Ok(()) };
    for mut document in documents {
        if !document.value.is_object() {
            continue;
        }
        // Damage elsewhere is more interesting than damage to these.
        document.value["apiVersion"] = json!(version);
        document.value["kind"] = json!(kind);
        match octoflow_engine::admit::examine(&document.value, &Nothing) {
            Err(problems) if problems.iter().all(|problem| problem.code.is_empty()) => {
                return broken("refused without a code");
            }
            Err(problems) => drop(problems.render(false)),
            Ok(admitted) => {
                let first = drive::run(&admitted.manifest, admitted.stored.clone())?;
                if first != drive::run(&admitted.manifest, admitted.stored)? {
                    return broken("the same object runs in two ways");
                }
            }
        }
    }
    Ok(())
}

/// Everything that judges an object; the manifest as it may run, if it may.
fn judge(object: &Value) -> Result<Option<(Value, octoflow_model::submission::Stored)>, String> {
    examine_template(object, &Nothing);
    unused(object);
    match examine(object, &Nothing) {
        Err(problems) if problems.iter().all(|problem| problem.code.is_empty()) => broken("refused without a code"),
        Err(problems) => {
            problems.render(false);
            Ok(None)
        }
        Ok(admitted) => Ok(Some((admitted.manifest().clone(), admitted.stored().clone()))),
    }
}

struct Nothing;

impl Catalog for Nothing {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        false
    }
    fn template(&self, _: Reach, _: &str, name: &str) -> Option<Value> {
        // One that calls itself through a reference, to be found by chance and by seeds.
        (name == "lib").then(|| {
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate", "metadata": {"name": "lib"},
                "spec": {"entrypoint": "t", "arguments": {"parameters": [{"name": "p", "value": "1"}]}, "templates": [
                    {"name": "t", "inputs": {"parameters": [{"name": "p", "default": "x"}]},
                     "container": {"image": "i", "command": ["c"], "args": ["{{inputs.parameters.p}}"]}},
                    {"name": "again", "steps": [[{"name": "s", "templateRef": {"name": "lib", "template": "again"},
                        "when": "{{workflow.name}} == x"}]]}]}})
        })
    }
    fn template_names(&self, _: Reach, _: &str) -> Vec<String> {
        vec!["lib".to_owned()]
    }
}
