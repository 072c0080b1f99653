//! DAG templates: tasks that wait for each other in one of the two styles.

use serde_json::json;

use super::{Made, Maker, call::Known};

impl Maker<'_> {
    pub(super) fn dag(&mut self, depth: u64, budget: u64) -> Made {
        let count = self.draw.between(1, 5) as usize;
        let with_conditions = self.draw.chance(50);
        let mut left = budget.saturating_sub(1);
        let (mut tasks, mut known, mut cost) = (Vec::new(), Vec::<Known>::new(), 1);
        // By task: everything that is over when it is called.
        let mut before: Vec<Vec<usize>> = Vec::new();
        for at in 0..count {
            let needs: Vec<usize> = (0..at).filter(|_| self.draw.chance(45)).collect();
            let mut over: Vec<usize> =
                needs.iter().flat_map(|needed| before[*needed].iter().copied().chain([*needed])).collect();
            over.sort_unstable();
            over.dedup();
            let visible: Vec<Known> = over.iter().map(|at| known[*at].clone()).collect();
            let share = left / 2 + 1;
            let (mut task, one, used) =
                self.call("tasks", format!("t{at}"), &visible, depth - 1, share, !with_conditions);
            left = left.saturating_sub(used);
            cost += used;
            if with_conditions && !needs.is_empty() {
                task["depends"] = json!(self.depends(&needs, &known));
            } else if !needs.is_empty() {
                task["dependencies"] = needs.iter().map(|needed| json!(known[*needed].name)).collect();
            }
            tasks.push(task);
            known.push(one);
            before.push(over);
        }
        let mut dag = json!({"tasks": tasks});
        // Giving up depends on what could not start yet, which limits and suspensions make a matter of time.
        if self.taste.limited && !self.taste.timed {
            dag["failFast"] = json!(false);
        } else if self.draw.chance(30) {
            dag["failFast"] = json!(self.draw.chance(50));
        }
        if self.draw.chance(10) {
            dag["target"] = json!(self.draw.pick(&known).name);
        }
        let (outputs, gives) = self.passed_on("tasks", &known);
        let made = Made { name: self.fresh("dag"), cost, gives, result: false };
        self.close(json!({"dag": dag, "outputs": outputs}), made)
    }

    fn depends(&mut self, needs: &[usize], known: &[Known]) -> String {
        let terms: Vec<String> = needs.iter().map(|needed| self.term(&known[*needed])).collect();
        let glue = *self.draw.pick(&[" && ", " || "]);
        let whole = terms.join(glue);
        if terms.len() > 2 && self.draw.chance(40) {
            return format!("({} || {}) && {}", terms[0], terms[1], terms[2..].join(" && "));
        }
        whole
    }

    fn term(&mut self, needed: &Known) -> String {
        const OUTCOMES: [&str; 5] = ["Succeeded", "Failed", "Errored", "Skipped", "Omitted"];
        let name = &needed.name;
        match self.draw.below(10) {
            0..=4 => name.clone(),
            5 if needed.looped => format!("{name}.AnySucceeded"),
            6 if needed.looped => format!("{name}.AllFailed"),
            7 => format!("!{name}.Succeeded"),
            8 => format!("({name}.Succeeded || {name}.Failed)"),
            _ => format!("{name}.{}", self.draw.pick(&OUTCOMES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;

    #[test]
    fn worlds_differ_and_are_not_too_large() {
        let taste = Taste { timed: true, limited: true, failing: 20, size: 40, orders: None };
        let made: Vec<Value> = (0..50).map(|seed| workflow(seed, taste, "w")).collect();
        assert!(made.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(made.iter().any(|one| one.to_string().contains("depends")));
        assert!(made.iter().all(|one| one.to_string().len() < 60_000));
    }
}
