//! Runs DAGs: calls a task once all its dependencies are over, if its condition holds then.

use std::sync::Arc;

use octoflow_model::{
    NodeIx,
    argo::{InputValues, NodeKind, NodeList, Phase, Role, WorkflowFact},
};

use super::{
    call::{Called, NewNode},
    expand::{Loop, nth},
    ident::item_suffix,
    instance::Instance,
    node::{Body, Dag, Expansion},
    program::CallSite,
    steps::FAIL_FAST,
    turn::Turn,
    view::View,
};
use crate::expr::depends::TaskOutcome;

impl Turn<'_> {
    pub(super) fn visit_dag(&mut self, at: NodeIx) {
        let instance = match self.instance(at) {
            Ok(instance) => instance,
            Err(_) if self.dismisses(at) => return,
            Err(why) => return self.finish(at, Phase::Error, why),
        };
        let closing = self.run.state.closes(at);
        let fails_fast = self.view().fails_fast(at);
        if !closing && !fails_fast {
            self.call_ready(at, &instance);
        }
        let dag = self.view().dag(at);
        if dag.open > 0 {
            return;
        }
        if (closing || fails_fast) && self.dismisses(at) {
            return;
        }
        if closing {
            let outbound = self.view().targets_outbound(at, &instance);
            self.finish_with(at, Phase::Failed, String::new(), Default::default(), outbound);
        } else if fails_fast {
            let outbound = self.view().targets_outbound(at, &instance);
            self.finish_with(at, Phase::Failed, FAIL_FAST.to_owned(), Default::default(), outbound);
        } else {
            self.assess_dag(at, &instance);
        }
    }

    /// Calls every ready task, until a limit blocks one.
    fn call_ready(&mut self, at: NodeIx, instance: &Arc<Instance>) {
        if !self.run.todo.ready.contains_key(&at) {
            let dag = self.view().dag(at);
            let open = (0..dag.waits.len() as u32)
                .filter(|task| dag.waits[*task as usize] == 0 && dag.nodes[*task as usize].is_none());
            let ready = open.collect();
            self.run.todo.ready.insert(at, ready);
        }
        while let Some(task) = self.run.todo.ready.get_mut(&at).and_then(std::collections::VecDeque::pop_front) {
            if self.is_spent() {
                self.run.todo.ready.entry(at).or_default().push_front(task);
                return self.pause(at);
            }
            if !instance.dag_targets().needed[task as usize] || self.view().dag(at).nodes[task as usize].is_some() {
                continue;
            }
            if let Called::Blocked(gate) = self.call_task(at, instance, task) {
                self.run.todo.ready.entry(at).or_default().push_front(task);
                self.park(at, gate);
                return;
            }
        }
    }

    fn call_task(&mut self, dag: NodeIx, instance: &Arc<Instance>, task: u32) -> Called {
        let place = CallSite::Task(task);
        let call = instance.call(place);
        let needs = &instance.compiled.graph().tasks[task as usize].needs;
        let mut after = NodeList::default();
        for needed in needs {
            if let Some(node) = self.view().dag(dag).nodes[*needed as usize] {
                self.view().add_outbound(node, &mut after);
            }
        }
        if after.is_empty() {
            after.push(dag);
        }
        let name = format!("{}.{}", self.run.state.node(dag).name, call.name);
        let mut new_node = NewNode {
            name,
            role: Role::Task(task),
            parent: Some(dag),
            boundary: Some(dag),
            after,
            followed: false,
            place: Some(place),
        };
        if !self.view().depends_holds(dag, instance, task) {
            self.add_final(new_node, Phase::Omitted, "omitted: depends condition not met".to_owned());
            return Called::Made;
        }
        match self.expand(dag, place) {
            Loop::None => {
                new_node.followed = self.view().call_is_followed(dag, place);
                self.call(dag, place, None, new_node)
            }
            Loop::Skip(message) => {
                self.add_final(new_node, Phase::Skipped, message);
                Called::Made
            }
            Loop::Wrong(message) => {
                self.add_errored(new_node, message);
                Called::Made
            }
            Loop::Items(items) => {
                let added =
                    self.view().added(new_node, NodeKind::TaskGroup, Phase::Running, None, InputValues::default());
                let group = self.add_node(added);
                self.decide(WorkflowFact::Expanded { node: group, call: 0, items });
                Called::Made
            }
        }
    }

    /// Ends a DAG in which nothing is open, once every needed task has had its turn: whether the DAG fails must not
    /// depend on which task happened to get a slot first.
    fn assess_dag(&mut self, at: NodeIx, instance: &Instance) {
        let dag = self.view().dag(at);
        if dag.made < instance.dag_targets().count || self.dismisses(at) {
            return;
        }
        let dag = self.view().dag(at);
        let fails_fast = instance.template.dag.as_ref().and_then(|dag| dag.fail_fast) != Some(false);
        let verdict = self.view().dag_verdict(dag, instance, fails_fast);
        let outbound = self.view().targets_outbound(at, instance);
        match verdict {
            Some(phase) => self.finish_with(at, phase, String::new(), Default::default(), outbound),
            None => self.complete(at, outbound),
        }
    }

    pub(super) fn visit_task_group(&mut self, at: NodeIx) {
        let node = self.run.state.node(at);
        let (Some(dag), Role::Task(task)) = (node.parent, &node.role) else {
            unreachable!("a task group belongs to a DAG")
        };
        let place = CallSite::Task(*task);
        let closing = self.run.state.closes(at);
        let followed = self.view().call_is_followed(dag, place);
        while !closing && !self.view().fails_fast(dag) {
            let expansion = self.view().items(at);
            let index = expansion.nodes.len();
            let Some(item) = expansion.items.as_ref().and_then(|items| nth(items, index)) else { break };
            if self.is_spent() {
                return self.pause(at);
            }
            let new_node = NewNode {
                name: format!("{}{}", self.run.state.node(at).name, item_suffix(index, &item)),
                role: Role::Item(index as u32),
                parent: Some(at),
                boundary: Some(dag),
                after: at.into(),
                followed,
                place: Some(place),
            };
            if let Called::Blocked(gate) = self.call(dag, place, Some(&item), new_node) {
                self.park(at, gate);
                break;
            }
        }
        let expansion = self.view().items(at);
        if expansion.open > 0 {
            return;
        }
        let bad = expansion.nodes.iter().rev().map(|item| self.run.state.node(*item).phase).find(|phase| phase.bad());
        if expansion.complete() {
            self.finish(at, bad.unwrap_or(Phase::Succeeded), "");
        } else if closing || self.view().fails_fast(dag) {
            self.finish(at, bad.unwrap_or(Phase::Failed), "");
        }
    }
}

