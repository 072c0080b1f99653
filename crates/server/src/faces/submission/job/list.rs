//! Lists of jobs, by page, and their number.

use octoflow_control::registry::{JobFilter, NumberedPage, RunRow, plugins::feature::state_of};
use octoflow_model::{
    Time,
    plugin::{LifeState, term},
};
use serde_json::{Value, json};

use super::super::outcome::{Outcome, Refused};
use crate::{answer::query::Query, call::Call};

const PAGE_SIZES: [u64; 3] = [10, 20, 50];
/// Users and states that one list can ask for.
const MAX_WORDS: usize = 100;

pub(super) async fn list(call: Call) -> Outcome {
    let (filter, page) = (filter(&call)?, page(&call.query)?);
    let (rows, _) = call.work(move |registry| registry.jobs(&filter, page)).await?;
    Ok(Some(rows.iter().map(item).collect()))
}

pub(super) async fn count(call: Call) -> Outcome {
    let filter = filter(&call)?;
    let count = call.work(move |registry| registry.count_jobs(&filter)).await?;
    Ok(Some(json!({"count": count})))
}

fn filter(call: &Call) -> Result<JobFilter, Refused> {
    let query = &call.query;
    let words = |name: &str| -> Result<Vec<String>, Refused> {
        let text = query.get(name).unwrap_or_default();
        let words: Vec<String> = text.split(',').map(|word| word.trim().to_owned()).collect();
        if words.len() > MAX_WORDS {
            return Err(Refused::wrong(format!("{name} names {} words; it may name {MAX_WORDS}", words.len())));
        }
        Ok(words.into_iter().filter(|word| !word.is_empty()).collect())
    };
    let mut states = Vec::new();
    for word in words("state")? {
        states.push(state_of(&word).ok_or_else(|| {
            let known = LifeState::ALL.map(LifeState::word).join(", ");
            Refused::wrong(format!("`{word}` is no state of a job; the states are {known}"))
        })?);
    }
    let text = |name: &str| query.get(name).map(str::to_owned);
    Ok(JobFilter {
        users: words("userID")?,
        states,
        job_kind: text("kind"),
        name: text("name"),
        cluster: text("cluster"),
        after: seconds(query, "startAt")?,
        before: seconds(query, "endAt")?,
        namespaces: call.caller.scope.names().into_iter().map(str::to_owned).collect(),
    })
}

fn seconds(query: &Query, name: &str) -> Result<Option<Time>, Refused> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let seconds: i64 =
        text.parse().map_err(|_| Refused::wrong(format!("{name} is a number of seconds since 1970, not `{text}`")))?;
    // Farther away than any job.
    Ok(Some(Time::from_secs(seconds.clamp(-1 << 40, 1 << 40))))
}

fn page(query: &Query) -> Result<NumberedPage, Refused> {
    let number = |name: &str| -> Result<u64, Refused> {
        let text = query.get(name).ok_or_else(|| Refused::lacks(format!("{name} must be given")))?;
        text.parse()
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(|| Refused::wrong(format!("{name} is a whole number from 1, not `{text}`")))
    };
    let (page, size) = (number("pageNumber")?, number("pageSize")?);
    if !PAGE_SIZES.contains(&size) {
        return Err(Refused::wrong(format!("pageSize is 10, 20 or 50, not {size}")));
    }
    let newest_first = match query.get("order").map(str::to_ascii_lowercase).as_deref() {
        None | Some("desc") => true,
        Some("asc") => false,
        Some(other) => return Err(Refused::wrong(format!("order is asc or desc, not `{other}`"))),
    };
    Ok(NumberedPage { number: page, size, newest_first })
}

/// A job in a list, from its row alone.
fn item(row: &RunRow) -> Value {
    let term = |name: &str| row.labels.get(name).map_or("", String::as_str);
    json!({
        "jobID": row.name, "jobName": term(term::JOB_NAME), "jobKind": term(term::JOB_KIND),
        "userID": term(term::USER), "state": row.phase, "createdAt": row.created.to_string(),
        "finishedAt": row.finished.map_or(String::new(), |at| at.to_string()),
        "namespace": row.namespace, "cluster": term(term::CLUSTER),
    })
}
