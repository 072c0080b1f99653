//! All queues as they were declared, and what may be changed about them: the rules that one object alone cannot break.
//! It knows no tasks: whether a queue has work is asked of the caller.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use octoflow_manifest::{Path, Problem};

use super::{QueueState, quantities::render, queue::place};
use crate::{
    admit::code,
    expr::nearest,
    schedule::{
        MAX_DEPTH,
        spec::{DEFAULT, Quantities, QueueSpec, ROOT},
    },
};

#[derive(Clone, Debug)]
pub struct QueueTree {
    queues: BTreeMap<Arc<str>, Declared>,
    children: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

#[derive(Clone, Debug)]
struct Declared {
    spec: QueueSpec,
    closed: bool,
}

impl Default for QueueTree {
    /// Creates the tree of an installation where nobody has created a queue.
    fn default() -> Self {
        let mut tree = Self { queues: BTreeMap::new(), children: BTreeMap::new() };
        tree.put(QueueSpec::new(ROOT), false);
        tree.put(QueueSpec::new(DEFAULT), false);
        tree
    }
}

fn parent(spec: &QueueSpec) -> Option<&str> {
    (spec.name.as_ref() != ROOT).then(|| spec.parent.as_deref().unwrap_or(ROOT))
}

impl QueueTree {
    /// Creates or changes a queue, without a check.
    pub fn put(&mut self, spec: QueueSpec, closed: bool) {
        self.unlink(&spec.name);
        if let Some(parent) = parent(&spec) {
            self.children.entry(parent.into()).or_default().insert(spec.name.clone());
        }
        self.queues.insert(spec.name.clone(), Declared { spec, closed });
    }

    /// Removes a queue. Those that always exist are as at the beginning then.
    pub fn remove(&mut self, name: &str) {
        self.unlink(name);
        self.queues.remove(name);
        if matches!(name, ROOT | DEFAULT) {
            self.put(QueueSpec::new(name), false);
        }
    }

