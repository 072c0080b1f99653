//! What the submission pipeline reads of others: selectors, the documents that decorators and binders answer with, and
//! the jobs that built-in plugins are asked about. Random ones, and what must hold for each.

use std::{fmt::Write as _, time::Duration};

use octoflow_engine::{
    plugins::{
        JobSelector,
        builtin::{self, Context},
        increment::{self, Mode},
    },
    submission::answer::{Asked, document as document_of, read},
};
use octoflow_manifest::Path;
use octoflow_model::{
    Time,
    plugin::{ConditionSpec, Factors, PluginType, SelectorSpec},
    request::{Answer, HttpResponse},
};
use serde_json::{Value, json};

use crate::sim::Draw;

const MAX_MESSAGE: usize = 5_000;

/// A selector: the expression in the first line, then one line for each condition: what it expects.
pub(super) fn selector(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    let mut lines = text.lines();
    let expression = lines.next().unwrap_or_default().to_owned();
    let keys = ["type", "team.name", "list", "missing", "jobKind"];
    let conditions = lines.zip(('a'..='z').zip(keys.into_iter().cycle())).map(|(expect, (name, key))| ConditionSpec {
        name: name.to_string(),
        key: key.to_owned(),
        expect: expect.to_owned(),
    });
    let spec = SelectorSpec { conditions: conditions.collect(), expression, states: Vec::new() };
    let header = json!({"type": "debug", "team": {"name": "x"}, "list": [1, {"a": null}], "jobKind": "TFJob"});
    match (JobSelector::compile(&spec, &Path::root()), JobSelector::compile(&spec, &Path::root())) {
        (Ok(first), Ok(second)) if first.matches(&header) == second.matches(&header) => Ok(()),
        (Ok(_), Ok(_)) => Err("the same selector matches in two ways".to_owned()),
        (Err(problems), Err(_)) => match problems.iter().find(|one| !is_message(&one.message) || one.code.is_empty()) {
            Some(problem) => Err(format!("a problem without a code or a message: {problem:?}")),
            None if problems.is_empty() => Err("refused without a problem".to_owned()),
            None => Ok(()),
        },
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => Err("the same selector is good and bad".to_owned()),
    }
}

fn is_message(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_MESSAGE
}

/// A list of two documents: one before and one after.
pub(super) fn increment(bytes: &[u8]) -> Result<(), String> {
    let Ok(Value::Array(documents)) = serde_json::from_slice::<Value>(bytes) else { return Ok(()) };
    let [old, new, ..] = documents.as_slice() else { return Ok(()) };
    for (old, new) in [(old, new), (new, old), (old, old)] {
        let [decorated, bound] = [Mode::Decorate, Mode::Bind].map(|mode| increment::check(old, new, mode));
        if decorated != increment::check(old, new, Mode::Decorate) {
            return Err("the same documents are judged in two ways".to_owned());
        }
        if decorated.is_ok() && bound.is_err() {
            return Err("what a decorator may add, a binder may not".to_owned());
        }
        match decorated {
            Ok(added) => {
                if std::ptr::eq(old, new) && !added.added.is_empty() {
                    return Err("a document has more than itself".to_owned());
                }
                if let Some(one) = added.added.iter().find(|one| one.path.parse::<Path>().is_err()) {
                    return Err(format!("{} is no path", one.path));
                }
            }
            Err(conflict) => {
                if !is_message(&conflict.message) && conflict.path.len() < MAX_MESSAGE / 2 {
                    return Err(format!("a message of {} bytes", conflict.message.len()));
                }
                if !conflict.path.is_empty() && conflict.path.parse::<Path>().is_err() {
                    return Err(format!("{} is no path", conflict.path));
                }
                let _ = increment::blame(&conflict.path, &[]);
            }
        }
    }
    Ok(())
}

