//! Calls: what is called, with which values, how often, on which condition, and what follows.

use serde_json::{Map, Value, json};

use super::{Made, Maker};

/// A call that later calls may refer to.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub name: String,
    pub made: Made,
    pub looped: bool,
}

impl Maker<'_> {
    /// The call as written, what others may know of it, and about how many nodes it makes.
    pub(super) fn call(
        &mut self,
        root: &str,
        name: String,
        known: &[Known],
        depth: u64,
        budget: u64,
        forgiving: bool,
    ) -> (Value, Known, u64) {
        let items = if self.draw.chance(25) { self.draw.between(1, 3) } else { 0 };
        let looped = items > 0;
        let mut call = json!({"name": name});
        if !looped && self.draw.chance(5) {
            let fail = format!("fail={}", self.taste.failing);
            call["inline"] = json!({"container": {"image": "sim", "command": ["work"], "args": [fail]}});
            let made = Made { name: String::new(), cost: 1, gives: Vec::new(), result: true };
            return (call, Known { name, made, looped }, 1);
        }
        let made = self.template(depth, budget / items.max(1));
        let mut cost = made.cost * items.max(1) + u64::from(looped);
        call["template"] = json!(made.name);
        if looped {
            self.repeat(&mut call, root, known, items);
        }
        if self.draw.chance(60) {
            let value = self.value(root, known, looped);
            let parameter = if made.name.starts_with("again") { "n" } else { "in" };
            let value = if parameter == "n" { self.draw.below(3).to_string() } else { value };
            call["arguments"] = json!({"parameters": [{"name": parameter, "value": value}]});
        }
        if self.draw.chance(20) {
            call["when"] = json!(self.condition(root, known, looped));
        }
        if forgiving && self.draw.chance(20) {
            call["continueOn"] = json!({"failed": self.draw.chance(70), "error": self.draw.chance(50)});
        }
        if self.draw.chance(12) {
            cost += 3 * items.max(1);
            self.followed(&mut call, root, &name);
        }
        (call, Known { name, made, looped }, cost)
    }

    fn repeat(&mut self, call: &mut Value, root: &str, known: &[Known], items: u64) {
        let lists: Vec<String> = known.iter().flat_map(|one| lists(root, one)).collect();
        match self.draw.below(4) {
            0 => call["withSequence"] = json!({"count": items.to_string()}),
            1 if !lists.is_empty() => call["withParam"] = json!(*self.draw.pick(&lists)),
            1 => call["withParam"] = json!(Value::from((0..items).collect::<Vec<u64>>()).to_string()),
            2 if self.draw.chance(10) => call["withItems"] = json!([]),
            _ => call["withItems"] = (0..items).map(|item| json!(format!("i{item}"))).collect(),
        }
    }

    /// What a parameter is given.
    fn value(&mut self, root: &str, known: &[Known], looped: bool) -> String {
        if looped && self.draw.chance(60) {
            return "{{item}}".to_owned();
        }
        let values: Vec<String> = known.iter().flat_map(|one| values(root, one)).collect();
        match self.draw.below(5) {
            0 => "{{workflow.parameters.level}}".to_owned(),
            1 => "{{inputs.parameters.in}}".to_owned(),
            2 => self.draw.below(9).to_string(),
            _ if values.is_empty() => "{{=string(asInt(workflow.parameters.level) + 1)}}".to_owned(),
            _ => self.draw.pick(&values).clone(),
        }
    }

    fn condition(&mut self, root: &str, known: &[Known], looped: bool) -> String {
        if looped && self.draw.chance(40) {
            return "'{{item}}' != 'i1'".to_owned();
        }
        let single: Vec<&Known> = known.iter().filter(|one| !one.looped).collect();
        if !single.is_empty() && self.draw.chance(60) {
            let one = *self.draw.pick(&single);
            if one.made.result && self.draw.chance(50) {
                let word = *self.draw.pick(&["heads", "tails"]);
                return format!("{{{{{root}.{}.outputs.result}}}} == {word}", one.name);
            }
            if one.made.gives.contains(&"out") {
                return format!("{{{{{root}.{}.outputs.parameters.out}}}} > {}", one.name, self.draw.below(8));
            }
            let word = *self.draw.pick(&["Succeeded", "Failed"]);
            return format!("{{{{{root}.{}.status}}}} == {word}", one.name);
        }
        format!("{{{{workflow.parameters.level}}}} > {}", self.draw.below(5))
    }

    /// An exit handler of the call itself.
    fn followed(&mut self, call: &mut Value, root: &str, name: &str) {
        let handler = self.handler();
        if self.draw.chance(50) {
            call["onExit"] = json!(handler);
            return;
        }
        let mut hook = Map::from_iter([("template".to_owned(), json!(handler))]);
        if self.draw.chance(40) && handler.starts_with("task") {
            let value = format!("{{{{{root}.{name}.status}}}}");
            hook.insert("arguments".to_owned(), json!({"parameters": [{"name": "in", "value": value}]}));
        }
        if self.draw.chance(30) {
            hook.insert("expression".to_owned(), json!(format!("{root}['{name}'].status == \"Succeeded\"")));
        }
        call["hooks"] = json!({"exit": hook});
    }

    /// What a template with calls passes on of their outputs.
    pub(super) fn passed_on(&mut self, root: &str, known: &[Known]) -> (Value, Vec<&'static str>) {
        let givers: Vec<&Known> = known.iter().filter(|one| one.made.gives.contains(&"out")).collect();
        if givers.is_empty() || self.draw.chance(40) {
            return (json!({}), Vec::new());
        }
        let giver = *self.draw.pick(&givers);
        let reference = format!("{{{{{root}.{}.outputs.parameters.out}}}}", giver.name);
        let mut from = json!({"parameter": reference});
        if self.draw.chance(50) {
            from["default"] = json!("6");
        }
        (json!({"parameters": [{"name": "out", "valueFrom": from}]}), vec!["out"])
    }
}

fn values(root: &str, one: &Known) -> Vec<String> {
    let mut values: Vec<String> = one
        .made
        .gives
        .iter()
        .map(|output| format!("{{{{{root}.{}.outputs.parameters.{output}}}}}", one.name))
        .collect();
    if one.made.result && !one.looped {
        values.push(format!("{{{{{root}.{}.outputs.result}}}}", one.name));
    }
    values
}

/// References that are lists of items.
fn lists(root: &str, one: &Known) -> Vec<String> {
    let name = &one.name;
    match (one.looped, one.made.gives.as_slice()) {
        (true, []) => Vec::new(),
        (true, _) => vec![format!("{{{{{root}.{name}.outputs.parameters}}}}")],
        (false, gives) if gives.contains(&"list") => vec![format!("{{{{{root}.{name}.outputs.parameters.list}}}}")],
        (false, _) => Vec::new(),
    }
}
