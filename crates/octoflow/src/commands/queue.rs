//! `octoflow queue …`: the queues of a server as a tree with shares, and what can be changed about them.

use std::collections::BTreeMap;

use anyhow::Result;
use octoflow_engine::kinds::scheduling::{LONGEST_WAIT, PLACEMENT, QUEUE, parse_quantities, render_quantity};
use serde_json::{Map, Value, json};

use super::{
    Context,
    stored::{address, find},
};
use crate::{
    cli::{Format, QueueCommand, QueueFields, QueueList, QueueNames},
    client::Address,
    exit::{self, Exit, Failure},
    output::{
        json::objects,
        table::{Cell, Table},
    },
    source::workflow::{list, text},
};

pub(crate) fn queue(command: &QueueCommand, context: &Context) -> Result<Exit> {
    match command {
        QueueCommand::List(args) => list_all(args, context),
        QueueCommand::Get(args) => get(args, context),
        QueueCommand::Create(args) => create(&args.name, &args.fields, context),
        QueueCommand::Set(args) => set(&args.name, &args.fields, context),
        QueueCommand::Open(args) => set_state(args, "open", context),
        QueueCommand::Close(args) => set_state(args, "close", context),
        QueueCommand::Delete(args) => delete(args, context),
    }
}

fn list_all(args: &QueueList, context: &Context) -> Result<Exit> {
    let answer = context.client()?.get(&address(&QUEUE, None, None))?;
    let mut queues = list(&answer["items"]).to_vec();
    for queue in &mut queues {
        (queue["apiVersion"], queue["kind"]) = (json!(QUEUE.api_version()), json!(QUEUE.name));
    }
    match &args.output {
        Some(format @ (Format::Json | Format::Yaml | Format::Name | Format::JsonPath(_))) => {
            context.output.data(&objects(format, &queues, true).unwrap_or_default())?;
        }
        format => {
            let wide = matches!(format, Some(Format::Wide));
            context.output.text(&tree(&queues, wide, args.no_headers).render(context.output.paint()))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// Renders the queues as a tree, children below their parents.
fn tree(queues: &[Value], wide: bool, without_titles: bool) -> Table {
    let mut titles = vec!["NAME", "STATE", "WEIGHT", "SHARE", "RUNNING", "PENDING", "CPU", "MEMORY"];
    if wide {
        titles.push("OTHERS");
    }
    let mut table = Table::new(&titles).without_header(without_titles);
    let mut children: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for queue in queues.iter().filter(|queue| queue["metadata"]["name"] != "root") {
        let parent = text(&queue["spec"], "parent");
        children.entry(if parent.is_empty() { "root" } else { parent }).or_default().push(queue);
    }
    let root = queues.iter().find(|queue| queue["metadata"]["name"] == "root");
    let mut open: Vec<(usize, &Value)> = root.map(|root| (0, root)).into_iter().collect();
    while let Some((depth, queue)) = open.pop() {
        table.push(row(depth, queue, wide));
        let below = children.remove(text(&queue["metadata"], "name")).unwrap_or_default();
        open.extend(below.into_iter().rev().map(|child| (depth + 1, child)));
    }
    // Those whose parent is gone.
    for queue in children.into_values().flatten() {
        table.push(row(0, queue, wide));
    }
    table
}

fn row(depth: usize, queue: &Value, wide: bool) -> Vec<Cell> {
    let (spec, status) = (&queue["spec"], &queue["status"]);
    // Used, deserved, and the most it may use.
    let amounts = |resource: &str| {
        let part = |of: &Value| of[resource].as_str().map(str::to_owned);
        let most = spec["capability"][resource].as_str().map_or_else(
            || spec["capability"][resource].as_u64().map_or_else(|| "-".to_owned(), |amount| amount.to_string()),
            str::to_owned,
        );
        let used = part(&status["allocated"]).unwrap_or_else(|| "0".to_owned());
        format!("{used}/{}/{most}", part(&status["deserved"]).unwrap_or_else(|| "-".to_owned()))
    };
    let share = status["share"].as_f64().map_or_else(String::new, |share| format!("{:.0}%", share * 100.0));
    let mut cells = vec![
        Cell::new(format!("{}{}", "  ".repeat(depth), text(&queue["metadata"], "name"))),
        Cell::new(text(status, "state")),
        Cell::new(spec["weight"].as_u64().unwrap_or(1).to_string()),
        Cell::new(share),
        Cell::new(status["running"].as_u64().unwrap_or(0).to_string()),
        Cell::new(status["pending"].as_u64().unwrap_or(0).to_string()),
        Cell::new(amounts("cpu")),
        Cell::new(amounts("memory")),
    ];
    if wide {
        let names = [&status["allocated"], &status["deserved"], &spec["capability"]];
        let mut names: Vec<&str> =
            names.iter().flat_map(|part| part.as_object()).flatten().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| !matches!(*name, "cpu" | "memory"));
        let others: Vec<String> = names.iter().map(|name| format!("{name}={}", amounts(name))).collect();
        cells.push(Cell::new(others.join(",")));
    }
    cells
}

fn get(args: &QueueNames, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let found: Vec<Value> = args.names.iter().map(|name| find(&client, &QUEUE, "", name)).collect::<Result<_>>()?;
    let format = args.output.clone().unwrap_or(Format::Yaml);
    match objects(&format, &found, false) {
        Some(text) => context.output.data(&text)?,
        None => {
            let mut table =
                Table::new(&["NAME", "STATE", "WEIGHT", "SHARE", "RUNNING", "PENDING", "CPU", "MEMORY", "OTHERS"]);
            found.iter().for_each(|queue| table.push(row(0, queue, true)));
            context.output.text(&table.render(context.output.paint()))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// Returns what the options say, as fields of a queue.
fn fields(fields: &QueueFields) -> Result<(Map<String, Value>, Map<String, Value>)> {
    let (mut spec, mut annotations) = (Map::new(), Map::new());
    let amounts = |option: &str, text: &String| -> Result<Value> {
        let all = parse_quantities(text).map_err(|why| Failure::usage(format!("--{option}: {why}")))?;
        let all = all.into_iter().map(|(name, amount)| (name.clone(), json!(render_quantity(&name, amount))));
        Ok(Value::Object(all.collect()))
    };
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec.insert(name.to_owned(), value);
        }
    };
    put("parent", fields.parent.as_ref().map(|parent| json!(parent)));
    put("weight", fields.weight.map(|weight| json!(weight)));
    put("priority", fields.priority.map(|priority| json!(priority)));
    let guarantee = fields.guarantee.as_ref().map(|text| amounts("guarantee", text)).transpose()?;
    put("guarantee", guarantee.map(|resource| json!({"resource": resource})));
    put("deserved", fields.deserved.as_ref().map(|text| amounts("deserved", text)).transpose()?);
    put("capability", fields.capability.as_ref().map(|text| amounts("capability", text)).transpose()?);
    put("reclaimable", fields.reclaimable.map(|reclaimable| json!(reclaimable)));
    put("dequeueStrategy", fields.dequeue_strategy.map(|strategy| json!(format!("{strategy:?}").to_lowercase())));
    if let Some(placement) = fields.placement {
        annotations.insert(PLACEMENT.to_owned(), json!(format!("{placement:?}").to_lowercase()));
    }
    if let Some(wait) = fields.longest_wait {
        annotations.insert(LONGEST_WAIT.to_owned(), json!(format!("{}s", wait.as_secs())));
    }
    Ok((spec, annotations))
}

fn create(name: &str, args: &QueueFields, context: &Context) -> Result<Exit> {
    let (spec, annotations) = fields(args)?;
    let object = json!({
        "apiVersion": QUEUE.api_version(), "kind": QUEUE.name,
        "metadata": {"name": name, "annotations": annotations}, "spec": spec,
    });
    let made = context.client()?.post(&address(&QUEUE, None, None), &object)?;
    told(&made, "created", args.output.as_ref(), context)
}

fn set(name: &str, args: &QueueFields, context: &Context) -> Result<Exit> {
    let (mut spec, annotations) = fields(args)?;
    if spec.is_empty() && annotations.is_empty() {
        return Err(Failure::usage("there is nothing to set")
            .help("`octoflow queue set --help` lists the options")
            .into());
    }
    let client = context.client()?;
    let before = find(&client, &QUEUE, "", name)?;
    // What is not named any more is removed: an option says all of its amounts.
    for part in ["guarantee", "deserved", "capability"] {
        let (was, is) = match part {
            "guarantee" => (&before["spec"][part]["resource"], spec.get_mut(part).map(|part| &mut part["resource"])),
            _ => (&before["spec"][part], spec.get_mut(part)),
        };
        if let Some(is) = is.and_then(Value::as_object_mut) {
            for (name, _) in was.as_object().into_iter().flatten() {
                is.entry(name.clone()).or_insert(Value::Null);
            }
        }
    }
    let patch = json!({"metadata": {"annotations": annotations}, "spec": spec});
    let changed = client.patch(&address(&QUEUE, None, Some(name)), &patch)?;
    told(&changed, "changed", args.output.as_ref(), context)
}

fn told(queue: &Value, word: &str, format: Option<&Format>, context: &Context) -> Result<Exit> {
    match format.and_then(|format| objects(format, std::slice::from_ref(queue), false)) {
        Some(text) => context.output.data(&text)?,
        None => context.output.line(&format!("queue {} {word}", text(&queue["metadata"], "name")))?,
    }
    Ok(Exit::Succeeded)
}

fn set_state(args: &QueueNames, verb: &str, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    for name in &args.names {
        find(&client, &QUEUE, "", name)?;
        let queue = client.post(&Address::of(&["api", "octoflow", "v1", "queues", name, verb]), &json!({}))?;
        let word = text(&queue["status"], "state").to_lowercase();
        told(&queue, &word, args.output.as_ref(), context)?;
    }
    Ok(Exit::Succeeded)
}

fn delete(args: &QueueNames, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let mut worst = Exit::Succeeded;
    for name in &args.names {
        match client.delete(&address(&QUEUE, None, Some(name))) {
            Ok(_) => context.output.line(&format!("queue {name} deleted"))?,
            Err(error) if matches!(exit::of(&error), Exit::NotFound | Exit::Conflict) => {
                worst = worst.worse(exit::of(&error));
                context.output.error(&error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::colour::Paint;

    #[test]
    fn queues_are_shown_as_a_tree_with_what_they_use_deserve_and_may_use() {
        let queue = |name: &str, parent: &str| {
            json!({
                "metadata": {"name": name}, "spec": {"parent": parent, "weight": 2, "capability": {"cpu": "6"}},
                "status": {"state": "Open", "running": 1, "pending": 2, "share": 0.5,
                    "allocated": {"cpu": "2", "example.com/x": "1"}, "deserved": {"cpu": "4"}},
            })
        };
        let queues =
            [queue("a", "team"), queue("b", ""), queue("root", ""), queue("team", "root"), queue("lost", "gone")];
        let shown = tree(&queues, true, false).render(Paint::OFF);
        let names: Vec<&str> = shown.lines().map(|line| line[..6].trim_end()).collect();
        assert_eq!(names, ["NAME", "root", "  b", "  team", "    a", "lost"], "{shown}");
        let team = shown.lines().nth(3).unwrap_or_default();
        let cells: Vec<&str> = team.split_whitespace().collect();
        assert_eq!(cells, ["team", "Open", "2", "50%", "1", "2", "2/4/6", "0/-/-", "example.com/x=1/-/-"]);
    }
}