/// The body of a response, as every stage may get it.
pub(super) fn answer(bytes: &[u8]) -> Result<(), String> {
    let response = HttpResponse { status: 200, headers: Vec::new(), body: String::from_utf8_lossy(bytes).into_owned() };
    let value = match document_of(Answer::Http(response), false) {
        Ok(value) => value,
        Err(error) if is_message(&error.why) && !error.passing => return Ok(()),
        Err(error) => return Err(format!("what is no document is tried again, or has no reason: {error:?}")),
    };
    let (job, factors) = (json!({"kind": "TaskSet", "spec": {"roles": [], "command": ["a"]}}), Factors::new());
    for stage in PluginType::STAGES {
        let asked = Asked {
            stage,
            job: &job,
            factors: &factors,
            earlier: &[],
            least_recheck: Duration::from_secs(1),
            now: Time(1_700_000_000_000_000),
        };
        let first = read(&asked, value.clone());
        if first != read(&asked, value.clone()) {
            return Err(format!("{stage} reads the same answer in two ways"));
        }
        if first.is_err_and(|why| why.is_empty()) {
            return Err(format!("{stage} refuses without a reason"));
        }
    }
    Ok(())
}

/// A job that every built-in plugin is asked about.
pub(super) fn job(bytes: &[u8]) -> Result<(), String> {
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else { return Ok(()) };
    let context = Context { now: Time(1_700_000_000_000_000), running: 1, history: vec![true, false] };
    let options = |name: &str| match name {
        "quota" => json!({"maxRunningPerUser": 1}),
        "shared-volume" => json!({"claim": "data", "mountPath": "/data"}),
        _ => Value::Null,
    };
    for plugin_type in PluginType::STAGES {
        for name in octoflow_engine::plugins::builtins(plugin_type) {
            let header = json!({"jobID": "j", "userID": "u", "jobKind": document["kind"]});
            let input = json!({"factors": document["factors"], "header": header, "job": document});
            let ask = || builtin::answer(name, &input, &options(name), &context);
            // Settings that a text may be are read without harm.
            let _ = builtin::check_options(name, &document);
            let answer = ask();
            if answer != ask() {
                return Err(format!("{name} answers in two ways"));
            }
            match (plugin_type, answer) {
                (_, Err(why)) if why.is_empty() => return Err(format!("{name} refuses without a reason")),
                (_, Err(_)) => {}
                (PluginType::TemplateTranslator, Ok(made)) if made["kind"] != "TaskSet" => {
                    return Err(format!("{name} makes what is no TaskSet"));
                }
                (PluginType::TemplateDecorator, Ok(made)) => only_adds(name, &document, &made, Mode::Decorate)?,
                (PluginType::SchedulerBinder, Ok(made)) => only_adds(name, &document, &made, Mode::Bind)?,
                (
                    PluginType::TemplateTranslator
                    | PluginType::FactorGenerator
                    | PluginType::AccessGate
                    | PluginType::LifeHook,
                    Ok(_),
                ) => {}
            }
        }
    }
    Ok(())
}

fn only_adds(name: &str, job: &Value, made: &Value, mode: Mode) -> Result<(), String> {
    match increment::check(job, made, mode) {
        Ok(_) => Ok(()),
        Err(conflict) if conflict.message.contains("too large") => Ok(()),
        Err(conflict) => Err(format!("{name} changes the job: {}", conflict.message)),
    }
}

pub(super) fn random_selector(draw: &mut Draw, depth: u64) -> String {
    let mut text = expression(draw, depth);
    for _ in 0..draw.between(1, 5) {
        let expect = draw.pick(&[
            "debug",
            "/de.*g/i",
            "/a|b/",
            "",
            ".*",
            "/(/",
            "[1,{\"a\":null}]",
            "x+",
            "/\\p{Greek}{1000}/",
            "ü",
        ]);
        let _ = write!(text, "\n{expect}");
    }
    text
}

fn expression(draw: &mut Draw, depth: u64) -> String {
    if depth == 0 || draw.chance(20) {
        return (*draw.pick(&["a", "b", "c", "d", "*", "x-1.y", "9", ""])).to_owned();
    }
    match draw.below(5) {
        0 => format!("!{}", expression(draw, depth - 1)),
        1 => format!("({})", expression(draw, depth - 1)),
        2 => format!("{} || {}", expression(draw, depth - 1), expression(draw, depth - 1)),
        _ => format!("{} && {}", expression(draw, depth - 1), expression(draw, depth - 1)),
    }
}

pub(super) fn random_increment(draw: &mut Draw, depth: u64) -> String {
    let old = document(draw, depth);
    let new = if draw.chance(80) { more(&old, draw) } else { document(draw, depth) };
    json!([old, new]).to_string()
}

