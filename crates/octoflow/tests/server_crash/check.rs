//! Checks of the guarantees against the API, the store, and the marks that steps left.

use std::{collections::BTreeMap, fs, net::SocketAddr, path::Path};

use octoflow_store::Reader;
use serde_json::Value;

use crate::{
    load::{JOBS, Ledger, MAPS, RUNS, SCHEDULE, SETS, TEMPLATES, Word},
    wire::http::call,
    witness::{Seen, terminal},
};

/// All workflows there are, by name.
pub(crate) fn listed(server: SocketAddr) -> BTreeMap<String, Value> {
    let answer = call(server, "GET", RUNS, None).expect("the server answers");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let items = answer.body["items"].as_array().cloned().unwrap_or_default();
    items.into_iter().map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item)).collect()
}

/// Returns whether a step of this run was lost with the killed spawner: its end is unknown, and the run says so.
fn lost_a_step(ledger: &Ledger, run: &Value) -> bool {
    let nodes = run["status"]["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    let lost = |node: &Value| node["message"].as_str().is_some_and(|message| message.contains("lost: "));
    ledger.spawner_killed && nodes.into_iter().any(lost)
}

/// What was acknowledged is there, what was deleted is not, and what ended ended as it should.
pub(crate) fn promises(ledger: &Ledger, listed: &BTreeMap<String, Value>) -> Vec<String> {
    let mut broken = ledger.violations.clone();
    for (name, entry) in &ledger.runs {
        let found = listed.get(name);
        match (entry.made, entry.deleted, found) {
            (Word::Yes, Word::No, None) => broken.push(format!("{name} was acknowledged and is lost: {entry:?}")),
            (_, Word::Yes, Some(_)) => broken.push(format!("{name} was deleted and is there: {entry:?}")),
            _ => {}
        }
        let Some(object) = found else { continue };
        if entry.uid.as_deref().is_some_and(|uid| object["metadata"]["uid"] != uid) {
            broken.push(format!("{name} is another one than was acknowledged"));
        }
        let phase = object["status"]["phase"].as_str().unwrap_or_default();
        if !entry.touched() && phase != entry.shape.phase() && !lost_a_step(ledger, object) {
            broken.push(format!("{name} ({:?}) ended {phase}: {}", entry.shape, object["status"]["message"]));
        }
    }
    let unknown = listed.keys().filter(|name| !ledger.runs.contains_key(*name) && !is_scheduled(name));
    broken.extend(unknown.map(|name| format!("{name} is there and nobody made it")));
    broken
}

fn is_scheduled(name: &str) -> bool {
    name.strip_prefix(SCHEDULE).is_some_and(|rest| rest.starts_with('-'))
}

/// Each time of the schedule has one run at most, and every run of it ended well.
pub(crate) fn scheduled(ledger: &Ledger, listed: &BTreeMap<String, Value>) -> Vec<String> {
    let mut broken = Vec::new();
    let mut times: BTreeMap<&str, &String> = BTreeMap::new();
    for (name, run) in listed.iter().filter(|(name, _)| is_scheduled(name)) {
        let time = run["metadata"]["annotations"]["workflows.argoproj.io/scheduled-time"].as_str().unwrap_or_default();
        if let Some(other) = times.insert(time, name) {
            broken.push(format!("{name} and {other} are both for {time}"));
        }
        let phase = run["status"]["phase"].as_str().unwrap_or_default();
        if phase != "Succeeded" && !lost_a_step(ledger, run) {
            broken.push(format!("{name} of the schedule ended {phase}: {}", run["status"]["message"]));
        }
    }
    if times.len() < 2 {
        broken.push(format!("the schedule made {} runs", times.len()));
    }
    broken
}

/// All TaskSets there are, by name.
pub(crate) fn sets(server: SocketAddr) -> BTreeMap<String, Value> {
    let answer = call(server, "GET", SETS, None).expect("the server answers");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let items = answer.body["items"].as_array().cloned().unwrap_or_default();
    items.into_iter().map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item)).collect()
}

/// TaskSets that were acknowledged are there and ended well, unless a replica was lost with the spawner.
pub(crate) fn task_sets(ledger: &Ledger, found: &BTreeMap<String, Value>) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, word) in &ledger.sets {
        match (word, found.get(name)) {
            (Word::Yes, None) => broken.push(format!("TaskSet {name} was acknowledged and is lost")),
            (_, Some(set)) if set["status"]["state"] != "Succeeded" => {
                let lost = ledger.spawner_killed && set["status"].to_string().contains("Lost: ");
                if !lost {
                    broken.push(format!("TaskSet {name} ended {}: {}", set["status"]["state"], set["status"]));
                }
            }
            _ => {}
        }
    }
    let unknown = found.keys().filter(|name| !ledger.sets.contains_key(*name));
    broken.extend(unknown.map(|name| format!("TaskSet {name} is there and nobody made it")));
    broken
}

/// All Volcano Jobs there are, by name, but for those that flows made.
pub(crate) fn jobs(server: SocketAddr) -> BTreeMap<String, Value> {
    let answer = call(server, "GET", JOBS, None).expect("the server answers");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let mut items = answer.body["items"].as_array().cloned().unwrap_or_default();
    items.retain(|item| item["metadata"]["ownerReferences"][0]["kind"] != "JobFlow");
    items.into_iter().map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item)).collect()
}

