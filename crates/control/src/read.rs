//! Reads runs without running them: finished ones from the archive, open ones by folding their journal.

pub(crate) mod brief;

use std::collections::{BTreeMap, HashMap};

use octoflow_engine::{Explanation, Run, dialect, schedule::Scheduler};
use octoflow_model::{AttemptId, Fact, NodeIx, RunId, garbage::Garbage, plugin::term};
use octoflow_store::{Reader, RunRow};
use serde_json::{Value, json};

use crate::{Error, controller::hooks, event_loop::record, supervisor::error_chain};

pub mod lines;

/// Returns the run as clients see it.
pub fn object(reader: &Reader, run: RunId) -> Result<Value, Error> {
    Ok(match stored(reader, run)? {
        StoredRun::Archived(mut record) => record["object"].take(),
        StoredRun::Open(run) => run.object(),
    })
}

/// Returns the run with only some of a workflow's nodes, by id and type. The others are never held in memory.
pub(crate) fn object_where(reader: &Reader, run: RunId, keep: &dyn Fn(&str, &str) -> bool) -> Result<Value, Error> {
    let kept = |id: &str, node: &Value| keep(id, node["type"].as_str().unwrap_or_default());
    let archived = |run: RunId| -> Result<Option<Value>, Error> {
        let Some(bytes) = reader.archive(run)? else { return Ok(None) };
        let object = brief::object_where(&bytes, &kept);
        object.map(Some).map_err(|error| Error::Journal { run, why: error.to_string() })
    };
    if let Some(object) = archived(run)? {
        return Ok(object);
    }
    match folded(reader, run) {
        // It may have ended between the two reads, and then it is in the archive now.
        Err(Error::UnknownRun(run)) => archived(run)?.ok_or(Error::UnknownRun(run)),
        found => Ok(found?.object_where(keep)),
    }
}

/// Placeholder object for a run whose journal or record cannot be read: what the index knows, and the reason.
pub fn unreadable(api_version: &str, row: &RunRow, why: &str) -> Value {
    let message = unreadable_message(why);
    json!({
        "apiVersion": api_version, "kind": row.kind,
        "metadata": {
            "name": row.name, "namespace": row.namespace, "uid": row.uid, "labels": without_terms(&row.labels),
            "creationTimestamp": row.created.timestamp().to_string(),
        },
        "status": {
            "phase": row.phase, "message": message,
            "conditions": [{"type": "Unreadable", "status": "True", "message": message}],
        },
    })
}

/// Returns the labels of a row as its object has them.
pub(crate) fn without_terms(labels: &BTreeMap<String, String>) -> BTreeMap<&String, &String> {
    labels.iter().filter(|(name, _)| !term::is_term(name)).collect()
}

