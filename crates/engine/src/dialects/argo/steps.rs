//! Runs steps: groups one after another, the steps of a group in parallel.

use octoflow_model::{
    NodeIx,
    argo::{InputValues, NodeKind, NodeList, Phase, Role, WorkflowFact},
};

use super::{
    call::{Called, NewNode},
    expand::{Loop, nth},
    ident::item_suffix,
    node::{Body, Expansion},
    program::CallSite,
    turn::Turn,
    view::View,
};

pub(super) const FAIL_FAST: &str = "template has failed or errored children and failFast enabled";

impl Turn<'_> {
    pub(super) fn visit_steps(&mut self, at: NodeIx) {
        let Body::Steps { groups } = &self.run.state.node(at).body else { return };
        let Some(last) = groups.last().copied() else { return self.next_group(at, 0) };
        let next = groups.len() as u32;
        let group = self.run.state.node(last);
        if !group.phase.fulfilled() {
            return;
        }
        if group.phase.bad() && self.dismisses(at) {
            return;
        }
        let group = self.run.state.node(last);
        if group.phase.bad() {
            let message = if self.view().fails_fast(at) {
                FAIL_FAST.to_owned()
            } else {
                group.message.as_deref().unwrap_or_default().to_owned()
            };
            let outbound = self.view().last_outbound(last);
            return self.finish_with(at, Phase::Failed, message, Default::default(), outbound);
        }
        self.next_group(at, next);
    }

    fn next_group(&mut self, at: NodeIx, index: u32) {
        let node = self.run.state.node(at);
        let groups = self.run.compiled_of(at).template.steps.as_ref().map_or(0, Vec::len) as u32;
        let last = if let Body::Steps { groups } = &node.body { groups.last().copied() } else { None };
        if (index >= groups || self.run.state.closes(at)) && self.dismisses(at) {
            return;
        }
        let node = self.run.state.node(at);
        if index >= groups {
            let outbound = last.map(|last| self.view().last_outbound(last)).unwrap_or_default();
            return self.complete(at, outbound);
        }
        if self.run.state.closes(at) {
            let message = self.view().closing_message();
            return self.finish(at, Phase::Failed, message);
        }
        let after = match last {
            Some(last) => self.view().last_outbound(last),
            None => at.into(),
        };
        let name = format!("{}[{index}]", node.name);
        let new_node = NewNode {
            name,
            role: Role::Group(index),
            parent: Some(at),
            boundary: Some(at),
            after,
            followed: false,
            place: None,
        };
        let added = self.view().added(new_node, NodeKind::StepGroup, Phase::Running, None, InputValues::default());
        self.add_node(added);
    }

    pub(super) fn visit_group(&mut self, at: NodeIx) {
        let node = self.run.state.node(at);
        let (Some(steps), Role::Group(index)) = (node.parent, &node.role) else {
            unreachable!("a step group belongs to a steps node")
        };
        let index = *index;
        let closing = self.run.state.closes(at);
        if !closing && !self.view().fails_fast(steps) {
            while let Some(step) = self.view().next_call(at) {
                if self.is_spent() {
                    return self.pause(at);
                }
                if !self.advance(at, steps, index, step) {
                    break;
                }
            }
        }
        let Body::Group(group) = &self.run.state.node(at).body else { return };
        let all_called = group.cursor as usize == group.calls.len();
        let done_calling = all_called || closing || self.view().fails_fast(steps);
        if group.open == 0 && done_calling {
            self.assess_group(at, steps, index);
        }
    }

    /// Adds the next node of a call. Returns false if it has to wait.
    fn advance(&mut self, at: NodeIx, steps: NodeIx, group: u32, step: u32) -> bool {
        let place = CallSite::Step(group, step);
        let expansion = self.view().expansion(at, step);
        let (made, item) =
            (expansion.nodes.len(), expansion.items.as_ref().and_then(|items| nth(items, expansion.nodes.len())));
        let name = format!("{}.{}", self.run.state.node(at).name, self.run.compiled_of(steps).call_name(place));
        let followed = self.view().call_is_followed(steps, place);
        let mut new_node = NewNode {
            name,
            role: Role::Step { step, item: None },
            parent: Some(at),
            boundary: Some(steps),
            after: at.into(),
            followed,
            place: Some(place),
        };
        if item.is_none() {
            match self.expand(steps, place) {
                Loop::None => {}
                Loop::Skip(message) => {
                    self.add_final(new_node, Phase::Skipped, message);
                    return true;
                }
                Loop::Wrong(message) => {
                    self.add_errored(new_node, message);
                    return true;
                }
                Loop::Items(items) => {
                    self.decide(WorkflowFact::Expanded { node: at, call: step, items });
                    return true;
                }
            }
        } else if let Some(item) = &item {
            new_node.name.push_str(&item_suffix(made, item));
            new_node.role = Role::Step { step, item: Some(made as u32) };
        }
        match self.call(steps, place, item.as_ref(), new_node) {
            Called::Made => true,
            Called::Blocked(gate) => {
                self.park(at, gate);
                false
            }
        }
    }

    /// Ends a group whose children are all over. It fails by the first child that `continueOn` does not excuse.
    fn assess_group(&mut self, at: NodeIx, steps: NodeIx, index: u32) {
        let Body::Group(group) = &self.run.state.node(at).body else { return };
        let template = self.run.compiled_of(steps).template.clone();
        let calls = template
            .steps
            .as_ref()
            .and_then(|groups| groups.get(index as usize))
            .map(Vec::as_slice)
            .unwrap_or_default();
        let mut verdict: Option<(Phase, String)> = None;
        for (call, expansion) in calls.iter().zip(&group.calls) {
            let forgiven = call.continue_on.unwrap_or_default();
            for child in &expansion.nodes {
                let node = self.run.state.node(*child);
                let bad = match node.phase {
                    Phase::Failed => !forgiven.failed,
                    Phase::Error => !forgiven.error,
                    Phase::Pending | Phase::Running | Phase::Succeeded | Phase::Skipped | Phase::Omitted => false,
                };
                if !bad || verdict.is_some() {
                    continue;
                }
                verdict = Some(if node.kind == NodeKind::Skipped {
                    let why = node.message.as_deref().unwrap_or_default();
                    let message = format!("step group deemed errored due to child {} error: {why}", node.name);
                    (Phase::Error, message)
                } else {
                    (Phase::Failed, format!("child '{}' failed", self.run.state.id_of(*child)))
                });
            }
        }
        let unfinished = (group.cursor as usize) < group.calls.len();
        match verdict {
            Some((phase, message)) => self.finish(at, phase, message),
            None if unfinished => {
                let message = self.view().closing_message();
                self.finish(at, Phase::Failed, message);
            }
            None => self.finish(at, Phase::Succeeded, ""),
        }
    }
}

impl<'a> View<'a> {
    /// The ends of a group's drawing: those of its children, or the group itself when it has none.
    fn last_outbound(&self, group: NodeIx) -> NodeList {
        let Body::Group(body) = &self.run.state.node(group).body else { return group.into() };
        let mut ends = NodeList::default();
        for child in body.calls.iter().flat_map(|expansion| &expansion.nodes) {
            self.add_outbound(*child, &mut ends);
        }
        if ends.is_empty() { group.into() } else { ends }
    }

    fn next_call(&self, group: NodeIx) -> Option<u32> {
        let Body::Group(body) = &self.run.state.node(group).body else { return None };
        ((body.cursor as usize) < body.calls.len()).then_some(body.cursor)
    }

    fn expansion(self, group: NodeIx, step: u32) -> &'a Expansion {
        let Body::Group(body) = &self.run.state.node(group).body else {
            unreachable!("an open step group has its calls")
        };
        &body.calls[step as usize]
    }
}