/// Jobs that were acknowledged are there with what they brought along, and are complete unless a pod was lost with the
/// spawner.
pub(crate) fn volcano_jobs(ledger: &Ledger, found: &BTreeMap<String, Value>, server: SocketAddr) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, word) in &ledger.jobs {
        match (word, found.get(name)) {
            (Word::Yes, None) => broken.push(format!("Job {name} was acknowledged and is lost")),
            (_, Some(job)) => {
                let lost = ledger.spawner_killed && job["status"].to_string().contains("Lost: ");
                if job["status"]["state"]["phase"] != "Completed" && !lost {
                    broken.push(format!("Job {name} ended {}", job["status"]));
                }
                let map = call(server, "GET", &format!("{MAPS}/{name}-svc"), None).expect("the server answers");
                if map.status != 200 || map.body["metadata"]["ownerReferences"][0]["uid"] != job["metadata"]["uid"] {
                    broken.push(format!("Job {name} is there without its ConfigMap: {}", map.body));
                }
            }
            _ => {}
        }
    }
    let unknown = found.keys().filter(|name| !ledger.jobs.contains_key(*name));
    broken.extend(unknown.map(|name| format!("Job {name} is there and nobody made it")));
    broken
}

/// Objects are what the last acknowledged change made of them, or what a change without an answer would have.
pub(crate) fn objects(ledger: &Ledger, server: SocketAddr) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, kept) in &ledger.objects {
        let answer = call(server, "GET", &format!("{TEMPLATES}/{name}"), None).expect("the server answers");
        let found = match answer.status {
            200 => answer.body["metadata"]["annotations"]["version"].as_str().and_then(|text| text.parse().ok()),
            _ => None,
        };
        if !kept.may_be.contains(&found) {
            broken.push(format!("template {name} is {found:?}, which is none of {:?}", kept.may_be));
        }
    }
    broken
}

/// No step ran twice, and in runs that nobody touched every step ran.
pub(crate) fn marks(
    ledger: &Ledger,
    listed: &BTreeMap<String, Value>,
    sets: &BTreeMap<String, Value>,
    jobs: &BTreeMap<String, Value>,
    host: &Path,
) -> Vec<String> {
    let mut marks: BTreeMap<String, usize> = BTreeMap::new();
    for line in fs::read_to_string(host.join("marks")).unwrap_or_default().lines() {
        *marks.entry(line.to_owned()).or_insert(0) += 1;
    }
    let tries = |mark: &str| {
        let name = mark.split(' ').next().unwrap_or_default();
        1 + ledger.runs.get(name).map_or(0, |entry| entry.retries)
    };
    let mut broken: Vec<String> = marks
        .iter()
        .filter(|(mark, count)| **count > tries(mark))
        .map(|(mark, count)| format!("the step `{mark}` ran {count} times"))
        .collect();
    for (name, entry) in &ledger.runs {
        let Some(run) = listed.get(name) else { continue };
        if entry.touched() || lost_a_step(ledger, run) {
            continue;
        }
        let missing = entry.shape.marks(name).into_iter().filter(|mark| !marks.contains_key(mark));
        broken.extend(missing.map(|mark| format!("{name} ended and its step `{mark}` never ran")));
    }
    let well = |run: &Value| run["status"]["state"] == "Succeeded" || run["status"]["state"]["phase"] == "Completed";
    for name in sets.iter().chain(jobs).filter(|(_, run)| well(run)).map(|(name, _)| name) {
        let missing = (0..2).map(|index| format!("{name} r{index} 0")).filter(|mark| !marks.contains_key(mark));
        broken.extend(missing.map(|mark| format!("{name} succeeded and `{mark}` never ran")));
    }
    broken
}

/// Checks that the watcher knows how every run ended.
pub(crate) fn watched(seen: &Seen, listed: &BTreeMap<String, Value>, ledger: &Ledger) -> Vec<String> {
    let retried = |name: &str| ledger.runs.get(name).is_some_and(|entry| entry.retries > 0);
    let reopened = seen.reopened.iter().filter(|(name, _)| !retried(name));
    let mut broken: Vec<String> = seen.violations.iter().chain(reopened).map(|(_, text)| text.clone()).collect();
    let by_uid: BTreeMap<&str, (&String, &str)> = listed
        .iter()
        .map(|(name, object)| {
            let text = |value: &'static str, part: &'static str| object[value][part].as_str().unwrap_or_default();
            (text("metadata", "uid"), (name, text("status", "phase")))
        })
        .collect();
    for (uid, (name, phase)) in &by_uid {
        match seen.runs.get(*uid) {
            None => broken.push(format!("who watched never heard of {name}")),
            Some(heard) if heard.phase != *phase || heard.gone.is_some() => {
                let (heard, gone) = (&heard.phase, &heard.gone);
                broken.push(format!("who watched thinks that {name} is {heard}, gone: {gone:?}; it is {phase}"));
            }
            Some(_) => {}
        }
    }
    for (uid, heard) in &seen.runs {
        if heard.gone.is_none() && !by_uid.contains_key(uid.as_str()) {
            broken.push(format!("who watched thinks that {} is there, and it is deleted", heard.name));
        }
    }
    broken
}

/// Checks that the store agrees with the API.
pub(crate) fn stored(data_dir: &Path, listed: &BTreeMap<String, Value>) -> Vec<String> {
    let reader = Reader::open(data_dir).expect("the store can be read without a server");
    let mut broken: Vec<String> = reader
        .unfinished()
        .expect("the store can be read")
        .into_iter()
        .map(|row| format!("{} is open in the store", row.name))
        .collect();
    for (name, object) in listed {
        let row = reader.run_by_name("default", None, name).expect("the store can be read");
        let phase = row.map(|row| row.phase).unwrap_or_default();
        if object["status"]["phase"] != phase.as_str() || !terminal(&phase) {
            broken.push(format!("{name} is {phase:?} in the store and {} by the API", object["status"]["phase"]));
        }
    }
    broken
}
