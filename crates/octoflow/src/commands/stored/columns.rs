//! Human-readable form of templates and schedules: columns of lists, and a block for each object.

use std::fmt::Write;

use serde_json::Value;

use crate::{
    output::{
        clock,
        colour::one_line,
        table::{Cell, Table},
    },
    source::workflow::{list, named_values, plain, text},
};

pub(super) fn plural(kind: &str) -> &'static str {
    match kind {
        "WorkflowTemplate" => "workflow templates",
        "ClusterWorkflowTemplate" => "cluster workflow templates",
        "CronWorkflow" => "cron workflows",
        _ => "objects",
    }
}

pub(super) fn table(kind: &str, found: &[Value], namespaces: bool, without_titles: bool) -> Table {
    let mut titles = vec!["NAME"];
    titles.extend(if kind == "CronWorkflow" {
        ["AGE", "LAST RUN", "SCHEDULE", "TIMEZONE", "SUSPENDED"].as_slice()
    } else {
        ["AGE", "ENTRYPOINT", "TEMPLATES"].as_slice()
    });
    if namespaces {
        titles.insert(0, "NAMESPACE");
    }
    let mut table = Table::new(&titles).without_header(without_titles);
    for object in found {
        let mut cells =
            vec![Cell::new(text(&object["metadata"], "name")), age(&object["metadata"], "creationTimestamp")];
        if kind == "CronWorkflow" {
            cells.push(age(&object["status"], "lastScheduledTime"));
            cells.push(Cell::new(schedules(object)));
            cells.push(Cell::new(text(&object["spec"], "timezone")));
            cells.push(Cell::new(if object["spec"]["suspend"] == Value::Bool(true) { "true" } else { "false" }));
        } else {
            cells.push(Cell::new(text(&object["spec"], "entrypoint")));
            cells.push(Cell::new(list(&object["spec"]["templates"]).len().to_string()));
        }
        if namespaces {
            cells.insert(0, Cell::new(text(&object["metadata"], "namespace")));
        }
        table.push(cells);
    }
    table
}

/// Formats each object as a block of names and values.
pub(super) fn described(kind: &str, found: &[Value]) -> String {
    let blocks: Vec<String> = found.iter().map(|object| block(kind, object)).collect();
    blocks.join("\n")
}

fn block(kind: &str, object: &Value) -> String {
    let mut shown = String::new();
    let mut row = |label: &str, value: &str| {
        if !value.is_empty() {
            let line = format!("{:<20} {}", format!("{label}:"), one_line(value));
            writeln!(shown, "{}", line.trim_end()).expect("writing to memory does not fail");
        }
    };
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    row("Name", text(metadata, "name"));
    row("Namespace", text(metadata, "namespace"));
    row("Created", text(metadata, "creationTimestamp"));
    if kind == "CronWorkflow" {
        row("Schedule", &schedules(object));
        row("Timezone", text(spec, "timezone"));
        row("Suspended", if spec["suspend"] == Value::Bool(true) { "true" } else { "false" });
        row("ConcurrencyPolicy", text(spec, "concurrencyPolicy"));
        row("StartingDeadline", &plain(&spec["startingDeadlineSeconds"]));
        row("LastScheduled", text(&object["status"], "lastScheduledTime"));
        let active = list(&object["status"]["active"]).iter().map(|one| text(one, "name")).collect::<Vec<_>>();
        row("Active", &active.join(", "));
        for condition in list(&object["status"]["conditions"]) {
            row(text(condition, "type"), text(condition, "message"));
        }
        return shown;
    }
    row("Entrypoint", text(spec, "entrypoint"));
    let templates: Vec<&str> = list(&spec["templates"]).iter().map(|one| text(one, "name")).collect();
    row("Templates", &templates.join(", "));
    for (name, value) in named_values(&spec["arguments"]["parameters"]) {
        row("Parameter", &format!("{name} = {value}"));
    }
    shown
}

fn schedules(object: &Value) -> String {
    let spec = &object["spec"];
    match list(&spec["schedules"]) {
        [] => text(spec, "schedule").to_owned(),
        many => many.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
    }
}

fn age(holder: &Value, field: &str) -> Cell {
    let time = clock::parse(text(holder, field));
    time.map_or_else(|| Cell::new("N/A"), |time| clock::short(clock::now().since(time)).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::colour::Paint;

    #[test]
    fn schedules_and_templates_have_their_own_columns() {
        let cron = json!({"metadata": {"name": "c", "namespace": "n"}, "spec": {"schedules": ["* * * * *", "@daily"], "suspend": true}});
        let shown = table("CronWorkflow", &[cron], true, false).render(Paint::OFF);
        assert_eq!(
            shown,
            "NAMESPACE  NAME  AGE  LAST RUN  SCHEDULE          TIMEZONE  SUSPENDED\n\
             n          c     N/A  N/A       * * * * *,@daily            true\n"
        );
        let template = json!({"metadata": {"name": "t"}, "spec": {"entrypoint": "main", "templates": [{}, {}]}});
        assert_eq!(table("WorkflowTemplate", &[template], false, true).render(Paint::OFF), "t  N/A  main  2\n");
    }

    #[test]
    fn a_template_is_described_with_its_parameters() {
        let template = json!({"metadata": {"name": "t", "namespace": "n"}, "spec": {"entrypoint": "main",
            "templates": [{"name": "main"}], "arguments": {"parameters": [{"name": "a", "value": "1"}]}}});
        let expected = "\
Name:                t
Namespace:           n
Entrypoint:          main
Templates:           main
Parameter:           a = 1
";
        assert_eq!(described("WorkflowTemplate", &[template]), expected);
    }
}
