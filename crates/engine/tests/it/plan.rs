//! Random workflows: what may call what, under which conditions, and how each task will end.
//! Everything follows from a seed, so a failure is replayed by its number.

use serde_json::{Value, json};

use crate::answer::{Answer, Ending};

/// Small, fast, and the same on every machine.
#[derive(Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.roll() % 100 < percent
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) parallelism: Option<u64>,
    /// The template of the run's exit handler.
    pub(crate) on_exit: Option<usize>,
    pub(crate) deadline: Option<u64>,
    /// Some tasks never end by themselves.
    pub(crate) endless: bool,
    /// The first is the entrypoint; a template calls only later ones, so every call ends.
    pub(crate) templates: Vec<Template>,
}

#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) retry: Option<Retry>,
    pub(crate) parallelism: Option<u64>,
    /// Both only where the oracle is not used: they make the end depend on time.
    pub(crate) fail_fast: bool,
    pub(crate) timeout: bool,
    pub(crate) body: Body,
}

#[derive(Clone, Debug)]
pub(crate) struct Retry {
    pub(crate) limit: u32,
    pub(crate) policy: &'static str,
    pub(crate) backoff: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Leaf,
    Steps(Vec<Vec<Call>>),
    Dag { fail_fast: Option<bool>, tasks: Vec<Task> },
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) template: usize,
    /// How many items its loop has, if it is one.
    pub(crate) items: Option<usize>,
    pub(crate) when: When,
    pub(crate) forgives_failed: bool,
    pub(crate) forgives_error: bool,
    pub(crate) on_exit: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum When {
    Always,
    Never,
    /// That earlier call came to this phase.
    Status(String, &'static str),
    /// Only items with an even number.
    EvenItems,
}

#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) call: Call,
    pub(crate) needs: Needs,
}