fn document(draw: &mut Draw, depth: u64) -> Value {
    const KEYS: &[&str] = &["spec", "name", "command", "nodeSelector", "schedulerName", "labels", "env", "a b", "x"];
    match if depth == 0 { draw.below(4) } else { draw.below(10) } {
        0 => Value::Null,
        1 => json!(*draw.pick(&[-1.0, 0.0, 1.5, 1e3, 1e300])),
        2 => json!(*draw.pick(&["a", "", "b;a", "sleep 20;exit 0", "ü\"\\"])),
        3 => json!(draw.chance(50)),
        4..=6 => (0..draw.between(0, 4)).map(|_| document(draw, depth - 1)).collect(),
        _ => {
            let members = (0..draw.between(0, 4)).map(|_| ((*draw.pick(KEYS)).to_owned(), document(draw, depth - 1)));
            Value::Object(members.collect())
        }
    }
}

/// The document with something added, and now and then something else changed.
fn more(old: &Value, draw: &mut Draw) -> Value {
    match old {
        Value::Array(values) => {
            let mut values: Vec<Value> = values.iter().map(|value| more(value, draw)).collect();
            if draw.chance(40) {
                let at = draw.below(values.len() as u64 + 1) as usize;
                values.insert(at, json!({"name": "new"}));
            }
            Value::Array(values)
        }
        Value::Object(members) => {
            let mut members: serde_json::Map<String, Value> =
                members.iter().map(|(key, value)| (key.clone(), more(value, draw))).collect();
            if draw.chance(30) {
                members.insert((*draw.pick(&["more", "schedulerName", "env"])).to_owned(), json!(["x"]));
            }
            Value::Object(members)
        }
        Value::String(text) if draw.chance(20) => json!(format!("first;{text}")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            if draw.chance(3) {
                json!(7)
            } else {
                old.clone()
            }
        }
    }
}

pub(super) fn random_answer(draw: &mut Draw, depth: u64) -> String {
    let recheck = *draw.pick(&[-1.0, 0.0, 0.5, 60.0, 1e300]);
    let answer = match draw.below(5) {
        0 => json!({"topic": document(draw, 1), "advice": document(draw, 1), "reason": "x"}),
        1 => json!([{"topic": "t", "advice": "1"}, document(draw, depth)]),
        2 => {
            json!({"decision": *draw.pick(&["pass", "suspend", "stop", "Pass", ""]), "reason": "r", "recheckAfter": recheck})
        }
        3 => {
            json!({"kind": "TaskSet", "spec": {"roles": [document(draw, depth)], "command": ["b;a"]}, "x": document(draw, depth)})
        }
        _ => document(draw, depth),
    };
    answer.to_string()
}

pub(super) fn random_job(draw: &mut Draw) -> String {
    let count = *draw.pick(&[0_u64, 1, 2, 7, 10_001]);
    let pod = json!({"spec": {"containers": [{"name": "tensorflow", "image": "i", "ports": [{"name": "tfjob-port", "containerPort": 65_535}]}]}});
    let group = |draw: &mut Draw| json!({"replicas": count, "restartPolicy": *draw.pick(&["Never", "OnFailure", "ExitCode", "?"]), "template": pod});
    let document = match draw.below(5) {
        0 => {
            json!({"kind": "TFJob", "spec": {"tfReplicaSpecs": {"Chief": group(draw), "PS": group(draw), "Worker": group(draw)}}})
        }
        1 => {
            json!({"kind": "PyTorchJob", "spec": {"nprocPerNode": draw.below(3), "pytorchReplicaSpecs": {"Master": group(draw), "Worker": group(draw)}}})
        }
        2 => {
            json!({"kind": "MPIJob", "spec": {"slotsPerWorker": draw.below(3), "mpiReplicaSpecs": {"Launcher": {"template": pod}, "Worker": group(draw)}}})
        }
        3 => {
            json!({"kind": "F", "roles": [{"name": "a", "image": "i", "command": "x", "replicas": count, "env": {"A": 1}, "resources": {"cpu": 1}}]})
        }
        _ => return crate::sim::random_task_set(draw).to_string(),
    };
    document.to_string()
}
