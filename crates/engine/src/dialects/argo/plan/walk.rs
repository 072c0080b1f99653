//! Expands templates from the entrypoint down, within bounds.

use octoflow_model::{
    argo::{Arguments, Call, Hook, Synchronization, Template},
    scalar::IntOrText,
};
use serde_json::Value;
use std::sync::Arc;

use super::{
    super::{
        call::{MAX_DEPTH, kind_of},
        ident,
        program::{CallSite, Calls, CompiledTemplate, Program},
        refer, sequence,
    },
    CallCondition, NotExpanded, PlanBounds, PlannedCall, Rounds, WorkflowPlan,
    known::KnownValues,
};

pub(super) struct Walk<'p> {
    program: &'p Program,
    bounds: PlanBounds,
    /// Number of items that may still be added.
    left: usize,
    /// Templates that are being expanded, outermost first.
    open: Vec<Arc<str>>,
}

impl<'p> Walk<'p> {
    pub(super) fn new(program: &'p Program, bounds: PlanBounds) -> Self {
        Self { program, bounds, left: bounds.items, open: Vec::new() }
    }

    pub(super) fn whole(mut self) -> WorkflowPlan {
        let spec = &self.program.workflow.spec;
        let known = KnownValues::of_workflow(&spec.arguments);
        let entrypoint = spec.entrypoint.clone().unwrap_or_default();
        let mut root = PlannedCall { name: entrypoint.clone(), wave: 1, ..PlannedCall::default() };
        self.enter(&mut root, self.program.compiled(&entrypoint), &spec.arguments, &known, true);
        let plain = spec.on_exit.as_ref().map(|template| Hook { template: Some(template.clone()), ..Hook::default() });
        let handler = spec.hooks.get("exit").cloned().or(plain);
        let exit = handler.map(|hook| self.hook("onExit".to_owned(), &hook, None, &known));
        for (name, hook) in spec.hooks.iter().filter(|(name, _)| *name != "exit") {
            let item = self.hook(format!("hooks.{name}"), hook, None, &known);
            root.children.push(item);
        }
        let locks = spec.synchronization.as_ref().map(|locks| self.locks(locks, &known)).unwrap_or_default();
        WorkflowPlan { entrypoint, locks, parallelism: spec.parallelism, root, exit, cut: self.left == 0 }
    }

    /// Fills an item in from the called template. `certain` is false where the call may never be made.
    fn enter(
        &mut self,
        item: &mut PlannedCall,
        compiled: Option<&'p Arc<CompiledTemplate>>,
        arguments: &Arguments,
        known: &KnownValues,
        certain: bool,
    ) {
        self.left = self.left.saturating_sub(1);
        let Some(compiled) = compiled else { return };
        let template = &compiled.template;
        let inside = known.inside(template, arguments);
        item.kind = kind_of(template).map_or_else(String::new, |kind| kind.word().to_owned());
        item.template = if compiled.inline() { "inline".to_owned() } else { refer::bare(&compiled.key).to_owned() };
        item.image = image(template).map(|image| inside.fill(image).text);
        let text = |number: &IntOrText| inside.fill(&number.0).text;
        item.retries = self.program.retry(template).map(|retry| retry.limit.as_ref().map_or_else(String::new, text));
        item.parallelism = template.parallelism.as_ref().map(text);
        item.locks = template.synchronization.as_ref().map(|locks| self.locks(locks, &inside)).unwrap_or_default();
        // A template that calls itself is expanded as long as its conditions are known to hold.
        if self.open.len() >= usize::from(MAX_DEPTH) || !certain && self.open.contains(&compiled.key) {
            item.cut = Some(NotExpanded::Recursion);
            return;
        }
        if self.left == 0 && !matches!(compiled.calls, Calls::None) {
            item.cut = Some(NotExpanded::Size);
            return;
        }
        self.open.push(compiled.key.clone());
        match &compiled.calls {
            Calls::None => {}
            Calls::Steps { .. } => self.steps(item, compiled, &inside, certain),
            Calls::Dag(_) => self.dag(item, compiled, &inside, certain),
        }
        self.open.pop();
    }

    fn steps(
        &mut self,
        item: &mut PlannedCall,
        compiled: &'p Arc<CompiledTemplate>,
        inside: &KnownValues,
        certain: bool,
    ) {
        let mut before: Vec<usize> = Vec::new();
        for (group, steps) in compiled.template.steps.iter().flatten().enumerate() {
            let mut made = Vec::new();
            for (step, call) in steps.iter().enumerate() {
                if self.left == 0 {
                    item.cut = Some(NotExpanded::Size);
                    return;
                }
                let mut child = self.call(compiled, CallSite::Step(group as u32, step as u32), call, inside, certain);
                child.wave = group + 1;
                child.needs.clone_from(&before);
                made.push(item.children.len());
                item.children.push(child);
            }
            before = made;
        }
    }

