//! Submitted jobs in a world: random ones, features whose plugins answer late, wrong or never, what people do to jobs, and
//! the guarantees as checks on walks.

use std::collections::BTreeSet;

use octoflow_control::{Error, VirtualDisk};
use octoflow_engine::{
    Engine, Run as AnyRun,
    submission::{Run, state::WalkStep},
};
use octoflow_model::{
    AttemptId, Fact, NodeIx, RunId, Time,
    plugin::{API_VERSION, JOB_KIND},
    request::{Answer, HttpRequest, HttpResponse},
    submitted::WalkFact,
};
use octoflow_store::{Batch, Change};
use serde_json::{Value, json};

use super::{
    calendar::ticks,
    disk::Part,
    draw::Draw,
    failure::{Broken, Guarantee, broken},
    maker::Maker,
    taskset,
    world::{UserAction, UserRequest, WALKS, admitted, command},
};

/// The nodes of a walk.
const CALL: NodeIx = NodeIx(0);
const CHILD: NodeIx = NodeIx(1);

/// The kind that needs a translator.
const ODD: &str = "OddJob";

/// Plugins by name, with their types.
const PLUGINS: [(&str, &str); 7] = [
    ("translate", "TemplateTranslator"),
    ("factor-a", "FactorGenerator"),
    ("factor-b", "FactorGenerator"),
    ("gate-a", "AccessGate"),
    ("gate-b", "AccessGate"),
    ("decorate", "TemplateDecorator"),
    ("bind", "SchedulerBinder"),
];

/// Keeps the features of a world on the disk, for every loop that starts there.
pub(super) fn begin(seed: u64, disk: &VirtualDisk) -> Result<(), Error> {
    if seed < WALKS {
        return Ok(());
    }
    let mut draw = Draw::new(seed, "features");
    for (name, plugin_type) in PLUGINS {
        if name != "translate" && !draw.chance(60) {
            continue;
        }
        let mut plugin = json!({
            "pluginType": plugin_type, "callAddress": format!("http://plugins.invalid/{name}"),
            "tries": draw.between(1, 3), "timeoutSeconds": draw.between(1, 5),
        });
        if plugin_type == "FactorGenerator" && draw.chance(50) {
            plugin["onFailure"] = json!("ignore");
        }
        let selector = match plugin_type {
            "TemplateTranslator" => {
                json!({"conditions": [{"name": "odd", "key": "jobKind", "expect": ODD}], "expression": "odd"})
            }
            _ => json!({"expression": "*"}),
        };
        let object = json!({"kind": "Feature", "metadata": {"name": name}, "spec": {
            "author": "sim", "enabled": true, "jobSelector": selector, "plugins": [plugin],
        }});
        disk.write(&Batch::from(Change::PutObject {
            kind: "Feature".to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
            uid: name.to_owned(),
            body: object.to_string().into_bytes(),
        }))?;
    }
    Ok(())
}

/// Somebody submits a job, and tells it to do this and that.
pub(super) fn acts(seed: u64, run: RunId, at: Time, slots: usize) -> Result<Vec<UserAction>, Broken> {
    let name = format!("s{run}");
    let mut draw = Draw::new(seed, &name);
    let odd = draw.chance(50);
    let job = if odd { json!({"kind": ODD, "slots": slots}) } else { taskset::manifest(&mut draw, &name, slots) };
    let object = json!({
        "apiVersion": API_VERSION, "kind": JOB_KIND, "metadata": {"name": name},
        "spec": {"userID": "u", "jobName": name, "jobKind": job["kind"], "header": {"tier": "a"}, "job": job},
    });
    let mut acts = vec![UserAction::submit(seed, run, at, name, admitted(&object)?)];
    for _ in 0..draw.below(4) {
        let at = at.saturating_add(ticks(draw.below(1500)));
        // The command for single nodes is not for jobs.
        let command = loop {
            let command = command(&mut draw, true);
            if !matches!(&command, octoflow_engine::Command::Resume { selector: Some(_), .. }) {
                break command;
            }
        };
        acts.push(UserAction { at, run, request: UserRequest::Command(command) });
    }
    Ok(acts)
}

/// What a plugin says, and now and then does not.
pub(super) fn answer(draw: &mut Draw, request: &HttpRequest) -> Answer {
    let told = |status: u16, body: String| Answer::Http(HttpResponse { status, headers: Vec::new(), body });
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let mut job = asked["job"].clone();
    match draw.below(100) {
        0 | 1 => return Answer::Refused(format!("{} did not answer within 5 s", request.url)),
        2 | 3 => return told(*draw.pick(&[302, 404, 500, 503]), "{}".to_owned()),
        4 => return told(200, "{\"kind\": ".to_owned()),
        5 => return told(200, json!([1, "what"]).to_string()),
        _ => {}
    }
    let name = request.url.rsplit('/').next().unwrap_or_default();
    let document = match name {
        "translate" => {
            let slots = usize::try_from(job["slots"].as_u64().unwrap_or(1)).unwrap_or(1);
            taskset::manifest(draw, "t", slots)
        }
        "factor-a" | "factor-b" => json!({"topic": "priority", "advice": draw.below(9).to_string(), "reason": name}),
        "gate-a" | "gate-b" => match draw.below(30) {
            0..=2 => json!({"decision": "suspend", "reason": "wait", "recheckAfter": draw.between(1, 4)}),
            3 | 4 => json!({"decision": "suspend", "reason": "ask somebody"}),
            5 => json!({"decision": "stop", "reason": "never"}),
            6 => json!({"decision": "maybe", "reason": ""}),
            _ => json!({"decision": "pass", "reason": ""}),
        },
        // Against the rule now and then.
        _ if draw.chance(3) => json!({"kind": "TaskSet"}),
        name => {
            if job["metadata"].is_null() {
                job["metadata"] = json!({});
            }
            job["metadata"]["annotations"][name] = json!("seen");
            job
        }
    };
    told(200, document.to_string())
}