#[derive(Clone, Debug)]
pub(crate) enum Needs {
    /// `dependencies`
    All(Vec<usize>),
    /// `depends`
    Condition(Condition),
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Task(usize, Option<&'static str>),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

impl Condition {
    pub(crate) fn tasks(&self, found: &mut Vec<usize>) {
        match self {
            Self::Task(task, _) => {
                if !found.contains(task) {
                    found.push(*task);
                }
            }
            Self::Not(inner) => inner.tasks(found),
            Self::And(left, right) | Self::Or(left, right) => {
                left.tasks(found);
                right.tasks(found);
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Task(task, None) => format!("t{task}"),
            Self::Task(task, Some(word)) => format!("t{task}.{word}"),
            Self::Not(inner) => format!("!({})", inner.text()),
            Self::And(left, right) => format!("({} && {})", left.text(), right.text()),
            Self::Or(left, right) => format!("({} || {})", left.text(), right.text()),
        }
    }
}

impl Plan {
    pub(crate) fn new(seed: u64, size: usize) -> Self {
        let mut dice = Dice(seed);
        let inner = dice.below(size) + 1;
        let leaves = dice.below(2) + 1;
        let mut templates: Vec<Template> =
            (0..inner).map(|at| inner_template(&mut dice, at, inner + leaves, size)).collect();
        templates.extend((0..leaves).map(|_| Template {
            retry: retry(&mut dice, 30),
            parallelism: None,
            fail_fast: false,
            timeout: false,
            body: Body::Leaf,
        }));
        let last = templates.len() - 1;
        let parallelism = dice.chance(40).then(|| dice.below(3) as u64 + 1);
        let on_exit = dice.chance(40).then(|| if dice.chance(50) { last } else { dice.below(templates.len()) });
        Self { seed, parallelism, on_exit, deadline: None, endless: false, templates }
    }

    /// How the task of this node ends, whenever that is.
    pub(crate) fn answer(&self, node: &str) -> Answer {
        let mut dice =
            Dice(node.bytes().fold(self.seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))));
        dice.roll();
        let ending = match dice.below(100) {
            0..70 => Ending::Exit(0),
            70..80 if self.endless => Ending::Never,
            80..85 if self.endless => Ending::Lost("the machine is gone".to_owned()),
            70..90 => Ending::Exit(1),
            _ => Ending::Catalog("bad luck".to_owned()),
        };
        Answer::ends(ending).after(dice.below(12) as u64)
    }

    pub(crate) fn spec(&self) -> Value {
        let templates: Vec<Value> = self.templates.iter().enumerate().map(|(at, template)| template.spec(at)).collect();
        let mut spec = json!({"entrypoint": "p0", "templates": templates});
        if let Some(limit) = self.parallelism {
            spec["parallelism"] = json!(limit);
        }
        if let Some(handler) = self.on_exit {
            spec["onExit"] = json!(format!("p{handler}"));
        }
        if let Some(seconds) = self.deadline {
            spec["activeDeadlineSeconds"] = json!(seconds);
        }
        spec
    }

    /// Features that make the end depend on time: limits of every kind, failing fast, tasks that never end.
    pub(crate) fn hurried(mut self, dice: &mut Dice) -> Self {
        self.deadline = Some(dice.below(60) as u64 + 1);
        self.endless = true;
        for template in &mut self.templates {
            let leaf = matches!(template.body, Body::Leaf);
            template.fail_fast = !leaf && dice.chance(30);
            // Exit handlers know no deadline of the run, so what never ends needs its own.
            template.timeout = leaf;
        }
        self
    }
}

fn retry(dice: &mut Dice, percent: u64) -> Option<Retry> {
    let policy = ["", "Always", "OnError", "OnFailure"][dice.below(4)];
    dice.chance(percent).then(|| Retry { limit: dice.below(3) as u32, policy, backoff: dice.chance(50) })
}

fn inner_template(dice: &mut Dice, at: usize, count: usize, size: usize) -> Template {
    let wide = size.min(4) + 1;
    let body = if dice.chance(50) {
        let mut earlier: Vec<String> = Vec::new();
        let groups = (0..dice.below(wide) + 1).map(|group| {
            let calls: Vec<Call> = (0..dice.below(wide) + 1)
                .map(|step| call(dice, format!("s{group}x{step}"), at, count, &earlier))
                .collect();
            earlier.extend(calls.iter().map(|call| call.name.clone()));
            calls
        });
        Body::Steps(groups.collect())
    } else {
        dag(dice, at, count, size)
    };
    let parallelism = dice.chance(25).then(|| dice.below(3) as u64 + 1);
    Template { retry: retry(dice, 10), parallelism, fail_fast: false, timeout: false, body }
}

fn dag(dice: &mut Dice, at: usize, count: usize, size: usize) -> Body {
    let conditions = dice.chance(50);
    let mut tasks: Vec<Task> = Vec::new();
    for index in 0..dice.below(size.min(5) + 2) + 1 {
        let needs = if conditions && index > 0 && dice.chance(75) {
            Needs::Condition(condition(dice, index, &tasks, 2))
        } else if !conditions {
            let mut needed: Vec<usize> = (0..index).filter(|_| dice.chance(35)).collect();
            needed.dedup();
            Needs::All(needed)
        } else {
            Needs::All(Vec::new())
        };
        let mut known = Vec::new();
        match &needs {
            Needs::All(needed) => known.extend(needed),
            Needs::Condition(condition) => condition.tasks(&mut known),
        }
        let known: Vec<String> = known.iter().map(|task| format!("t{task}")).collect();
        let mut call = call(dice, format!("t{index}"), at, count, &known);
        if conditions {
            (call.forgives_failed, call.forgives_error) = (false, false);
        }
        tasks.push(Task { call, needs });
    }
    let fail_fast = [None, Some(true), Some(false)][dice.below(3)];
    Body::Dag { fail_fast, tasks }
}

fn condition(dice: &mut Dice, below: usize, tasks: &[Task], depth: usize) -> Condition {
    let deeper = |dice: &mut Dice| Box::new(condition(dice, below, tasks, depth - 1));
    match if depth == 0 { 0 } else { dice.below(10) } {
        7 => Condition::Not(deeper(dice)),
        8 => Condition::And(deeper(dice), deeper(dice)),
        9 => Condition::Or(deeper(dice), deeper(dice)),
        _ => {
            let task = dice.below(below);
            let words = if tasks[task].call.items.is_some() { 8 } else { 6 };
            let word = [
                None,
                Some("Succeeded"),
                Some("Failed"),
                Some("Errored"),
                Some("Skipped"),
                Some("Omitted"),
                Some("AnySucceeded"),
                Some("AllFailed"),
            ];
            Condition::Task(task, word[dice.below(words)])
        }
    }
}

fn call(dice: &mut Dice, name: String, at: usize, count: usize, earlier: &[String]) -> Call {
    let template = at + 1 + dice.below(count - at - 1);
    let items = dice.chance(25).then(|| dice.below(4));
    let when = match dice.below(10) {
        0 => When::Never,
        1 if items.is_some() => When::EvenItems,
        2 | 3 if !earlier.is_empty() => {
            let word = ["Succeeded", "Failed", "Error", "Skipped", "Omitted"][dice.below(5)];
            When::Status(earlier[dice.below(earlier.len())].clone(), word)
        }
        _ => When::Always,
    };
    let on_exit = dice.chance(15).then_some(count - 1);
    Call { name, template, items, when, forgives_failed: dice.chance(20), forgives_error: dice.chance(20), on_exit }
}

impl Template {
    fn spec(&self, at: usize) -> Value {
        let mut spec = match &self.body {
            Body::Leaf => json!({"container": {"image": "i", "command": ["c"]}}),
            Body::Steps(groups) => {
                let groups: Vec<Vec<Value>> =
                    groups.iter().map(|group| group.iter().map(|call| call.spec("steps")).collect()).collect();
                json!({"steps": groups})
            }
            Body::Dag { fail_fast, tasks } => {
                let mut dag = json!({"tasks": tasks.iter().map(Task::spec).collect::<Vec<_>>()});
                if let Some(fail_fast) = fail_fast {
                    dag["failFast"] = json!(fail_fast);
                }
                json!({"dag": dag})
            }
        };
        spec["name"] = json!(format!("p{at}"));
        if let Some(limit) = self.parallelism {
            spec["parallelism"] = json!(limit);
        }
        if self.fail_fast {
            spec["failFast"] = json!(true);
        }
        if self.timeout {
            spec["timeout"] = json!("6s");
        }
        if let Some(retry) = &self.retry {
            spec["retryStrategy"] = json!({"limit": retry.limit});
            if !retry.policy.is_empty() {
                spec["retryStrategy"]["retryPolicy"] = json!(retry.policy);
            }
            if retry.backoff {
                spec["retryStrategy"]["backoff"] = json!({"duration": "3s", "factor": 2});
            }
        }
        spec
    }
}

impl Task {
    fn spec(&self) -> Value {
        let mut spec = self.call.spec("tasks");
        match &self.needs {
            Needs::All(needed) if needed.is_empty() => {}
            Needs::All(needed) => spec["dependencies"] = needed.iter().map(|task| json!(format!("t{task}"))).collect(),
            Needs::Condition(condition) => spec["depends"] = json!(condition.text()),
        }
        spec
    }
}

impl Call {
    fn spec(&self, root: &str) -> Value {
        let mut spec = json!({"name": self.name, "template": format!("p{}", self.template)});
        match &self.when {
            When::Always => {}
            When::Never => spec["when"] = json!("1 > 2"),
            When::Status(call, word) => spec["when"] = json!(format!("{{{{{root}.{call}.status}}}} == {word}")),
            When::EvenItems => spec["when"] = json!("{{item}} =~ '[02468]$'"),
        }
        if let Some(items) = self.items {
            let items: Vec<String> = (0..items).map(|item| format!("i{item}")).collect();
            spec["withParam"] = json!(json!(items).to_string());
        }
        if self.forgives_failed || self.forgives_error {
            spec["continueOn"] = json!({"failed": self.forgives_failed, "error": self.forgives_error});
        }
        if let Some(handler) = self.on_exit {
            spec["onExit"] = json!(format!("p{handler}"));
        }
        spec
    }
}