impl<'a> View<'a> {
    fn dag(self, at: NodeIx) -> &'a Dag {
        let Body::Dag(dag) = &self.run.state.node(at).body else { unreachable!("an open DAG node has its tasks") };
        dag
    }

    /// Evaluates a task's condition over the outcomes of the tasks it names.
    fn depends_holds(&self, dag: NodeIx, instance: &Instance, task: u32) -> bool {
        let graph = instance.compiled.graph();
        let vertex = &graph.tasks[task as usize];
        let holds = |needed: u32, outcome: Option<TaskOutcome>| match self.dag(dag).nodes[needed as usize] {
            Some(node) => self.outcome_is(node, instance, needed, outcome),
            None => false,
        };
        match &vertex.condition {
            Some(condition) => condition.evaluate_terms(&mut |term| {
                graph.index.get(&term.task).is_some_and(|needed| holds(*needed, term.outcome))
            }),
            None => vertex.needs.iter().all(|needed| holds(*needed, None)),
        }
    }

    fn outcome_is(&self, at: NodeIx, instance: &Instance, task: u32, outcome: Option<TaskOutcome>) -> bool {
        let node = self.run.state.node(at);
        let stands = node.daemoned && !node.phase.fulfilled();
        let items = || {
            let Body::TaskGroup(expansion) = &node.body else { return Vec::new() };
            expansion.nodes.iter().map(|item| self.run.state.node(*item).phase).collect()
        };
        match outcome {
            Some(TaskOutcome::Succeeded) => node.phase == Phase::Succeeded,
            Some(TaskOutcome::Failed) => node.phase == Phase::Failed,
            Some(TaskOutcome::Errored) => node.phase == Phase::Error,
            Some(TaskOutcome::Skipped) => node.phase == Phase::Skipped,
            Some(TaskOutcome::Omitted) => node.phase == Phase::Omitted,
            Some(TaskOutcome::Daemoned) => stands,
            Some(TaskOutcome::AnySucceeded) => items().contains(&Phase::Succeeded),
            Some(TaskOutcome::AllFailed) => {
                let items: Vec<Phase> = items();
                !items.is_empty() && items.iter().all(|phase| *phase == Phase::Failed)
            }
            None => {
                let forgiven = instance.call(CallSite::Task(task)).continue_on.unwrap_or_default();
                match node.phase {
                    Phase::Succeeded | Phase::Skipped => true,
                    Phase::Running if stands => true,
                    Phase::Failed => forgiven.failed,
                    Phase::Error => forgiven.error,
                    Phase::Pending | Phase::Running | Phase::Omitted => false,
                }
            }
        }
    }

    /// Returns the phase of a failed target that `continueOn` does not excuse: the first one when failing fast, else
    /// the last. A target counts as failed by the phase of the last task that ran on some path to it.
    fn dag_verdict(&self, dag: &Dag, instance: &Instance, first: bool) -> Option<Phase> {
        let graph = instance.compiled.graph();
        let mut failed = vec![(false, false); graph.tasks.len()];
        for task in &graph.order {
            let Some(node) = dag.nodes[*task as usize] else { continue };
            failed[*task as usize] = match self.run.state.node(node).phase {
                Phase::Succeeded => (false, false),
                Phase::Failed => (true, false),
                Phase::Error => (false, true),
                Phase::Skipped | Phase::Omitted | Phase::Pending | Phase::Running => {
                    let reaching = graph.tasks[*task as usize].needs.iter().map(|needed| failed[*needed as usize]);
                    reaching.fold((false, false), |sum, way| (sum.0 | way.0, sum.1 | way.1))
                }
            };
        }
        let bad = instance.dag_targets().targets.iter().filter_map(|target| {
            let forgiven = instance.call(CallSite::Task(*target)).continue_on.unwrap_or_default();
            match failed[*target as usize] {
                (true, _) if !forgiven.failed => Some(Phase::Failed),
                (_, true) if !forgiven.error => Some(Phase::Error),
                _ => None,
            }
        });
        let mut bad = bad.peekable();
        if first { bad.next() } else { bad.last() }
    }

    fn targets_outbound(&self, at: NodeIx, instance: &Instance) -> NodeList {
        let dag = self.dag(at);
        let mut ends = NodeList::default();
        for node in instance.dag_targets().targets.iter().filter_map(|target| dag.nodes[*target as usize]) {
            self.add_outbound(node, &mut ends);
        }
        ends
    }

    fn items(self, at: NodeIx) -> &'a Expansion {
        let Body::TaskGroup(expansion) = &self.run.state.node(at).body else {
            unreachable!("an open task group has its items")
        };
        expansion
    }
}