/// The key under which a fact of the walk answers a question.
pub(super) fn answered_key(run: &Run, fact: &Fact) -> Option<String> {
    let Fact::SubmittedJob(
        WalkFact::Translated { .. } | WalkFact::Extended { .. } | WalkFact::Advised { .. } | WalkFact::Judged { .. },
    ) = fact
    else {
        return None;
    };
    let (walk, id) = (&run.state.walk, &run.state.head.name);
    let key = &walk.plugin()?.key;
    Some(if walk.asks == 0 { format!("{id}/{key}") } else { format!("{id}/{key}#{}", walk.asks) })
}

/// Reports whether nothing may be ordered any more. A call may be ordered and called off in one commit.
pub(super) fn over(run: &Run) -> bool {
    run.state.finished.is_some() && !run.state.head.closing()
}

/// Reports whether a gate holds the job.
pub(super) fn is_gated(run: &AnyRun) -> bool {
    run.of::<Run>().is_some_and(|run| run.state.walk.gated)
}

/// The job itself can end for good, and how it has.
pub(super) fn finals(run: &Run) -> Vec<(Part, Option<&'static str>)> {
    vec![(Part::Job, run.state.finished.map(|_| run.walk_state().word()))]
}

/// G5: nobody is asked while the job is held, or about to end, and nothing is handed over twice.
pub(super) fn grown(run: &Run, fact: &Fact) -> Result<(), Broken> {
    let (head, walk) = (&run.state.head, &run.state.walk);
    match fact {
        Fact::SubmittedJob(WalkFact::Called { .. } | WalkFact::HandedOver { .. })
            if head.closing() || head.suspended =>
        {
            broken(Guarantee::Limits, format!("{} goes on though it is held: {fact:?}", head.name))
        }
        Fact::SubmittedJob(WalkFact::Called { .. }) if walk.handed_over.is_some() => {
            broken(Guarantee::Twice, format!("{} asks a plugin after its hand-over", head.name))
        }
        _ => Ok(()),
    }
}

/// What a job knows of the run that came out is what that is, as people see both.
pub(super) fn remembers<'r>(run: &Run, seen: impl Fn(RunId) -> Option<&'r AnyRun>) -> Result<(), Broken> {
    let Some(known) = run.state.walk.child.as_ref().filter(|_| run.state.finished.is_none()) else { return Ok(()) };
    let Some(child) = seen(known.run) else {
        return broken(Guarantee::Together, format!("job {} follows run {}, which nobody sees", run.id, known.run));
    };
    if known.phase != child.phase() || child.finished() {
        let (is, told) = (child.phase(), &known.phase);
        return broken(Guarantee::Together, format!("run {} is {is}, and its job {} tells {told}", known.run, run.id));
    }
    Ok(())
}

/// G2: everything open has somebody who will bring it on.
pub(super) fn owned(
    run: &Run,
    (engine, wake_at): (&Engine, Option<Time>),
    maker: &Maker,
    starting: &BTreeSet<AttemptId>,
    now: Time,
) -> Result<(), Broken> {
    let (head, walk) = (&run.state.head, &run.state.walk);
    let has = |node: NodeIx| {
        let attempt = run.attempt_of(node);
        attempt.is_some_and(|attempt| maker.answers_for(attempt) || starting.contains(&attempt))
    };
    let woken = |at: Time| head.suspended || at <= now || wake_at.is_some_and(|wake| wake <= at);
    let fine = match walk.step {
        WalkStep::Ready => head.suspended,
        WalkStep::Calling => has(CALL),
        WalkStep::Pausing(until) | WalkStep::Gated(Some(until)) => woken(until),
        // Somebody resumes it.
        WalkStep::Gated(None) => true,
        WalkStep::HandingOver => has(CHILD),
        WalkStep::Following => {
            let child = walk.child.as_ref().and_then(|child| engine.run(child.run));
            child.is_some_and(|child| !child.finished())
        }
        WalkStep::Ending(_) | WalkStep::Over(_) => false,
    };
    if fine {
        return Ok(());
    }
    broken(Guarantee::Owned, format!("{} is {:?} and nothing will bring it on", head.name, walk.step))
}