    fn dag(
        &mut self,
        item: &mut PlannedCall,
        compiled: &'p Arc<CompiledTemplate>,
        inside: &KnownValues,
        certain: bool,
    ) {
        let graph = compiled.graph();
        let Some(dag) = &compiled.template.dag else { return };
        let wanted = wanted(compiled, dag.target.as_deref().unwrap_or_default(), inside);
        // Children keep the topological order, so that what is needed always comes before.
        let mut places: Vec<Option<usize>> = vec![None; dag.tasks.len()];
        for task in graph.order.iter().copied().filter(|task| wanted[*task as usize]) {
            if self.left == 0 {
                item.cut = Some(NotExpanded::Size);
                return;
            }
            let vertex = &graph.tasks[task as usize];
            let call = &dag.tasks[task as usize];
            let mut child = self.call(compiled, CallSite::Task(task), call, inside, certain && plainly(call));
            child.needs = vertex.needs.iter().filter_map(|need| places[*need as usize]).collect();
            child.wave = 1 + child.needs.iter().map(|need| item.children[*need].wave).max().unwrap_or(0);
            child.depends = call.depends.clone().filter(|_| !plainly(call));
            places[task as usize] = Some(item.children.len());
            item.children.push(child);
        }
    }

    fn call(
        &mut self,
        compiled: &'p Arc<CompiledTemplate>,
        place: CallSite,
        call: &Call,
        inside: &KnownValues,
        certain: bool,
    ) -> PlannedCall {
        let callee = compiled.called_template(place, self.program);
        let mut item = PlannedCall { name: call.name.clone(), ..PlannedCall::default() };
        item.template = callee.map_or_else(
            || compiled.callee_key(place).map(|key| refer::bare(&key).to_owned()).unwrap_or_default(),
            |callee| callee.template.name.clone(),
        );
        if !call.looped() {
            self.one(&mut item, compiled, callee, call, inside, certain);
            return item;
        }
        match items(call, inside) {
            LoopItems::Known(rounds) => {
                item.rounds = Rounds::Known(rounds.len());
                self.left = self.left.saturating_sub(1);
                for (index, round) in rounds.iter().enumerate() {
                    if index == self.bounds.of_a_loop || self.left == 0 {
                        item.cut = Some(NotExpanded::Rounds(rounds.len() - index));
                        break;
                    }
                    let name = format!("{}{}", call.name, ident::item_suffix(index, round));
                    let mut child = PlannedCall { name, wave: 1, ..PlannedCall::default() };
                    self.one(&mut child, compiled, callee, call, &inside.with_item(round), certain);
                    item.children.push(child);
                }
            }
            LoopItems::Open(text) => {
                item.rounds = Rounds::Open(text);
                self.one(&mut item, compiled, callee, call, inside, false);
            }
        }
        item
    }

    /// Expands one iteration of a call, or the only one.
    fn one(
        &mut self,
        item: &mut PlannedCall,
        compiled: &'p Arc<CompiledTemplate>,
        callee: Option<&'p Arc<CompiledTemplate>>,
        call: &Call,
        inside: &KnownValues,
        certain: bool,
    ) {
        item.condition = call.when.as_ref().map_or(CallCondition::Always, |when| inside.condition(when));
        if matches!(item.condition, CallCondition::Never(_)) {
            self.left = self.left.saturating_sub(1);
            item.kind = callee
                .and_then(|callee| kind_of(&callee.template))
                .map_or_else(String::new, |kind| kind.word().to_owned());
            item.template = callee.map_or_else(String::new, |callee| refer::bare(&callee.key).to_owned());
            return;
        }
        let certain = certain && item.condition == CallCondition::Always;
        self.enter(item, callee, &call.arguments, inside, certain);
        let plain = call.on_exit.as_ref().map(|template| Hook { template: Some(template.clone()), ..Hook::default() });
        let exit = call.hooks.get("exit").cloned().or(plain).map(|hook| ("onExit".to_owned(), hook));
        let others = call.hooks.iter().filter(|(name, _)| *name != "exit");
        let others = others.map(|(name, hook)| (format!("hooks.{name}"), hook.clone()));
        for (suffix, hook) in exit.into_iter().chain(others) {
            let made = self.hook(format!("{}.{suffix}", call.name), &hook, compiled.template_scope(), inside);
            item.children.push(made);
        }
    }

