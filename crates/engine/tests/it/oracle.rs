//! The expected end of a plan, by plain recursion over its meaning: no time, no queues, no facts. It shares nothing
//! with the engine.

use std::collections::BTreeMap;

use crate::{
    answer::Ending,
    plan::{Body, Call, Condition, Needs, Plan, Task, When},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Succeeded,
    Failed,
    Error,
    Skipped,
    Omitted,
}

impl Fate {
    fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Error => "Error",
            Self::Skipped => "Skipped",
            Self::Omitted => "Omitted",
        }
    }

    fn bad(self) -> bool {
        matches!(self, Self::Failed | Self::Error)
    }
}

/// How everything ends.
#[derive(Default)]
pub(crate) struct Oracle {
    pub(crate) fates: BTreeMap<String, String>,
    /// The second node may not come into being before the first is over.
    pub(crate) order: Vec<(String, String)>,
    pub(crate) run: String,
}

impl Oracle {
    pub(crate) fn of(plan: &Plan) -> Self {
        let mut oracle = Self::default();
        let mut fate = oracle.template(plan, 0, "w");
        if let Some(handler) = plan.on_exit {
            let exit = oracle.template(plan, handler, "w.onExit");
            oracle.order.push(("w".into(), "w.onExit".into()));
            if !fate.bad() {
                fate = exit;
            }
        }
        oracle.run = fate.word().to_owned();
        oracle
    }

    fn set(&mut self, name: &str, fate: Fate) -> Fate {
        let before = self.fates.insert(name.to_owned(), fate.word().to_owned());
        assert_eq!(before, None, "two nodes are called {name}");
        fate
    }

    fn template(&mut self, plan: &Plan, template: usize, name: &str) -> Fate {
        let Some(retry) = &plan.templates[template].retry else { return self.body(plan, template, name) };
        let mut attempt = 0;
        loop {
            let fate = self.body(plan, template, &format!("{name}({attempt})"));
            let again = match (fate, retry.policy) {
                (Fate::Failed, "" | "OnFailure" | "Always") | (Fate::Error, "OnError" | "Always") => {
                    attempt < retry.limit
                }
                _ => false,
            };
            if !again {
                return self.set(name, fate);
            }
            attempt += 1;
            self.order.push((format!("{name}({})", attempt - 1), format!("{name}({attempt})")));
        }
    }

    fn body(&mut self, plan: &Plan, template: usize, name: &str) -> Fate {
        let fate = match &plan.templates[template].body {
            Body::Leaf => match plan.answer(name).ending {
                Ending::Exit(0) => Fate::Succeeded,
                Ending::Exit(_) => Fate::Failed,
                _ => Fate::Error,
            },
            Body::Steps(groups) => self.steps(plan, groups, name),
            Body::Dag { fail_fast, tasks } => self.dag(plan, tasks, *fail_fast != Some(false), name),
        };
        self.set(name, fate)
    }

    fn steps(&mut self, plan: &Plan, groups: &[Vec<Call>], name: &str) -> Fate {
        let mut statuses: BTreeMap<String, &'static str> = BTreeMap::new();
        for (at, group) in groups.iter().enumerate() {
            let group_name = format!("{name}[{at}]");
            if at > 0 {
                self.order.push((format!("{name}[{}]", at - 1), group_name.clone()));
            }
            let mut failed = false;
            let mut seen = Vec::new();
            for call in group {
                let made = self.call(plan, call, &format!("{group_name}.{}", call.name), &statuses);
                let forgiven = |fate: &Fate| match fate {
                    Fate::Failed => call.forgives_failed,
                    Fate::Error => call.forgives_error,
                    _ => true,
                };
                failed |= !made.iter().all(forgiven);
                // A loop has the status of its group, which is good if anyone is there to ask.
                let looped = call.items.is_some_and(|items| items > 0);
                seen.push((call.name.clone(), if looped { "Succeeded" } else { made[0].word() }));
            }
            if failed {
                self.set(&group_name, Fate::Failed);
                return Fate::Failed;
            }
            self.set(&group_name, Fate::Succeeded);
            statuses.extend(seen);
        }
        Fate::Succeeded
    }

    /// The fates of the nodes a call makes: one, or one per item.
    fn call(&mut self, plan: &Plan, call: &Call, name: &str, statuses: &BTreeMap<String, &'static str>) -> Vec<Fate> {
        match call.items {
            None => vec![self.one(plan, call, name, 0, statuses)],
            Some(0) => vec![self.set(name, Fate::Skipped)],
            Some(items) => (0..items)
                .map(|item| self.one(plan, call, &format!("{name}({item}:i{item})"), item, statuses))
                .collect(),
        }
    }