    fn unlink(&mut self, name: &str) {
        let Some(before) = self.queues.get(name).and_then(|queue| parent(&queue.spec)) else { return };
        let before: Arc<str> = before.into();
        if let Some(children) = self.children.get_mut(&before) {
            children.remove(name);
            if children.is_empty() {
                self.children.remove(&before);
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<&QueueSpec> {
        self.queues.get(name).map(|queue| &queue.spec)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().map(AsRef::as_ref)
    }

    /// Returns whether the queue takes work.
    pub fn state(&self, name: &str) -> QueueState {
        if !self.queues.contains_key(name) {
            return QueueState::Missing;
        }
        if self.children.contains_key(name) {
            return QueueState::Inner;
        }
        if self.is_closed(name) { QueueState::Closed } else { QueueState::Open }
    }

    /// Reports whether the queue or one above it was closed.
    pub fn is_closed(&self, name: &str) -> bool {
        self.path(name).any(|queue| queue.closed)
    }

    /// Iterates over a queue and those above it.
    fn path(&self, name: &str) -> impl Iterator<Item = &Declared> {
        let above = |queue: &&Declared| self.queues.get(parent(&queue.spec)?);
        // A tree that nobody has checked may have a cycle.
        std::iter::successors(self.queues.get(name), above).take(MAX_DEPTH + 1)
    }

    /// Returns a queue and those above it, as they were declared.
    pub fn specs(&self, name: &str) -> Vec<QueueSpec> {
        self.path(name).map(|queue| queue.spec.clone()).collect()
    }

    fn children(&self, name: &str) -> impl Iterator<Item = &QueueSpec> {
        self.children.get(name).into_iter().flatten().filter_map(|child| self.get(child))
    }

    /// Returns everything that is wrong with a queue at its place in the tree.
    pub fn check(&self, spec: &QueueSpec, has_work: impl Fn(&str) -> bool) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(parent) = parent(spec) {
            self.check_parent(spec, parent, has_work, &mut problems);
        }
        self.check_children(spec, &mut problems);
        problems
    }

    fn check_parent(
        &self,
        spec: &QueueSpec,
        parent: &str,
        has_work: impl Fn(&str) -> bool,
        problems: &mut Vec<Problem>,
    ) {
        let mut wrong = |message: String, help: Option<String>| {
            let mut problem = Problem::error(code::QUEUE, message).path(Path::root().join("spec").join("parent"));
            problem.help = help;
            problems.push(problem);
        };
        if self.get(parent).is_none() {
            let near = nearest(parent, self.names()).map(|near| format!("did you mean `{near}`?"));
            return wrong(format!("there is no queue `{parent}`"), near);
        }
        if parent == spec.name.as_ref() || self.path(parent).any(|queue| queue.spec.name == spec.name) {
            return wrong(format!("queue `{}` would be below itself", spec.name), None);
        }
        let depth = self.path(parent).count() + self.height(&spec.name) - 1;
        if depth > MAX_DEPTH {
            wrong(format!("queues would be {depth} deep; {MAX_DEPTH} levels below root are possible"), None);
        }
        if parent == DEFAULT {
            let message = "the queue `default` takes the work that names no queue, so it has no queues below it";
            wrong(message.to_owned(), Some("choose another parent".to_owned()));
        } else if !self.children.contains_key(parent) && parent != ROOT && has_work(parent) {
            let message = format!("queue `{parent}` has work, and only queues without queues below them take work");
            wrong(message, Some(format!("close `{parent}` and wait until its work is over, or choose another parent")));
        }
        for (field, of) in [("guarantee", GUARANTEE), ("deserved", DESERVED)] {
            for (resource, amount) in of(spec) {
                // The nearest queue above that says something about the resource bounds all that is stated below it.
                let stated = |above: &QueueSpec| {
                    let own = of(above).get(resource).map(|most| (field, *most));
                    own.or_else(|| above.capability.get(resource).map(|most| ("capability", *most)))
                };
                let bound = self.path(parent).find_map(|above| Some((&above.spec.name, stated(&above.spec)?)));
                let Some((whose, (stated, most))) = bound else { continue };
                let all = sum(self.stated_below(whose, &spec.name, of, resource), amount);
                if all <= most {
                    continue;
                }
                let message = format!(
                    "{field} of {resource} is {}, with its siblings {}, more than {stated} of queue `{whose}`, which is {}",
                    render(resource, *amount),
                    render(resource, all),
                    render(resource, most)
                );
                problems.push(Problem::error(code::QUEUE, message).path(place(field).join(resource.as_str())));
            }
        }
        for (resource, amount) in &spec.capability {
            let bound =
                self.path(parent).find_map(|above| Some((&above.spec.name, *above.spec.capability.get(resource)?)));
            if let Some((whose, most)) = bound.filter(|(_, most)| most < amount) {
                let (amount, most) = (render(resource, *amount), render(resource, most));
                let message =
                    format!("capability of {resource} is {amount}, more than that of queue `{whose}`, which is {most}");
                problems.push(Problem::error(code::QUEUE, message).path(place("capability").join(resource.as_str())));
            }
        }
    }

    /// Sums what queues below one state about a resource, each queue that states it with all below it, without one of them.
    fn stated_below(&self, top: &str, without: &str, of: Part, resource: &str) -> u64 {
        let mut open: Vec<&QueueSpec> = self.children(top).collect();
        let mut all = 0;
        while let Some(queue) = open.pop() {
            match of(queue).get(resource) {
                _ if queue.name.as_ref() == without => {}
                Some(amount) => all = sum(all, amount),
                None => open.extend(self.children(&queue.name)),
            }
        }
        all
    }

    /// Returns how much of a resource is guaranteed to all queues together, with this one as it is to be.
    pub fn guaranteed(&self, spec: &QueueSpec, resource: &str) -> u64 {
        let others = self.stated_below(ROOT, &spec.name, GUARANTEE, resource);
        let covered =
            parent(spec).is_some_and(|above| self.path(above).any(|queue| queue.spec.guarantee.contains_key(resource)));
        if covered { others } else { sum(others, spec.guarantee.get(resource).unwrap_or(&0)) }
    }

    /// Checks what the queue states against what its children state.
    fn check_children(&self, spec: &QueueSpec, problems: &mut Vec<Problem>) {
        for (field, of) in [("guarantee", GUARANTEE), ("deserved", DESERVED)] {
            for (resource, most) in of(spec) {
                let below = self.stated_below(&spec.name, "", of, resource);
                if below > *most {
                    let (most, below) = (render(resource, *most), render(resource, below));
                    let message = format!(
                        "{field} of {resource} is {most}, less than that of its queues together, which is {below}"
                    );
                    problems.push(Problem::error(code::QUEUE, message).path(place(field).join(resource.as_str())));
                }
            }
        }
        for (resource, most) in &spec.capability {
            if let Some(child) = self.larger_below(&spec.name, resource, *most) {
                let message = format!(
                    "capability of {resource} is {}, less than that of its queue `{}`",
                    render(resource, *most),
                    child.name
                );
                problems.push(Problem::error(code::QUEUE, message).path(place("capability").join(resource.as_str())));
            }
        }
    }

    /// Returns a queue below that may use more of a resource, where no queue between says less.
    fn larger_below(&self, top: &str, resource: &str, most: u64) -> Option<&QueueSpec> {
        let mut open: Vec<&QueueSpec> = self.children(top).collect();
        while let Some(queue) = open.pop() {
            match queue.capability.get(resource) {
                Some(amount) if *amount > most => return Some(queue),
                Some(_) => {}
                None => open.extend(self.children(&queue.name)),
            }
        }
        None
    }

    /// Returns how many levels there are from the queue down, itself included.
    fn height(&self, name: &str) -> usize {
        let mut level: Vec<&str> = vec![name];
        let mut height = 0;
        while !level.is_empty() && height <= MAX_DEPTH {
            height += 1;
            level = level.into_iter().flat_map(|name| self.children.get(name)).flatten().map(AsRef::as_ref).collect();
        }
        height
    }

    /// Returns why a queue cannot be deleted.
    pub fn check_delete(&self, name: &str, has_work: impl Fn(&str) -> bool) -> Result<(), String> {
        if matches!(name, ROOT | DEFAULT) {
            return Err(format!("the queue `{name}` always exists"));
        }
        if let Some(child) = self.children(name).next() {
            let count = self.children(name).count();
            let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            return Err(format!("it has queues below it: `{}`{more}; delete those first", child.name));
        }
        if has_work(name) {
            return Err(format!(
                "tasks wait or run in it; close it (`octoflow queue close {name}`) and wait for their end"
            ));
        }
        Ok(())
    }
}

type Part = fn(&QueueSpec) -> &Quantities;
const GUARANTEE: Part = |spec| &spec.guarantee;
const DESERVED: Part = |spec| &spec.deserved;

fn sum(all: u64, one: &u64) -> u64 {
    all.saturating_add(*one)
}
