//! Runs for our own client: rows of the run index, and explanations of a run's state.

use std::collections::BTreeMap;

use octoflow_control::registry::{
    Filter, FoundRun, Kind, LabelSelector, ListOptions, MAX_PAGE, RunRow, Selection, kinds,
};
use octoflow_model::{Time, plugin::term};
use serde_json::{Value, json};

use crate::{
    answer::{self, Answer, fault::Fault, query::Query},
    call::Call,
    faces::openapi::operation::{Content, Parameter, count, refer, text, texts},
    gate::area::Area,
    route::{Need, Table},
};

const RUNS: &str = "/api/octoflow/v1/runs";

/// Kind of the run.
pub(super) const KIND: Parameter = text("kind", "Workflow, which it is when left out, or TaskSet");

pub(super) fn add_to(table: &mut Table) {
    let page = json!({
        "type": "object", "required": ["items", "continue"],
        "properties": {
            "items": {"type": "array", "items": refer("octoflow.Run")}, "continue": {"type": ["string", "null"]},
        },
    });
    table
        .get(RUNS, Need::ReadJob, list)
        .within(Area::Query("namespace"))
        .about("Runs of one kind, newest first")
        .query(&[
            KIND,
            text("namespace", "Only runs of this namespace"),
            texts("phase", "Only runs in these phases"),
            text("prefix", "Only runs whose name has this prefix"),
            text("labelSelector", "Only runs with these labels"),
            count("since", "Only runs created since this time, in microseconds"),
            count("until", "Only runs created until this time, in microseconds"),
            count("limit", "At most so many"),
            text("continue", "Where the page before ended"),
        ])
        .gives(Content::json(page));
    table
        .get(format!("{RUNS}/{{namespace}}/{{name}}"), Need::ReadJob, row)
        .about("The row of one run")
        .query(&[KIND])
        .gives(Content::json(refer("octoflow.Run")));
    let reasons = json!({
        "type": "object", "required": ["name", "archived", "items"],
        "properties": {"items": {"type": "array", "items": {
            "type": "object", "required": ["node", "phase", "reason", "since"],
        }}},
    });
    table
        .get(format!("{RUNS}/{{namespace}}/{{name}}/explain"), Need::ReadJob, explain)
        .about("Why the nodes of a run wait")
        .query(&[KIND])
        .gives(Content::json(reasons));
}

/// Query parameters: `kind` (workflows by default), `namespace`, `phase` (repeatable), `prefix`, `labelSelector`,
/// `since` and `until` in microseconds, `limit`, `continue`.
async fn list(call: Call) -> Result<Answer, Fault> {
    let kind = kind(&call)?;
    let query = &call.query;
    let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or_default()).map_err(Fault::bad_request)?;
    let options = ListOptions {
        namespace: query.get("namespace").map(str::to_owned),
        selection: Selection { labels, ..Selection::default() },
        limit: Some(number(query, "limit")?.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE)),
        after: query.get("continue").map(str::to_owned),
    };
    let filter = Filter {
        // A run that was not started yet has an empty phase; an empty value selects it.
        phases: query.all("phase").map(str::to_owned).collect(),
        name_prefix: query.get("prefix").map(str::to_owned),
        since: number(query, "since")?.map(Time),
        until: number(query, "until")?.map(Time),
        ..Filter::default()
    };
    let found = call.work(move |registry| registry.list_runs(kind, &options, &filter)).await?;
    Ok(answer::json(&json!({
        "items": found.items.iter().map(row_json).collect::<Vec<_>>(),
        "continue": found.next,
    })))
}

async fn row(call: Call) -> Result<Answer, Fault> {
    let found = named(&call).await?;
    Ok(answer::json(&row_json(&found.row)))
}

async fn explain(call: Call) -> Result<Answer, Fault> {
    let found = named(&call).await?;
    let reasons = call.work(move |registry| registry.controller().explain(found.run)).await?;
    let items: Vec<Value> = reasons
        .iter()
        .map(|one| {
            let mut item = json!({
                "node": one.node, "phase": one.phase, "reason": one.reason, "since": one.since.map(|since| since.0),
            });
            if let Some(wait) = &one.wait {
                item["wait"] = wait.to_json();
            }
            item
        })
        .collect();
    Ok(answer::json(&json!({"name": found.row.name, "archived": found.row.archived, "items": items})))
}

/// Finds the run in the path, also `@latest`, of the kind in the query (a workflow by default).
pub(super) async fn named(call: &Call) -> Result<FoundRun, Fault> {
    let (kind, namespace, name) = (kind(call)?, call.param("namespace").to_owned(), call.param("name").to_owned());
    call.work(move |registry| registry.find_run(kind, &namespace, &name)).await
}

fn kind(call: &Call) -> Result<&'static Kind, Fault> {
    let Some(word) = call.query.get("kind") else { return Ok(unsaid()) };
    kinds::of_key(word).or_else(|| kinds::of_word(word)).filter(|kind| kind.runs()).ok_or_else(|| {
        let known: Vec<&str> = kinds::of_runs().map(|kind| kind.word).collect();
        Fault::bad_request(format!("`{word}` is no kind of run; known are {}", known.join(" and ")))
    })
}

/// Default kind: the first of the table, which was the only one in earlier versions.
fn unsaid() -> &'static Kind {
    kinds::of_runs().next().expect("something runs")
}

pub(super) fn number<T: std::str::FromStr>(query: &Query, name: &str) -> Result<Option<T>, Fault> {
    let wrong = |text: &str| Fault::bad_request(format!("`{name}` must be a number, not `{text}`"));
    query.get(name).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

/// Times are in microseconds.
fn row_json(row: &RunRow) -> Value {
    let labels: BTreeMap<_, _> = row.labels.iter().filter(|(name, _)| !term::is_term(name)).collect();
    json!({
        "run": row.run.0, "namespace": row.namespace, "kind": row.kind, "name": row.name, "uid": row.uid,
        "phase": row.phase, "message": row.message, "progress": row.progress, "priority": row.priority,
        "labels": labels, "created": row.created.0, "started": row.started.map(|time| time.0),
        "finished": row.finished.map(|time| time.0), "archived": row.archived,
    })
}
