//! `octoflow list`: runs, newest first.

use anyhow::Result;
use octoflow_engine::dialect::PhaseClass;
use octoflow_model::Time;
use octoflow_store::{Filter, RunRow};
use serde_json::Value;

use super::Context;
use crate::{
    cli::{Format, List, Which},
    exit::Exit,
    output::{
        clock,
        colour::phase_colour,
        json::objects,
        table::{Cell, Table},
    },
    source::{
        phases,
        workflow::{Workflow, plain, with_nodes},
    },
};

pub(crate) fn list(args: &List, context: &Context) -> Result<Exit> {
    let now = clock::now();
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let source = context.source()?;
    let (mut rows, more) = source.list(&filter(args, now), limit)?;
    source.mark_unreadable(&mut rows)?;
    if more {
        context.output.talk(&format!("only the newest {limit} are shown; more with --limit"));
    }
    let whole = || -> Result<Vec<Value>> { rows.iter().map(|row| source.object(row)).collect() };
    match &args.output {
        Some(Format::Name) => {
            let names: String = rows.iter().map(|row| format!("{}\n", row.name)).collect();
            context.output.data(&names)?;
        }
        Some(Format::Wide) if !rows.is_empty() => {
            let objects = whole()?;
            context.output.text(&table(&rows, Some(&objects), args, now).render(context.output.paint()))?;
        }
        Some(format @ (Format::Json | Format::Yaml | Format::JsonPath(_))) => {
            context.output.data(&objects(format, &whole()?, true).unwrap_or_default())?;
        }
        _ if rows.is_empty() => {
            context.output.line(args.kind.map_or("No workflows found", |_| "No runs of that kind found"))?
        }
        _ => context.output.text(&table(&rows, None, args, now).render(context.output.paint()))?,
    }
    Ok(Exit::Succeeded)
}

fn filter(args: &List, now: Time) -> Filter {
    let namespace = if args.all_namespaces { None } else { Some(args.namespace.or_default().to_owned()) };
    let mut filter = shared_filter(&args.which, namespace, now);
    if args.running {
        filter.phases.extend(["", "Pending", "Waiting", "Running"].map(str::to_owned));
    }
    filter.phases.extend(args.status.iter().cloned());
    filter.kind = args.kind.map(str::to_owned);
    filter.since = args.since.map(|span| earlier(now, span));
    filter
}

/// Builds the filter for the options that `list` and `delete` share.
pub(crate) fn shared_filter(which: &Which, namespace: Option<String>, now: Time) -> Filter {
    Filter {
        namespace,
        phases: if which.completed { phases(PhaseClass::is_final) } else { Vec::new() },
        name_prefix: which.prefix.clone(),
        labels: which.selector.as_ref().map(|labels| labels.0.clone()).unwrap_or_default(),
        until: which.older.map(|span| earlier(now, span)),
        ..Filter::default()
    }
}

