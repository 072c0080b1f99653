//! JobFlows, JobTemplates and patches as texts: random ones, and what must hold for each. A flow that is let in comes to its end
//! whatever becomes of its jobs; a template that is let in makes a job that is let in.

use std::collections::BTreeMap;

use octoflow_engine::{
    Capacity, Engine, Input,
    admit::{Catalog, examine},
    engine::fold,
    jobflow::{self, patch::patched},
    kinds::{self, Kind},
};
use octoflow_manifest::{Limits, read};
use octoflow_model::{
    Order, Report, RunId, Time,
    jobflow::{API_VERSION, KIND, TEMPLATE_KIND},
    request::{Answer, MakeRequest, Request},
    submission::Submission,
};
use serde_json::{Value, json};

use crate::sim::Draw;

const RUN: RunId = RunId(1);
const DAWN: Time = Time(1_700_000_000_000_000);
/// Entries of a flow that is run; larger ones are only judged.
const MAX_ENTRIES: usize = 200;
/// A flow that needs more than this goes in circles: each entry has at most a thousand retries.
const MAX_STEPS: usize = 500_000;

const ROOM: Capacity = Capacity { slots: 100, cpu_milli: 1 << 40, memory_bytes: 1 << 60 };

struct Nothing;

impl Catalog for Nothing {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
}

/// A flow by any spelling.
pub(super) fn job_flow(bytes: &[u8]) -> Result<(), String> {
    for object in objects(bytes, KIND) {
        match examine(&object, &Nothing) {
            Err(problems) if problems.iter().all(|problem| problem.code.is_empty()) => {
                return Err("refused without a code".to_owned());
            }
            Err(problems) => drop(problems.render(false)),
            Ok(admitted) => {
                let first = run(&admitted.manifest)?;
                if first != run(&admitted.manifest)? {
                    return Err("the same flow runs in two ways".to_owned());
                }
            }
        }
    }
    Ok(())
}

/// A template by any spelling.
pub(super) fn job_template(bytes: &[u8]) -> Result<(), String> {
    let kind = kinds::of_key(TEMPLATE_KIND).ok_or("there are no templates")?;
    let (check, make) = kind.examine.zip(kind.make).ok_or("jobs are not made of templates")?;
    for object in objects(bytes, TEMPLATE_KIND) {
        let (errors, _) = check(&object, &Nothing);
        if errors.iter().any(|problem| problem.code.is_empty()) {
            return Err("refused without a code".to_owned());
        }
        if errors.is_empty()
            && let Err(problems) = examine(&make(&object, &asked(None)), &Nothing)
        {
            return Err(format!("the template is let in and its job is not: {problems}"));
        }
    }
    Ok(())
}

/// A specification and a patch, as a list of two.
pub(super) fn patch(bytes: &[u8]) -> Result<(), String> {
    for value in read("fuzz", bytes, &Limits::default()).into_iter().flatten().map(|document| document.value) {
        let (spec, change) = (&value[0], &value[1]);
        let result = patched(spec, change);
        if result != patched(spec, change) {
            return Err("the same patch gives two results".to_owned());
        }
        if patched(spec, &json!({})) != *spec && spec.is_object() {
            return Err("an empty patch changes something".to_owned());
        }
        for (field, wanted) in change.as_object().into_iter().flatten().filter(|_| spec.is_object()) {
            let scalar = wanted.is_string() || wanted.is_number() || wanted.is_boolean();
            if scalar && result[field] != *wanted {
                return Err(format!("{field} is {} and not {wanted}", result[field]));
            }
        }
        let kind = kinds::of_key(TEMPLATE_KIND).ok_or("there are no templates")?;
        let make = kind.make.ok_or("jobs are not made of templates")?;
        let made = make(&json!({"spec": spec}), &asked(Some(change.clone())));
        drop(examine(&made, &Nothing));
    }
    Ok(())
}

fn objects(bytes: &[u8], kind: &str) -> Vec<Value> {
    let documents = read("fuzz", bytes, &Limits::default()).into_iter().flatten();
    let mut objects: Vec<Value> = documents.map(|document| document.value).filter(Value::is_object).collect();
    for object in &mut objects {
        // Damage elsewhere is more interesting than damage to these.
        object["apiVersion"] = json!(API_VERSION);
        object["kind"] = json!(kind);
    }
    objects
}

