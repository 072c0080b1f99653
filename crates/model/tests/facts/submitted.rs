//! Examples of the facts of submitted jobs: every fact with every field, and every value inside of one.

use octoflow_model::{
    Fact, RunId,
    plugin::{
        Factor, PluginType,
        increment::{Addition, Increment, Movement},
    },
    submitted::{BoundPlugin, Edit, ErredCall, GateVerdict, WalkEnd, WalkFact},
};
use serde_json::json;

use crate::examples::{AT, LATER, every, text};

pub(crate) fn values() -> Vec<Fact> {
    let mut facts = Vec::new();
    for stage in every!(PluginType:
        TemplateTranslator, FactorGenerator, AccessGate, TemplateDecorator, SchedulerBinder, LifeHook)
    {
        facts.push(WalkFact::Bound { stage, at: AT, plugins: Vec::new() });
    }
    for then in every!(ErredCall: Retried(LATER), Ignored, Fatal) {
        facts.push(WalkFact::Erred { at: AT, why: text("it answered 500"), then });
    }
    for verdict in every!(GateVerdict: Pass, Suspend, Stop) {
        facts.push(WalkFact::Judged { at: AT, verdict, reason: String::new(), recheck: None });
    }
    for end in every!(WalkEnd: Succeeded, Failed, Stopped) {
        facts.push(WalkFact::Over { at: AT, end, message: String::new() });
    }
    facts.into_iter().map(Fact::SubmittedJob).collect()
}

pub(crate) fn all() -> Vec<Fact> {
    let plugin = BoundPlugin {
        key: text("AccessGate.quota.ops"),
        feature: text("quota"),
        address: text("builtin:quota"),
        timeout_seconds: 5,
        tries: 3,
        concurrency: 16,
        ignored: true,
        options: json!({"most": 2}),
    };
    let addition =
        Addition { path: text("spec.roles[0]"), value: json!({"name": "worker"}), inserted: true, cut: true };
    let moved = vec![Movement { path: text("spec.roles[1]"), from: 0 }];
    let facts = vec![
        WalkFact::Bound { stage: PluginType::AccessGate, at: AT, plugins: vec![plugin] },
        WalkFact::Called { at: AT },
        WalkFact::Erred { at: AT, why: text("it answered 503"), then: ErredCall::Retried(LATER) },
        WalkFact::Translated { at: AT, job: json!({"kind": "TaskSet"}) },
        WalkFact::Extended {
            at: AT,
            edits: vec![Edit { path: text("/spec/roles/0/name"), value: json!("worker"), removed: true }],
            added: Increment { added: vec![addition], moved, omitted: 1 },
        },
        WalkFact::Advised {
            at: AT,
            factors: vec![Factor { topic: text("priority"), advice: text("10"), reason: text("user is admin") }],
        },
        WalkFact::Judged { at: AT, verdict: GateVerdict::Suspend, reason: text("over quota"), recheck: Some(LATER) },
        WalkFact::Released { at: AT, recheck: true },
        WalkFact::RecheckDue { at: AT },
        WalkFact::Told { at: AT, command: text("shutdown"), reason: text("no longer needed") },
        WalkFact::HandedOver { at: AT },
        WalkFact::Held { at: AT, why: text("an earlier 'j1' is being deleted") },
        WalkFact::Made {
            at: AT,
            run: RunId(9),
            api_version: text("octopus.openi.org/v1"),
            kind: text("TaskSet"),
            name: text("j1"),
            uid: text("8f3c"),
        },
        WalkFact::Observed { at: AT, phase: text("Running"), message: text("m"), began: Some(LATER), suspended: true },
        WalkFact::Over { at: AT, end: WalkEnd::Failed, message: text("exit code 3") },
    ];
    facts.into_iter().map(Fact::SubmittedJob).collect()
}