    fn one(
        &mut self,
        plan: &Plan,
        call: &Call,
        name: &str,
        item: usize,
        statuses: &BTreeMap<String, &'static str>,
    ) -> Fate {
        let runs = match &call.when {
            When::Always => true,
            When::Never => false,
            When::Status(call, word) => statuses[call] == *word,
            When::EvenItems => item.is_multiple_of(2),
        };
        if !runs {
            return self.set(name, Fate::Skipped);
        }
        let fate = self.template(plan, call.template, name);
        if let Some(handler) = call.on_exit {
            self.template(plan, handler, &format!("{name}.onExit"));
            self.order.push((name.to_owned(), format!("{name}.onExit")));
        }
        fate
    }

    fn dag(&mut self, plan: &Plan, tasks: &[Task], fail_fast: bool, name: &str) -> Fate {
        let mut fates: Vec<Fate> = Vec::new();
        let mut items: Vec<Vec<Fate>> = Vec::new();
        let mut statuses: BTreeMap<String, &'static str> = BTreeMap::new();
        let mut reaching: Vec<(bool, bool)> = Vec::new();
        let mut needed_by_none = vec![true; tasks.len()];
        for task in tasks {
            let task_name = format!("{name}.{}", task.call.name);
            let (holds, needs) = match &task.needs {
                Needs::All(needs) => (needs.iter().all(|need| good(fates[*need], &tasks[*need].call)), needs.clone()),
                Needs::Condition(condition) => {
                    let mut needs = Vec::new();
                    condition.tasks(&mut needs);
                    (holds(condition, &fates, &items, tasks), needs)
                }
            };
            for need in &needs {
                needed_by_none[*need] = false;
                self.order.push((format!("{name}.t{need}"), task_name.clone()));
            }
            let (fate, made) = if holds {
                self.task(plan, &task.call, &task_name, &statuses)
            } else {
                (self.set(&task_name, Fate::Omitted), Vec::new())
            };
            reaching.push(match fate {
                Fate::Succeeded => (false, false),
                Fate::Failed => (true, false),
                Fate::Error => (false, true),
                Fate::Skipped | Fate::Omitted => needs
                    .iter()
                    .fold((false, false), |sum, need| (sum.0 || reaching[*need].0, sum.1 || reaching[*need].1)),
            });
            fates.push(fate);
            items.push(made);
            statuses.insert(task.call.name.clone(), fate.word());
        }
        let mut verdicts = Vec::new();
        for (at, task) in tasks.iter().enumerate().filter(|(at, _)| needed_by_none[*at]) {
            match reaching[at] {
                (true, _) if !task.call.forgives_failed => verdicts.push(Fate::Failed),
                (_, true) if !task.call.forgives_error => verdicts.push(Fate::Error),
                _ => {}
            }
        }
        let verdict = if fail_fast { verdicts.first() } else { verdicts.last() };
        verdict.copied().unwrap_or(Fate::Succeeded)
    }

    fn task(
        &mut self,
        plan: &Plan,
        call: &Call,
        name: &str,
        statuses: &BTreeMap<String, &'static str>,
    ) -> (Fate, Vec<Fate>) {
        let made = self.call(plan, call, name, statuses);
        if call.items.is_none_or(|items| items == 0) {
            return (made[0], Vec::new());
        }
        let fate = made.iter().rev().copied().find(|fate| fate.bad()).unwrap_or(Fate::Succeeded);
        (self.set(name, fate), made)
    }
}

fn good(fate: Fate, call: &Call) -> bool {
    match fate {
        Fate::Succeeded | Fate::Skipped => true,
        Fate::Failed => call.forgives_failed,
        Fate::Error => call.forgives_error,
        Fate::Omitted => false,
    }
}

fn holds(condition: &Condition, fates: &[Fate], items: &[Vec<Fate>], tasks: &[Task]) -> bool {
    match condition {
        Condition::Task(task, None) => good(fates[*task], &tasks[*task].call),
        Condition::Task(task, Some("AnySucceeded")) => items[*task].contains(&Fate::Succeeded),
        Condition::Task(task, Some("AllFailed")) => {
            !items[*task].is_empty() && items[*task].iter().all(|fate| *fate == Fate::Failed)
        }
        Condition::Task(task, Some("Errored")) => fates[*task] == Fate::Error,
        Condition::Task(task, Some(word)) => fates[*task].word() == *word,
        Condition::Not(inner) => !holds(inner, fates, items, tasks),
        Condition::And(left, right) => holds(left, fates, items, tasks) && holds(right, fates, items, tasks),
        Condition::Or(left, right) => holds(left, fates, items, tasks) || holds(right, fates, items, tasks),
    }
}