    fn hook(&mut self, name: String, hook: &Hook, template_scope: Option<&str>, known: &KnownValues) -> PlannedCall {
        let key = match (&hook.template_ref, &hook.template) {
            (Some(reference), _) => refer::key(reference),
            (None, Some(name)) => refer::sibling_key(template_scope, name),
            (None, None) => String::new(),
        };
        let condition = hook.expression.clone().map_or(CallCondition::Always, CallCondition::Open);
        let mut item = PlannedCall {
            name,
            hook: true,
            condition,
            wave: 1,
            template: refer::bare(&key).to_owned(),
            ..PlannedCall::default()
        };
        let compiled = self.program.compiled(&key);
        self.enter(&mut item, compiled, &hook.arguments, known, false);
        item
    }

    fn locks(&self, locks: &Synchronization, known: &KnownValues) -> Vec<String> {
        let mutexes = locks.all_mutexes().map(|mutex| format!("mutex {}", known.fill(&mutex.name).text));
        let semaphores = locks.all_semaphores().filter_map(|semaphore| {
            let key = match (&semaphore.config_map_key_ref, &semaphore.database) {
                (Some(reference), _) => format!("{}/{}", reference.name, reference.key),
                (None, Some(database)) => database.key.clone(),
                (None, None) => return None,
            };
            Some(format!("semaphore {}", known.fill(&key).text))
        });
        mutexes.chain(semaphores).collect()
    }
}

/// Whether its condition on other tasks requires no more than that they are over successfully.
fn plainly(call: &Call) -> bool {
    call.depends.as_ref().is_none_or(|depends| !depends.contains(['.', '|', '!']))
}

/// Marks the tasks that a DAG runs: all of them, or its targets and what they need.
fn wanted(compiled: &CompiledTemplate, target: &str, inside: &KnownValues) -> Vec<bool> {
    let graph = compiled.graph();
    let target = inside.fill(target);
    let mut open: Vec<u32> = target.text.split_whitespace().filter_map(|name| graph.index.get(name).copied()).collect();
    if open.is_empty() || !target.whole {
        return vec![true; graph.tasks.len()];
    }
    let mut wanted = vec![false; graph.tasks.len()];
    while let Some(task) = open.pop() {
        if !std::mem::replace(&mut wanted[task as usize], true) {
            open.extend(&graph.tasks[task as usize].needs);
        }
    }
    wanted
}

/// The items of a loop, as far as they are known before the run.
enum LoopItems {
    Known(Vec<Value>),
    /// Not known yet; with the text that the items depend on.
    Open(String),
}

fn items(call: &Call, inside: &KnownValues) -> LoopItems {
    if let Some(items) = &call.with_items {
        let whole: Option<Vec<Value>> = items.iter().map(|item| inside.fill_value(item)).collect();
        return match whole {
            Some(items) => LoopItems::Known(items),
            None => LoopItems::Open(Value::Array(items.clone()).to_string()),
        };
    }
    if let Some(text) = &call.with_param {
        let filled = inside.fill(&text.0);
        return match serde_json::from_str(&filled.text) {
            Ok(items) if filled.whole => LoopItems::Known(items),
            _ => LoopItems::Open(filled.text),
        };
    }
    let Some(sequence) = &call.with_sequence else { return LoopItems::Known(Vec::new()) };
    let number = |text: &Option<IntOrText>| text.as_ref().map(|text| inside.fill(&text.0));
    let (start, count, end) = (number(&sequence.start), number(&sequence.count), number(&sequence.end));
    if let Some(open) = [&start, &count, &end].into_iter().flatten().find(|filled| !filled.whole) {
        return LoopItems::Open(open.text.clone());
    }
    let format = sequence.format.as_ref().map(|format| inside.fill(format).text);
    let text = |filled: &Option<super::known::Filled>| filled.as_ref().map(|filled| filled.text.clone());
    match sequence::numbered(text(&start), text(&count), text(&end), format.as_deref()) {
        Ok(items) => LoopItems::Known(items),
        // A malformed sequence fails when it runs; here its reason is shown in place of the items.
        Err(why) => LoopItems::Open(why),
    }
}

fn image(template: &Template) -> Option<&str> {
    let container = template.container.as_ref().or(template.script.as_ref().map(|script| &script.container));
    container.map(|container| container.image.as_str())
}
