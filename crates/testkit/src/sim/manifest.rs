//! Random workflows: nested, looped, retried, with handlers, limits and values passed on, and never very large.
//! What a task does when it runs is written in its arguments; the simulated runtime reads it there.

mod call;
mod dress;
mod graph;
mod leaf;
mod order;

use serde_json::{Value, json};

use super::draw::Draw;

/// What a world's workflows may contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taste {
    /// Deadlines, time-outs, giving up early: what becomes of a run depends on when things happen.
    pub timed: bool,
    /// Parallelism limits.
    pub limited: bool,
    /// How often a task fails, in percent.
    pub failing: u64,
    /// Nodes a run may have, about.
    pub size: u64,
    /// Resource templates that order runs, none of which needs more than so many slots at once.
    pub orders: Option<usize>,
}

/// A Workflow object.
pub(super) fn workflow(seed: u64, taste: Taste, name: &str) -> Value {
    let draw = &mut Draw::new(seed, name);
    let mut maker = Maker { draw, taste, templates: Vec::new(), leaves: Vec::new() };
    let depth = maker.draw.between(1, 4);
    let entry = maker.template(depth, taste.size);
    let mut spec = json!({
        "entrypoint": entry.name,
        "arguments": {"parameters": [{"name": "who", "value": "world"}, {"name": "level", "value": "3"}]},
    });
    if maker.draw.chance(30) {
        let handler = maker.handler();
        if maker.draw.chance(50) {
            spec["onExit"] = json!(handler);
        } else {
            let mut hook = json!({"template": handler});
            if maker.draw.chance(30) {
                hook["expression"] = json!("workflow.status == \"Failed\"");
            }
            spec["hooks"] = json!({"exit": hook});
        }
    }
    if taste.limited && maker.draw.chance(60) {
        spec["parallelism"] = json!(maker.draw.between(1, 3));
    }
    if taste.timed && maker.draw.chance(15) {
        spec["activeDeadlineSeconds"] = json!(maker.draw.between(1, 30));
    }
    if maker.draw.chance(10) {
        spec["priority"] = json!(maker.draw.below(3));
    }
    spec["templates"] = Value::Array(maker.templates);
    dress::dress(&mut Draw::new(seed, &format!("dress {name}")), taste, &mut spec);
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": spec})
}

struct Maker<'d> {
    draw: &'d mut Draw,
    taste: Taste,
    templates: Vec<Value>,
    /// Tasks that may be called again elsewhere.
    leaves: Vec<Made>,
}

/// A template that can be called.
#[derive(Clone, Debug)]
struct Made {
    name: String,
    /// Nodes one call makes, about.
    cost: u64,
    /// Its output parameters.
    gives: Vec<&'static str>,
    /// It leaves a result.
    result: bool,
}

impl Maker<'_> {
    fn template(&mut self, depth: u64, budget: u64) -> Made {
        if depth == 0 || budget < 5 {
            return self.leaf_or_pause();
        }
        match self.draw.below(10) {
            0 => self.leaf_or_pause(),
            1 if budget >= 12 => self.recursion(budget),
            1..=5 => self.steps(depth, budget),
            _ => self.dag(depth, budget),
        }
    }

    fn leaf_or_pause(&mut self) -> Made {
        if self.draw.chance(12) {
            return self.pause();
        }
        if !self.leaves.is_empty() && self.draw.chance(40) {
            return self.draw.pick(&self.leaves).clone();
        }
        if let Some(slots) = self.taste.orders
            && self.draw.chance(50)
        {
            let made = self.order(slots);
            self.leaves.push(made.clone());
            return made;
        }
        let made = self.leaf();
        self.leaves.push(made.clone());
        made
    }

    fn fresh(&self, word: &str) -> String {
        format!("{word}{}", self.templates.len())
    }

    /// Puts a template with calls down, with what any of them may have.
    fn close(&mut self, mut template: Value, mut made: Made) -> Made {
        template["name"] = json!(made.name);
        template["inputs"] = json!({"parameters": [{"name": "in", "value": "1"}]});
        if self.taste.limited && self.draw.chance(30) {
            template["parallelism"] = json!(self.draw.between(1, 3));
            if self.taste.timed && self.draw.chance(40) {
                template["failFast"] = json!(true);
            }
        }
        if self.draw.chance(8) && made.cost < self.taste.size / 3 {
            made.cost += 1 + self.retry(&mut template) * made.cost;
        }
        self.templates.push(template);
        made
    }

    /// Adds a retry strategy; how many more times it may be tried.
    fn retry(&mut self, template: &mut Value) -> u64 {
        let limit = self.draw.between(0, 2);
        let mut strategy = json!({"limit": limit});
        if self.draw.chance(60) {
            strategy["retryPolicy"] = json!(*self.draw.pick(&["Always", "OnFailure", "OnError"]));
        }
        if self.draw.chance(50) {
            let mut backoff =
                json!({"duration": format!("{}s", self.draw.between(1, 5)), "factor": self.draw.between(1, 3)});
            if self.taste.timed && self.draw.chance(30) {
                backoff["maxDuration"] = json!(format!("{}s", self.draw.between(2, 20)));
            }
            strategy["backoff"] = backoff;
        }
        if self.draw.chance(20) {
            strategy["expression"] = json!("lastRetry.status == \"Error\" || asInt(lastRetry.exitCode) < 3");
        }
        template["retryStrategy"] = strategy;
        limit
    }

    /// Groups one after another.
    fn steps(&mut self, depth: u64, budget: u64) -> Made {
        let groups = self.draw.between(1, 3);
        let mut left = budget.saturating_sub(groups + 1);
        let (mut written, mut known, mut cost) = (Vec::new(), Vec::new(), 1);
        for group in 0..groups {
            let mut calls = Vec::new();
            let mut new = Vec::new();
            for step in 0..self.draw.between(1, 3) {
                let share = left / 2 + 1;
                let (call, one, used) = self.call("steps", format!("s{group}-{step}"), &known, depth - 1, share, true);
                left = left.saturating_sub(used);
                cost += used;
                calls.push(call);
                new.push(one);
            }
            cost += 1;
            written.push(Value::Array(calls));
            known.extend(new);
        }
        let (outputs, gives) = self.passed_on("steps", &known);
        let made = Made { name: self.fresh("steps"), cost, gives, result: false };
        self.close(json!({"steps": written, "outputs": outputs}), made)
    }

    /// A template that calls itself a few times.
    fn recursion(&mut self, budget: u64) -> Made {
        let levels = self.draw.between(1, (budget / 5).min(3));
        let leaf = self.leaf();
        let name = self.fresh("again");
        let less = json!([{"name": "n", "value": "{{=string(asInt(inputs.parameters.n) - 1)}}"}]);
        let mut work = json!({"name": "work", "template": leaf.name});
        if self.draw.chance(50) {
            work["continueOn"] = json!({"failed": true, "error": true});
        }
        let again = json!({
            "name": "again", "template": name, "when": "{{inputs.parameters.n}} > 0", "arguments": {"parameters": less},
        });
        let steps = if self.draw.chance(50) { json!([[work], [again]]) } else { json!([[work, again]]) };
        self.templates.push(json!({
            "name": name,
            "inputs": {"parameters": [{"name": "n", "value": levels.to_string()}]},
            "steps": steps,
        }));
        Made { name, cost: (levels + 1) * (leaf.cost + 3), gives: Vec::new(), result: false }
    }
}
