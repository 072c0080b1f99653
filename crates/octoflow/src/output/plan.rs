//! Renders what would run, as a tree for people and as an object for programs.

use std::fmt::Write as _;

use octoflow_engine::{
    admit::capacity::{StaticUnit, UnitPart},
    kinds::scheduling::render_quantity as render,
    plan::{CallCondition, LongestPath, NotExpanded, PlannedCall, Rounds, WorkflowPlan},
};
use serde_json::{Map, Value, json};

use super::{
    clock,
    colour::{Colour, Paint},
};

/// Number of names of the longest chain shown at each end.
const ENDS: usize = 6;

pub(crate) fn pretty(title: &str, plan: &WorkflowPlan, sum: &LongestPath, paint: Paint) -> String {
    let mut text = format!("{} {title}\n", paint.paint("workflow", Colour::Bold));
    let mut notes = Vec::new();
    if let Some(most) = plan.parallelism {
        notes.push(format!("at most {most} at a time"));
    }
    notes.extend(plan.locks.iter().map(|lock| format!("needs {lock}")));
    if !notes.is_empty() {
        let _ = writeln!(text, "{}", paint.paint(&notes.join(", "), Colour::Dim));
    }
    let _ = writeln!(text, "\n{}", line(&plan.root, false, paint));
    children(&plan.root, "", &mut text, paint);
    if let Some(exit) = &plan.exit {
        let _ = writeln!(text, "\n{}", line(exit, false, paint));
        children(exit, "", &mut text, paint);
    }
    let _ = writeln!(text, "\n{}", totals(sum));
    if plan.cut {
        text.push_str("the tree is cut; --lines shows more of it\n");
    }
    text
}

/// Renders what starts at once, each part with where it is written, its queue and what it asks for.
pub(crate) fn units(title: &str, units: &[StaticUnit]) -> String {
    let mut text = format!("{title}\n");
    for unit in units {
        let together = unit.parts().map(|part| part.count).sum::<u32>() > 1;
        for part in unit.parts() {
            let asked = part.demand.resources.iter().map(|(name, amount)| format!(" {name}={}", render(name, amount)));
            let _ = writeln!(
                text,
                "  {} × {}{} in queue {}{}",
                part.count,
                part.path,
                if together { ", together," } else { "" },
                part.demand.queue,
                asked.collect::<String>()
            );
        }
    }
    text
}

/// The same as an object.
pub(crate) fn units_json(title: &str, units: &[StaticUnit]) -> Value {
    let unit = |unit: &StaticUnit| {
        let part = |part: UnitPart<'_>| {
            let asked =
                part.demand.resources.iter().map(|(name, amount)| (name.to_owned(), json!(render(name, amount))));
            json!({
                "path": part.path.to_string(), "count": part.count, "queue": &*part.demand.queue,
                "resources": asked.collect::<Map<_, _>>(),
            })
        };
        json!({"tasks": unit.parts().map(part).collect::<Vec<_>>()})
    };
    json!({"name": title, "units": units.iter().map(unit).collect::<Vec<_>>()})
}

/// Says when it could start: on a server as that says, else on this machine, which has nothing else to do.
pub(crate) fn start(expected: Option<&str>) -> String {
    match expected {
        None => "it can run on this machine".to_owned(),
        Some("now") => "it would start now".to_owned(),
        Some("unknown") => "it would wait, and nobody knows how long".to_owned(),
        Some(at) => format!("it would start by {at}"),
    }
}

/// Recursive: the tree is only as deep as templates may nest.
fn children(item: &PlannedCall, prefix: &str, text: &mut String, paint: Paint) {
    let numbered = item.children.iter().any(|child| child.wave > 1);
    let more = match item.cut {
        Some(NotExpanded::Rounds(more)) => Some(format!("… and {more} more like it")),
        Some(NotExpanded::Size) => Some("… cut here".to_owned()),
        Some(NotExpanded::Recursion) | None => None,
    };
    // Waves are shown in order, so that the tree reads from top to bottom in time.
    let mut order: Vec<&PlannedCall> = item.children.iter().collect();
    order.sort_by_key(|child| (child.hook, child.wave));
    for (at, child) in order.iter().enumerate() {
        let last = at + 1 == order.len() && more.is_none();
        let _ = writeln!(text, "{prefix}{}{}", if last { "└─ " } else { "├─ " }, line(child, numbered, paint));
        children(child, &format!("{prefix}{}", if last { "   " } else { "│  " }), text, paint);
    }
    if let Some(more) = more {
        let _ = writeln!(text, "{prefix}└─ {}", paint.paint(&more, Colour::Dim));
    }
}