fn earlier(now: Time, span: std::time::Duration) -> Time {
    Time(now.0.saturating_sub(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
}

/// With `objects` the wide form.
fn table(rows: &[RunRow], objects: Option<&[Value]>, args: &List, now: Time) -> Table {
    let mut titles = vec!["NAME", "STATUS", "AGE", "DURATION", "PRIORITY", "MESSAGE"];
    if objects.is_some() {
        titles.extend(["P/R/C", "PARAMETERS"]);
    }
    // The kind is shown only if the list has several kinds.
    let mixed = rows.iter().any(|row| row.kind != rows[0].kind);
    if mixed {
        titles.insert(1, "KIND");
    }
    if args.all_namespaces {
        titles.insert(0, "NAMESPACE");
    }
    let mut table = Table::new(&titles).without_header(args.no_headers);
    for (at, row) in rows.iter().enumerate() {
        let mut cells = cells(row, now);
        if let Some(object) = objects.and_then(|objects| objects.get(at)) {
            let object = with_nodes(object);
            let workflow = Workflow::new(&object);
            let (pending, running, completed) = workflow.pods_by_state();
            let parameters: Vec<String> =
                workflow.parameters().iter().map(|(name, value)| format!("{name}={value}")).collect();
            cells.push(format!("{pending}/{running}/{completed}").into());
            cells.push(parameters.join(",").into());
        }
        if mixed {
            cells.insert(1, Cell::new(&row.kind));
        }
        if args.all_namespaces {
            cells.insert(0, Cell::new(&row.namespace));
        }
        table.push(cells);
    }
    table
}

fn cells(row: &RunRow, now: Time) -> Vec<Cell> {
    let phase = if row.phase.is_empty() { "Pending" } else { &row.phase };
    let took = row.started.map(|started| clock::short(row.finished.unwrap_or(now).since(started)));
    vec![
        Cell::new(&row.name),
        Cell::coloured(phase, phase_colour(phase)),
        clock::short(now.since(row.created)).into(),
        took.unwrap_or_default().into(),
        plain(&Value::from(row.priority)).into(),
        Cell::new(&row.message),
    ]
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use octoflow_model::RunId;
    use octoflow_store::LabelTest;
    use serde_json::json;

    use super::*;
    use crate::{
        cli::{Cli, Command},
        output::colour::Paint,
    };

    fn args(words: &[&str]) -> List {
        match Cli::try_parse_from(["octoflow", "list"].iter().chain(words)).unwrap().command {
            Command::List(list) => list,
            other => panic!("{other:?}"),
        }
    }

    fn row(name: &str, phase: &str) -> RunRow {
        let mut row = RunRow::new(RunId(1), "team", "Workflow", name, "u", Time::from_secs(1000));
        row.phase = phase.to_owned();
        row
    }

    #[test]
    fn the_table_has_the_known_columns() {
        let mut done = row("dag-diamond-x", "Failed");
        (done.started, done.finished) = (Some(Time::from_secs(1000)), Some(Time::from_secs(1073)));
        done.message = "child 'x' failed".to_owned();
        let rows = [row("w", "Running"), done];
        let shown = table(&rows, None, &args(&[]), Time::from_secs(1300)).render(Paint::OFF);
        let expected = "\
NAME           STATUS   AGE  DURATION  PRIORITY  MESSAGE
w              Running  5m             0
dag-diamond-x  Failed   5m   1m13s     0         child 'x' failed
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn kinds_are_told_where_they_are_mixed() {
        let mut set = row("train", "Waiting");
        set.kind = "TaskSet".to_owned();
        let shown = table(&[set, row("w", "Running")], None, &args(&[]), Time::from_secs(1000)).render(Paint::OFF);
        let expected = "\
NAME   KIND      STATUS   AGE  DURATION  PRIORITY  MESSAGE
train  TaskSet   Waiting  0s             0
w      Workflow  Running  0s             0
";
        assert_eq!(shown, expected);
        for (word, key) in [
            ("tasksets", "TaskSet"),
            ("WF", "Workflow"),
            ("job", "KubeJob"),
            ("vcjob", "VolcanoJob"),
            ("Job.batch", "KubeJob"),
        ] {
            assert_eq!(filter(&args(&["--kind", word]), Time(0)).kind.as_deref(), Some(key), "{word}");
        }
    }

    #[test]
    fn wide_and_all_namespaces_add_columns() {
        let object = json!({"spec": {"arguments": {"parameters": [{"name": "a", "value": "1"}]}},
                            "status": {"nodes": {"x": {"type": "Pod", "phase": "Running"}, "y": {"type": "Pod", "phase": "Failed"}}}});
        let shown = table(&[row("w", "")], Some(&[object]), &args(&["-A", "--no-headers"]), Time::from_secs(1000))
            .render(Paint::OFF);
        assert_eq!(shown, "team  w  Pending  0s    0    0/1/1  a=1\n");
    }

    #[test]
    fn arguments_become_a_filter() {
        let now = Time::from_secs(10_000);
        let args = args(&[
            "--status",
            "failed,Error",
            "--since",
            "1h",
            "--older",
            "10s",
            "--prefix",
            "dag",
            "-l",
            "app=x",
            "-n",
            "team",
        ]);
        let filter = filter(&args, now);
        assert_eq!(filter.phases, ["Failed", "Error"]);
        assert_eq!(filter.namespace.as_deref(), Some("team"));
        assert_eq!((filter.since, filter.until), (Some(Time::from_secs(6400)), Some(Time::from_secs(9990))));
        assert_eq!(filter.labels, [LabelTest::Equals { key: "app".into(), value: "x".into() }]);
        assert_eq!(filter.name_prefix.as_deref(), Some("dag"));
    }
}