fn asked(patch: Option<Value>) -> MakeRequest {
    MakeRequest {
        template_kind: TEMPLATE_KIND.to_owned(),
        template: "a".to_owned(),
        namespace: "default".to_owned(),
        name: "f-a".to_owned(),
        seed: "a/0".to_owned(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        owner: json!({"apiVersion": API_VERSION, "kind": KIND, "name": "f", "uid": "u", "controller": true}),
        patch,
        child: None,
    }
}

/// Runs a flow none of whose jobs can be made, to its end; gives how each entry ended.
fn run(manifest: &Value) -> Result<Vec<String>, String> {
    let entries = manifest["spec"]["flows"].as_array().map_or(0, Vec::len);
    if entries > MAX_ENTRIES {
        return Ok(Vec::new());
    }
    let submission = Submission {
        name: "f".to_owned(),
        namespace: "default".to_owned(),
        uid: "u".to_owned(),
        at: DAWN,
        manifest: manifest.clone(),
        stored: Default::default(),
        context: Default::default(),
        previous: None,
        parent: None,
        ordered_by: None,
    };
    let (mut engine, mut now, mut facts, mut open) = (Engine::new(ROOM), DAWN, Vec::new(), Vec::new());
    let mut next = Some(Input::Submit { run: RUN, submission: Box::new(submission), program: None });
    let mut begun = false;
    for _ in 0..MAX_STEPS {
        let Some(input) = next.take() else { break };
        let outcome = engine.handle(input, now);
        if let Some(refusal) = outcome.refusal {
            return Err(format!("what was let in is refused: {refusal}"));
        }
        facts.extend(outcome.decided.into_iter().flat_map(|decided| decided.facts));
        for order in outcome.orders {
            if let Order::Start { attempt, task } = order {
                match task.call.as_deref() {
                    Some(Request::Make(_)) => open.push(attempt),
                    other => return Err(format!("a flow without jobs asks for {other:?}")),
                }
            }
        }
        let over = engine.run(RUN).is_none_or(|run| run.finished());
        next = match (open.pop(), engine.wake_at()) {
            _ if !begun => Some(Input::Begin { run: RUN }),
            _ if over => None,
            (Some(attempt), _) => {
                let answer = Box::new(Answer::Refused("no".to_owned()));
                Some(Input::Report(Report::Answered { attempt, at: now, answer }))
            }
            (None, Some(at)) => {
                now = now.max(at);
                Some(Input::Tick)
            }
            (None, None) if engine.run(RUN).is_some_and(|run| run.head().suspended) => None,
            (None, None) => return Err("it waits for nothing".to_owned()),
        };
        begun = true;
    }
    let live = engine.run(RUN).and_then(|run| run.of::<jobflow::Run>());
    let folded = fold(RUN, facts).map_err(|why| format!("its own journal cannot be read: {why}"))?;
    drop(folded.object());
    let folded = folded.of::<jobflow::Run>().ok_or("it is no flow any more")?;
    if live.is_some_and(|live| live.state != folded.state) {
        return Err("the fold of its facts is not its state".to_owned());
    }
    Ok(folded.state.flow.entries.iter().map(|entry| format!("{:?}", entry.stage)).collect())
}

/// A random flow, as text.
pub(super) fn random_flow(draw: &mut Draw) -> String {
    let count = draw.between(1, 8);
    let entries: Vec<Value> = (0..count)
        .map(|at| {
            let targets: Vec<String> = (0..at).filter(|_| draw.chance(40)).map(|up| format!("j{up}")).collect();
            let mut entry = json!({"name": format!("j{at}")});
            if !targets.is_empty() {
                entry["dependsOn"] = json!({"targets": targets, "strategy": draw.pick(&["all", "any"])});
            }
            if !targets.is_empty() && draw.chance(30) {
                entry["dependsOn"]["probe"] = json!({
                    "taskStatusList": [{"taskName": "main", "phase": draw.pick(&["Running", "Succeeded"])}],
                    "tcpSocketList": [{"port": draw.between(1, 65_535)}],
                });
            }
            if draw.chance(30) {
                entry["retry"] = json!({"maxRetries": draw.below(4), "backoff": draw.pick(&["1s", "1h30m", "0s"])});
            }
            if draw.chance(30) {
                entry["patch"] = json!({"jobSpec": change(draw)});
            }
            entry
        })
        .collect();
    let mut flow = json!({"metadata": {"name": "f"}, "spec": {"flows": entries}});
    if draw.chance(30) {
        flow["spec"]["jobRetainPolicy"] = json!(draw.pick(&["retain", "delete", ""]));
    }
    flow.to_string()
}

/// A random template, as text.
pub(super) fn random_template(draw: &mut Draw) -> String {
    json!({"metadata": {"name": "a"}, "spec": spec(draw)}).to_string()
}

/// A random specification and a patch, as text.
pub(super) fn random_patch(draw: &mut Draw) -> String {
    json!([spec(draw), change(draw)]).to_string()
}

fn spec(draw: &mut Draw) -> Value {
    let tasks: Vec<Value> = (0..draw.between(1, 3)).map(|at| task(draw, at)).collect();
    let mut spec = json!({"tasks": tasks});
    if draw.chance(50) {
        spec["volumes"] =
            json!([{"mountPath": "/in"}, {"mountPath": "/out", "volumeClaimName": "c", "volumeClaim": {}}]);
    }
    if draw.chance(40) {
        spec["plugins"] = json!({"env": [], "svc": []});
    }
    spec
}

fn task(draw: &mut Draw, at: u64) -> Value {
    let container = json!({"name": "main", "image": "i", "command": ["c"], "env": [{"name": "A", "value": "1"}]});
    json!({"name": format!("t{at}"), "replicas": draw.between(1, 3), "template": {"spec": {"containers": [container]}}})
}

fn change(draw: &mut Draw) -> Value {
    let mut change = json!({});
    if draw.chance(60) {
        let at = draw.below(4);
        change["tasks"] = json!([task(draw, at)]);
    }
    if draw.chance(40) {
        change["maxRetry"] = json!(draw.below(9));
    }
    if draw.chance(40) {
        change["policies"] = json!([{"event": draw.pick(&["PodFailed", "*"]), "action": "RestartJob"}]);
    }
    if draw.chance(30) {
        change["volumes"] = json!([{"mountPath": "/in", "volumeClaimName": "d"}]);
    }
    change
}