fn line(item: &PlannedCall, numbered: bool, paint: Paint) -> String {
    let wave = if numbered && !item.hook { format!("{} ", item.wave) } else { String::new() };
    let rounds = match &item.rounds {
        Rounds::Once => String::new(),
        Rounds::Known(rounds) => format!(" × {rounds}"),
        Rounds::Open(items) => format!(" × {items}"),
    };
    let mut notes = Vec::new();
    match item.kind.as_str() {
        "Pod" => notes.push(match &item.image {
            Some(image) if item.template == item.name => image.clone(),
            Some(image) => format!("{}, {image}", item.template),
            None => item.template.clone(),
        }),
        "" if item.children.is_empty() => notes.push(format!("template {}", item.template)),
        "" => {}
        kind if item.template == item.name || item.template.is_empty() => notes.push(kind.to_owned()),
        kind => notes.push(format!("{} ({kind})", item.template)),
    }
    notes.extend(item.retries.as_ref().map(|limit| match limit.as_str() {
        "" => "tried again until it succeeds".to_owned(),
        limit => format!("tried again up to {limit} times"),
    }));
    notes.extend(item.parallelism.as_ref().map(|most| format!("at most {most} at a time")));
    notes.extend(item.locks.iter().map(|lock| format!("needs {lock}")));
    notes.extend(item.depends.as_ref().map(|depends| format!("if {depends}")));
    match &item.condition {
        CallCondition::Always => {}
        CallCondition::Never(why) => notes.push(format!("never: {why}")),
        CallCondition::Open(what) => notes.push(format!("when {what}")),
    }
    if item.cut == Some(NotExpanded::Recursion) {
        notes.push(format!("↺ {} again", item.template));
    }
    let name = match item.condition {
        CallCondition::Never(_) => paint.paint(&item.name, Colour::Dim),
        CallCondition::Always | CallCondition::Open(_) => item.name.clone(),
    };
    format!("{}{name}{rounds}  {}", paint.paint(&wave, Colour::Cyan), paint.paint(&notes.join("; "), Colour::Dim))
        .trim_end()
        .to_owned()
}

fn totals(sum: &LongestPath) -> String {
    let tasks = match (sum.least, sum.most) {
        (least, Some(most)) if least == most => format!("{} {}", least, plural(least)),
        (least, Some(most)) => format!("{least} to {most} tasks"),
        (least, None) => format!("{least} {} or more", plural(least)),
    };
    let chain = &sum.chain;
    let shown = if chain.len() > 2 * ENDS {
        let (head, tail) = (&chain[..ENDS], &chain[chain.len() - ENDS..]);
        format!("{} → … → {}", head.join(" → "), tail.join(" → "))
    } else {
        chain.join(" → ")
    };
    let took = sum.span.map(|span| format!(", about {}", clock::short(span))).unwrap_or_default();
    match chain.len() {
        0 => tasks,
        count => format!("{tasks}; the longest path has {count}{took}: {shown}"),
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "task" } else { "tasks" }
}

pub(crate) fn json(title: &str, plan: &WorkflowPlan, sum: &LongestPath) -> Value {
    let mut value = json!({
        "workflow": title,
        "entrypoint": plan.entrypoint,
        "root": object(&plan.root),
        "tasks": {"least": sum.least, "most": sum.most},
        "longestPath": {"tasks": sum.chain.len(), "names": sum.chain},
        "cut": plan.cut,
    });
    if let Some(span) = sum.span {
        value["longestPath"]["seconds"] = json!(span.as_secs_f64());
    }
    if let Some(exit) = &plan.exit {
        value["onExit"] = object(exit);
    }
    if let Some(most) = plan.parallelism {
        value["parallelism"] = json!(most);
    }
    if !plan.locks.is_empty() {
        value["locks"] = json!(plan.locks);
    }
    value
}

/// Recursive: only as deep as templates may nest.
fn object(item: &PlannedCall) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        if !matches!(&value, Value::Null) {
            fields.insert(name.to_owned(), value);
        }
    };
    put("name", json!(item.name));
    put("template", json!(item.template));
    put("type", json!((!item.kind.is_empty()).then_some(&item.kind)));
    put("image", json!(item.image));
    put("wave", json!(item.wave));
    put("needs", json!((!item.needs.is_empty()).then_some(&item.needs)));
    put("depends", json!(item.depends));
    put("retries", json!(item.retries));
    put("parallelism", json!(item.parallelism));
    put("locks", json!((!item.locks.is_empty()).then_some(&item.locks)));
    put("hook", json!(item.hook.then_some(true)));
    match &item.condition {
        CallCondition::Always => {}
        CallCondition::Never(why) => put("never", json!(why)),
        CallCondition::Open(what) => put("when", json!(what)),
    }
    match &item.rounds {
        Rounds::Once => {}
        Rounds::Known(rounds) => put("rounds", json!(rounds)),
        Rounds::Open(items) => put("over", json!(items)),
    }
    match item.cut {
        Some(NotExpanded::Recursion) => put("cut", json!("it calls itself again")),
        Some(NotExpanded::Rounds(more)) => put("cut", json!(format!("{more} more rounds"))),
        Some(NotExpanded::Size) => put("cut", json!("the tree is large enough")),
        None => {}
    }
    if !item.children.is_empty() {
        put("children", item.children.iter().map(object).collect());
    }
    Value::Object(fields)
}