/// Returns why an open run cannot be read, if it cannot.
pub fn damage(reader: &Reader, run: RunId) -> Result<Option<String>, Error> {
    match folded(reader, run) {
        Err(Error::Journal { why, .. }) => Ok(Some(why)),
        // It ended meanwhile, and its journal is gone.
        Err(Error::UnknownRun(_)) | Ok(_) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Message for a run that cannot be read.
pub fn unreadable_message(why: &str) -> String {
    format!("this run cannot be read: {why} [OF1115]")
}

/// Returns whether the object was made by [`unreadable`].
pub(crate) fn is_unreadable(object: &Value) -> bool {
    object["status"]["conditions"][0]["type"] == "Unreadable"
}

/// Returns the run without what grows with its size.
pub fn summary(reader: &Reader, run: RunId) -> Result<Value, Error> {
    if reader.archive_size(run)?.is_some()
        && let Some(mut object) = brief(reader, run)?
    {
        summarize(&mut object);
        return Ok(object);
    }
    Ok(match stored(reader, run)? {
        StoredRun::Archived(mut record) => {
            let mut object = record["object"].take();
            summarize(&mut object);
            object
        }
        StoredRun::Open(run) => run.summary(),
    })
}

/// Removes what grows with the size of a run, as its dialect knows it.
fn summarize(object: &mut Value) {
    if let Ok(dialect) = dialect::of(object) {
        (dialect.summarize)(object);
    }
}

/// Returns the artifacts that are to be deleted with the run, or before.
pub fn garbage(reader: &Reader, run: RunId) -> Result<Vec<Garbage>, Error> {
    Ok(match stored(reader, run)? {
        StoredRun::Archived(mut record) => serde_json::from_value(record["garbage"].take()).unwrap_or_default(),
        StoredRun::Open(run) => run.garbage(None),
    })
}

/// Returns a finished run for a summary, if it is archived: of its nodes only failed ones and retries.
pub fn brief(reader: &Reader, run: RunId) -> Result<Option<Value>, Error> {
    let Some(bytes) = reader.archive(run)? else { return Ok(None) };
    brief::object(&bytes).map(Some).map_err(|error| Error::Journal { run, why: error.to_string() })
}

/// Returns the attempts by node id, for finding logs.
pub fn attempts(reader: &Reader, run: RunId) -> Result<Vec<(String, AttemptId)>, Error> {
    let unreadable = |error: serde_json::Error| Error::Journal { run, why: error.to_string() };
    if let Some(bytes) = reader.archive(run)? {
        let record = brief::attempts(&bytes).map_err(unreadable)?;
        let own = |(id, task)| (id, AttemptId { run, task: NodeIx(task), attempt: 0 });
        let mut found: Vec<(String, AttemptId)> = record.tasks.into_iter().map(own).collect();
        for (id, text) in record.elsewhere {
            let attempt = text.parse();
            let attempt = attempt.map_err(|_| Error::Journal { run, why: format!("`{text}` is no attempt") })?;
            found.push((id, attempt));
        }
        return Ok(found);
    }
    let run = match folded(reader, run) {
        // It ended between the two reads, and is in the archive now.
        Err(Error::UnknownRun(run)) if reader.archive(run)?.is_some() => return attempts(reader, run),
        found => found?,
    };
    Ok(run.attempts())
}

/// Returns the final log sizes of ended attempts, of those that wrote something.
pub fn log_sizes(reader: &Reader, run: RunId) -> Result<HashMap<AttemptId, u64>, Error> {
    if let Some(bytes) = reader.archive(run)? {
        let record = brief::attempts(&bytes).map_err(|error| Error::Journal { run, why: error.to_string() })?;
        return Ok(record.logs.into_iter().filter_map(|(text, bytes)| Some((text.parse().ok()?, bytes))).collect());
    }
    match folded(reader, run) {
        // It ended between the two reads, and is in the archive now.
        Err(Error::UnknownRun(run)) if reader.archive(run)?.is_some() => log_sizes(reader, run),
        found => Ok(found?.log_sizes().into_iter().collect()),
    }
}

/// Returns all ids a run has had, its own last: each retry gives it a new one. Its logs are under all of them.
pub fn numbers(reader: &Reader, run: RunId) -> Result<Vec<RunId>, Error> {
    let mut runs = match reader.archive(run)? {
        Some(bytes) => brief::attempts(&bytes).map_err(|error| Error::Journal { run, why: error.to_string() })?.runs,
        None => match folded(reader, run) {
            Err(Error::UnknownRun(run)) if reader.archive(run)?.is_some() => return numbers(reader, run),
            found => found?.replaced_runs().to_vec(),
        },
    };
    runs.push(run);
    Ok(runs)
}

pub fn explain(reader: &Reader, run: RunId) -> Result<Vec<Explanation>, Error> {
    explain_with(reader, run, None)
}

/// Explains a run with what a scheduler says about its tasks that wait.
pub(crate) fn explain_with(
    reader: &Reader,
    run: RunId,
    scheduler: Option<&Scheduler>,
) -> Result<Vec<Explanation>, Error> {
    Ok(match stored(reader, run)? {
        StoredRun::Archived(record) => {
            let object = &record["object"];
            let known = dialect::of(object).map_err(|why| Error::Journal { run, why })?;
            (known.explain_ended)(object)
        }
        StoredRun::Open(run) => run.explain(scheduler, None),
    })
}

/// Explains which life hooks have not heard of everything about a run, also of one that is over.
pub fn unheard(reader: &Reader, run: RunId) -> Result<Vec<Explanation>, Error> {
    hooks::registry::explain(reader, run)
}

/// Stored form of a run.
enum StoredRun {
    Archived(Value),
    Open(Box<Run>),
}

fn stored(reader: &Reader, run: RunId) -> Result<StoredRun, Error> {
    if let Some(record) = archived(reader, run)? {
        return Ok(StoredRun::Archived(record));
    }
    match folded(reader, run) {
        // It may have ended between the two reads, and then it is in the archive now.
        Err(Error::UnknownRun(run)) => archived(reader, run)?.map(StoredRun::Archived).ok_or(Error::UnknownRun(run)),
        found => found.map(|run| StoredRun::Open(Box::new(run))),
    }
}

fn archived(reader: &Reader, run: RunId) -> Result<Option<Value>, Error> {
    let Some(bytes) = reader.archive(run)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::Journal { run, why: error.to_string() })
}

fn folded(reader: &Reader, run: RunId) -> Result<Run, Error> {
    record::fold(run, facts(reader, run)?).map_err(|why| Error::Journal { run, why })
}

/// Readable prefix of an open run's journal.
pub(crate) struct Journal {
    pub facts: Vec<Fact>,
    /// Error of the first unreadable row.
    pub damage: Option<String>,
}

/// Reads the journal up to the first damage. Returns an error only if storage is unavailable.
pub(crate) fn journal(reader: &Reader, run: RunId) -> Result<Journal, Error> {
    let mut journal = Journal { facts: Vec::new(), damage: None };
    let read = reader.facts(run, 0, |rows| {
        if journal.damage.is_none() {
            match record::read(rows.first, rows.lines) {
                Ok(facts) => journal.facts.extend(facts),
                Err(why) => journal.damage = Some(why),
            }
        }
        Ok::<(), octoflow_store::Error>(())
    });
    match read {
        // A retry may help.
        Err(error) if error.is_outage() => return Err(error.into()),
        Err(error) => journal.damage = Some(error_chain(&error.into())),
        Ok(()) if journal.facts.is_empty() && journal.damage.is_none() => {
            journal.damage = Some("it is empty".to_owned());
        }
        Ok(()) => {}
    }
    Ok(journal)
}

/// Returns all facts of an open run.
pub fn facts(reader: &Reader, run: RunId) -> Result<Vec<Fact>, Error> {
    let mut facts = Vec::new();
    let read = reader.facts(run, 0, |rows| {
        facts.extend(record::read(rows.first, rows.lines).map_err(|why| Error::Journal { run, why })?);
        Ok::<(), Error>(())
    });
    match read {
        // The rest of the database may be intact.
        Err(Error::Store(error)) if !error.is_outage() => {
            return Err(Error::Journal { run, why: error_chain(&error.into()) });
        }
        read => read?,
    }
    if facts.is_empty() { Err(Error::UnknownRun(run)) } else { Ok(facts) }
}
