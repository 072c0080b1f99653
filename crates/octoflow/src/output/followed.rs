//! Followed workflows, for tests of displays.
#![cfg(test)]

use std::time::Duration;

use octoflow_engine::{
    argo,
    follow::{Event, FollowedRun},
};
use octoflow_model::{
    Fact, NodeIx, Time,
    argo::{InputValues, NodeAdded, NodeFinished, NodeKind, NodeList, OutputValues, Phase, Role, WorkflowFact},
};

/// Returns a workflow that is followed from its beginning.
pub(crate) fn workflow(name: &str) -> FollowedRun {
    let mut run = FollowedRun::new(name);
    run.dialect = Some(&argo::DIALECT);
    run
}

/// Makes a fact that adds a node in the given phase.
pub(crate) fn added(
    name: &str,
    kind: NodeKind,
    role: Role,
    parent: Option<u32>,
    boundary: Option<u32>,
    phase: Phase,
) -> Fact {
    Fact::Workflow(WorkflowFact::Added(Box::new(NodeAdded {
        name: name.to_owned(),
        kind,
        role,
        parent: parent.map(NodeIx),
        boundary: boundary.map(NodeIx),
        after: NodeList::default(),
        template: Some("t".to_owned()),
        phase,
        message: String::new(),
        at: Time::from_secs(0),
        inputs: InputValues::default(),
        followed: false,
        wake: None,
        barred: false,
        hooked: false,
        display: None,
        reused: false,
    })))
}

pub(crate) fn finished(node: u32, phase: Phase, message: &str, at: Time) -> Fact {
    Fact::Workflow(WorkflowFact::Finished(Box::new(NodeFinished {
        node: NodeIx(node),
        phase,
        message: message.to_owned(),
        at,
        outputs: OutputValues::default(),
        outbound: NodeList::default(),
        log_bytes: 0,
    })))
}

pub(crate) fn two_steps() -> Vec<Fact> {
    vec![
        Fact::Workflow(WorkflowFact::Began {
            at: Time::from_secs(0),
            parameters: Vec::new(),
            labels: octoflow_model::task::Labels::default(),
            annotations: octoflow_model::task::Labels::default(),
        }),
        added("w", NodeKind::Steps, Role::Entry, None, None, Phase::Running),
        added("w[0]", NodeKind::StepGroup, Role::Group(0), Some(0), Some(0), Phase::Running),
        added("w[0].a", NodeKind::Pod, Role::Step { step: 0, item: None }, Some(1), Some(0), Phase::Pending),
        added("w[0].b", NodeKind::Skipped, Role::Step { step: 1, item: None }, Some(1), Some(0), Phase::Skipped),
    ]
}

#[test]
fn facts_become_events_for_steps_and_silence_for_groups() {
    let mut run = workflow("w");
    let told: Vec<Event> = two_steps().iter().filter_map(|fact| run.take(fact)).map(|(_, event)| event).collect();
    assert_eq!(told, [Event::Began, Event::Finished(NodeIx(3))]);
    let start = Fact::Workflow(WorkflowFact::Started { node: NodeIx(2), at: Time::from_secs(1) });
    assert_eq!(run.take(&start), Some((Time::from_secs(1), Event::Started(NodeIx(2)))));
    assert_eq!((run.done, run.total), (0, 1));
    run.take(&finished(2, Phase::Succeeded, "", Time::from_secs(3)));
    assert_eq!((run.done, run.total), (1, 1));
    assert_eq!(run.nodes[2].took(Time::from_secs(9)), Duration::from_secs(2));
}

#[test]
fn labels_name_the_way_to_a_node() {
    let mut run = workflow("w");
    let step = |step| Role::Step { step, item: None };
    run.take(&added("w", NodeKind::Steps, Role::Entry, None, None, Phase::Running));
    run.take(&added("w[0].outer", NodeKind::Dag, step(0), None, Some(0), Phase::Running));
    run.take(&added("w[0].outer.inner", NodeKind::Pod, Role::Task(0), Some(1), Some(1), Phase::Pending));
    assert_eq!(run.label(NodeIx(0)), "w");
    assert_eq!(run.label(NodeIx(1)), "outer");
    assert_eq!(run.label(NodeIx(2)), "outer/inner");
}
