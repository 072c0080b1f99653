//! `octoflow node …`: the nodes of a server, what they have, and whether they take tasks.

use anyhow::Result;
use octoflow_engine::kinds::core::NODE;
use serde_json::{Map, Value, json};

use super::{
    Context,
    stored::{address, find},
};
use crate::{
    cli::{Format, NodeCommand, NodeLabel, NodeNames, NodeSet},
    client::{Address, Client},
    exit::{Exit, Failure},
    output::{
        json::objects,
        table::{Cell, Table},
    },
    source::workflow::{list, text},
};

pub(crate) fn node(command: &NodeCommand, context: &Context) -> Result<Exit> {
    match command {
        NodeCommand::List(args) => show(args, false, context),
        NodeCommand::Get(args) => show(args, true, context),
        NodeCommand::Set(args) => set(args, context),
        NodeCommand::Label(args) => label(args, context),
        NodeCommand::Cordon(args) => cordon(args, true, context),
        NodeCommand::Uncordon(args) => cordon(args, false, context),
        NodeCommand::Drain(args) => drain(&args.names, context),
    }
}

fn found(names: &[String], client: &Client) -> Result<Vec<Value>> {
    if names.is_empty() {
        let answer = client.get(&address(&NODE, None, None))?;
        return Ok(list(&answer["items"]).to_vec());
    }
    names.iter().map(|name| find(client, &NODE, "", name)).collect()
}

fn show(args: &NodeNames, whole: bool, context: &Context) -> Result<Exit> {
    let mut nodes = found(&args.names, &context.client()?)?;
    for node in &mut nodes {
        (node["apiVersion"], node["kind"]) = (json!(NODE.api_version()), json!(NODE.name));
    }
    match &args.output {
        Some(format @ (Format::Json | Format::Yaml | Format::Name | Format::JsonPath(_))) => {
            context.output.data(&objects(format, &nodes, args.names.is_empty()).unwrap_or_default())?;
        }
        format => {
            let wide = whole || matches!(format, Some(Format::Wide));
            context.output.text(&table(&nodes, wide, args.no_headers).render(context.output.paint()))?;
        }
    }
    Ok(Exit::Succeeded)
}

fn table(nodes: &[Value], wide: bool, without_titles: bool) -> Table {
    let mut titles = vec!["NAME", "STATUS", "CPU", "MEMORY", "PODS", "OTHERS"];
    if wide {
        titles.extend(["LABELS", "TAINTS"]);
    }
    let mut table = Table::new(&titles).without_header(without_titles);
    for node in nodes {
        let (status, spec) = (&node["status"], &node["spec"]);
        let used = |name: &str| {
            let amount = |part: &str| status[part][name].as_str().map(str::to_owned);
            let used = amount("allocated").unwrap_or_else(|| "0".to_owned());
            amount("capacity").map(|has| format!("{name}={used}/{has}"))
        };
        let cell =
            |name: &str| Cell::new(used(name).map_or_else(String::new, |text| text[name.len() + 1..].to_owned()));
        let well_known = ["cpu", "memory", "pods"];
        let names = status["capacity"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let others: Vec<String> = names.filter(|name| !well_known.contains(name)).filter_map(used).collect();
        let word = if spec["unschedulable"] == true { "Ready,SchedulingDisabled" } else { "Ready" };
        let mut cells = vec![Cell::new(text(&node["metadata"], "name")), Cell::new(word)];
        cells.extend(well_known.map(cell));
        cells.push(Cell::new(others.join(",")));
        if wide {
            let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
            let labels: Vec<String> =
                labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
            let taint =
                |taint: &Value| format!("{}={}:{}", text(taint, "key"), text(taint, "value"), text(taint, "effect"));
            let taints: Vec<String> = list(&spec["taints"]).iter().map(taint).collect();
            cells.extend([Cell::new(labels.join(",")), Cell::new(taints.join(","))]);
        }
        table.push(cells);
    }
    table
}

fn set(args: &NodeSet, context: &Context) -> Result<Exit> {
    let mut capacity = Map::new();
    for pair in args.capacity.as_deref().unwrap_or_default().split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, amount) = pair.trim().split_once('=').ok_or_else(|| {
            Failure::usage(format!("`{pair}` is not NAME=AMOUNT"))
                .help("write for example --capacity cpu=8,memory=16Gi")
        })?;
        capacity.insert(name.trim().to_owned(), if amount.trim() == "-" { Value::Null } else { json!(amount.trim()) });
    }
    if capacity.is_empty() {
        return Err(Failure::usage("there is nothing to set").help("say --capacity cpu=8,memory=16Gi").into());
    }
    let client = context.client()?;
    find(&client, &NODE, "", &args.name)?;
    let place = Address::of(&["api", "v1", "nodes", &args.name, "status"]);
    client.patch(&place, &json!({"status": {"capacity": capacity}}))?;
    context.output.line(&format!("node {} changed", args.name))?;
    Ok(Exit::Succeeded)
}

