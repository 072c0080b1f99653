//! Facts keep their form on disk: `facts.jsonl` holds at least one line of every fact, as journals have it.
//! A line of it is never edited or removed, because journals with such lines exist. A new fact, or a fact with a new
//! field, adds a line. `examples.rs` names every field, so neither can be forgotten: it does not compile without them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod examples;
mod kubejob;
mod submitted;

use std::collections::{BTreeMap, BTreeSet};

use octoflow_model::{
    Fact, RunFact, argo::WorkflowFact, jobflow::FlowFact, kubejob::KubeJobFact, submitted::WalkFact, taskset::SetFact,
    volcano::JobFact,
};
use serde_json::Value;

const LINES: &str = include_str!("facts.jsonl");

/// Names every variant of an enum once; one that is left out does not compile.
macro_rules! names {
    ($function:ident, $list:ident, $kind:ident: $($variant:ident)*) => {
        const $list: &[&str] = &[$(stringify!($variant)),*];

        fn $function(value: &$kind) -> &'static str {
            match value { $($kind::$variant { .. } => stringify!($variant)),* }
        }
    };
}

names!(run_fact_name, RUN_FACTS, RunFact: Submitted Suspended Resumed ShuttingDown DeadlinePassed Deadlock Marked Ended);

names!(workflow_fact_name, WORKFLOW_FACTS, WorkflowFact:
    Began Added Wanted Waiting Locked Expanded Launched Preempted Requeued Started ChildCreated Progressed Daemoned Dismissed Stopping
    Backoff Supplied Finished Settled Due Recalled Memoized Exported Metered Unmetered Expired);

names!(set_fact_name, SET_FACTS, SetFact:
    Began Queued Launched Started Ending Ended Again Dropped RoleJudged RoleOver Judged Over);

names!(job_fact_name, JOB_FACTS, JobFact:
    Entered Created Launched Started Ending Ended Removed Delayed DelayEnded Ready Resized Awaits Left);

names!(flow_fact_name, FLOW_FACTS, FlowFact:
    Wanted Held Made Observed Probing ConditionMet Ended Removing Removed);

names!(kube_job_fact_name, KUBE_JOB_FACTS, KubeJobFact:
    Began Created Launched Started Ready Ending Ended Removed Amended Judged);

names!(walk_fact_name, WALK_FACTS, WalkFact:
    Bound Called Erred Translated Extended Advised Judged Released RecheckDue Told HandedOver Held Made Observed Over);

/// The name of a fact, with the dialect in front where it has facts of its own.
fn name(fact: &Fact) -> String {
    match fact {
        Fact::Run(inner) => run_fact_name(inner).to_owned(),
        Fact::Workflow(inner) => workflow_fact_name(inner).to_owned(),
        Fact::TaskSet(inner) => format!("TaskSet.{}", set_fact_name(inner)),
        Fact::VolcanoJob(inner) => format!("VolcanoJob.{}", job_fact_name(inner)),
        Fact::KubeJob(inner) => format!("KubeJob.{}", kube_job_fact_name(inner)),
        Fact::JobFlow(inner) => format!("JobFlow.{}", flow_fact_name(inner)),
        Fact::SubmittedJob(inner) => format!("SubmittedJob.{}", walk_fact_name(inner)),
    }
}

fn lines() -> impl Iterator<Item = &'static str> {
    LINES.lines()
}

#[test]
fn every_line_is_read_and_written_again_as_it_is() {
    for line in lines() {
        let fact: Fact = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(serde_json::to_string(&fact).unwrap(), line, "this fact has changed its form on disk");
    }
}

#[test]
fn every_fact_has_a_line() {
    let known: BTreeSet<String> = lines().map(|line| name(&serde_json::from_str(line).unwrap())).collect();
    let own = RUN_FACTS.iter().chain(WORKFLOW_FACTS).map(|name| (*name).to_owned());
    let own = own.chain(SET_FACTS.iter().map(|name| format!("TaskSet.{name}")));
    let own = own.chain(JOB_FACTS.iter().map(|name| format!("VolcanoJob.{name}")));
    let own = own.chain(KUBE_JOB_FACTS.iter().map(|name| format!("KubeJob.{name}")));
    let own = own.chain(WALK_FACTS.iter().map(|name| format!("SubmittedJob.{name}")));
    let all: BTreeSet<String> = own.chain(FLOW_FACTS.iter().map(|name| format!("JobFlow.{name}"))).collect();
    assert_eq!(known, all, "facts.jsonl needs a line of each");
}

/// The last line of a fact is the one with every field there is.
#[test]
fn the_newest_line_of_a_fact_says_everything_it_can_say() {
    let mut newest = BTreeMap::new();
    for line in lines() {
        newest.insert(name(&serde_json::from_str(line).unwrap()), line);
    }
    for example in examples::all() {
        let written = serde_json::to_string(&example).unwrap();
        let name = name(&example);
        let line = newest.get(&name).copied().unwrap_or_default();
        assert_eq!(written, line, "append this line to facts.jsonl, and leave the others: {written}");
    }
}

#[test]
fn every_value_inside_of_a_fact_has_a_line() {
    let known: BTreeSet<&str> = lines().collect();
    for fact in examples::variants() {
        let written = serde_json::to_string(&fact).unwrap();
        assert!(known.contains(written.as_str()), "put this line into facts.jsonl, and leave the others: {written}");
    }
}

/// A field that a newer version has added changes the meaning of a fact, so the fact is refused and the field not
/// overlooked.
#[test]
fn a_field_that_nobody_knows_is_refused_by_its_name() {
    for example in examples::all() {
        let mut value = serde_json::to_value(&example).unwrap();
        let fields = innermost(&mut value);
        fields.as_object_mut().unwrap().insert("tomorrow".to_owned(), Value::Bool(true));
        let error = serde_json::from_value::<Fact>(value).expect_err(&name(&example)).to_string();
        assert!(error.contains("unknown field `tomorrow`"), "{}: {error}", name(&example));
    }
}

#[test]
fn a_fact_that_nobody_knows_is_refused_by_its_name() {
    for line in [
        r#"{"Tomorrow":{"at":1}}"#,
        r#"{"TaskSet":{"Tomorrow":{"at":1}}}"#,
        r#"{"VolcanoJob":{"Tomorrow":{"at":1}}}"#,
        r#"{"KubeJob":{"Tomorrow":{"at":1}}}"#,
        r#"{"JobFlow":{"Tomorrow":{"at":1}}}"#,
        r#"{"SubmittedJob":{"Tomorrow":{"at":1}}}"#,
    ] {
        let error = serde_json::from_str::<Fact>(line).unwrap_err().to_string();
        assert!(error.contains("unknown variant `Tomorrow`"), "{error}");
    }
}

/// The fields of a fact, below its name.
fn innermost(value: &mut Value) -> &mut Value {
    let fields = value.as_object_mut().unwrap().values_mut().next().unwrap();
    let nested = fields.as_object().is_some_and(|map| map.len() == 1 && is_of_dialect(map.keys().next().unwrap()));
    if nested { fields.as_object_mut().unwrap().values_mut().next().unwrap() } else { fields }
}

/// Reports whether a name is that of a fact below the name of its dialect.
fn is_of_dialect(name: &str) -> bool {
    [SET_FACTS, JOB_FACTS, KUBE_JOB_FACTS, FLOW_FACTS, WALK_FACTS].iter().any(|facts| facts.contains(&name))
}