fn label(args: &NodeLabel, context: &Context) -> Result<Exit> {
    let mut labels = Map::new();
    for change in &args.changes {
        let (key, value) = match (change.split_once('='), change.strip_suffix('-')) {
            (Some((key, value)), _) => (key, json!(value)),
            (None, Some(key)) => (key, Value::Null),
            (None, None) => {
                let text = format!("`{change}` is neither NAME=VALUE nor NAME-");
                return Err(Failure::usage(text).help("NAME=VALUE sets a label, NAME- removes it").into());
            }
        };
        labels.insert(key.to_owned(), value);
    }
    change(&args.name, &json!({"metadata": {"labels": labels}}), "labeled", context)?;
    Ok(Exit::Succeeded)
}

fn cordon(args: &NodeNames, cordoned: bool, context: &Context) -> Result<Exit> {
    if args.names.is_empty() {
        return Err(Failure::usage("name the nodes").help("`octoflow node list` shows them").into());
    }
    let word = if cordoned { "cordoned" } else { "uncordoned" };
    for name in &args.names {
        let unschedulable = if cordoned { json!(true) } else { Value::Null };
        change(name, &json!({"spec": {"unschedulable": unschedulable}}), word, context)?;
    }
    Ok(Exit::Succeeded)
}

fn drain(names: &[String], context: &Context) -> Result<Exit> {
    let client = context.client()?;
    for name in names {
        change(name, &json!({"spec": {"unschedulable": true}}), "cordoned", context)?;
        client.post(&Address::of(&["api", "octoflow", "v1", "nodes", name, "drain"]), &json!({}))?;
        context.output.line(&format!("node {name} drained"))?;
    }
    Ok(Exit::Succeeded)
}

fn change(name: &str, patch: &Value, word: &str, context: &Context) -> Result<()> {
    let client = context.client()?;
    find(&client, &NODE, "", name)?;
    client.patch(&address(&NODE, None, Some(name)), patch)?;
    context.output.line(&format!("node {name} {word}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::colour::Paint;

    #[test]
    fn a_node_shows_what_is_in_use_of_what_it_has() {
        let node = json!({
            "metadata": {"name": "n", "labels": {"disk": "ssd"}},
            "spec": {"unschedulable": true, "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {"cpu": "8", "memory": "16Gi", "pods": "32", "nvidia.com/gpu": "4"},
                "allocated": {"cpu": "1500m", "pods": "3", "nvidia.com/gpu": "1"},
            },
        });
        let shown = table(&[node], true, false).render(Paint::OFF);
        assert_eq!(
            shown,
            "NAME  STATUS                    CPU      MEMORY  PODS  OTHERS              LABELS    TAINTS\n\
             n     Ready,SchedulingDisabled  1500m/8  0/16Gi  3/32  nvidia.com/gpu=1/4  disk=ssd  gpu=yes:NoSchedule\n"
        );
    }
}
