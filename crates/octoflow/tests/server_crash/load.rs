//! Clients that create load and interfere with it, and the ledger of what was acknowledged. A request without an answer
//! may have been carried out or not; the ledger records that.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    others,
    shape::{LIMITS, SHAPES, Shape, schedule, task_set, template, volcano_job},
    wire::http::call,
};

/// Runs of one client that are open at a time.
const OPEN: usize = 16;

/// Knowledge about an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Word {
    /// Not requested.
    No,
    /// Requested without an answer.
    Maybe,
    /// Acknowledged.
    Yes,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) shape: Shape,
    pub(crate) made: Word,
    pub(crate) deleted: Word,
    /// Whether it was stopped or terminated, or that was attempted.
    pub(crate) ended: Word,
    /// Number of requested retries.
    pub(crate) retries: usize,
    pub(crate) uid: Option<String>,
}

impl Entry {
    /// Returns whether it was ended, or that was attempted: a deletion ends a run first.
    pub(crate) fn touched(&self) -> bool {
        self.ended != Word::No || self.deleted != Word::No
    }
}

#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) runs: BTreeMap<String, Entry>,
    /// By name: the versions that may be there, and whether the object may be missing.
    pub(crate) objects: BTreeMap<String, Kept>,
    pub(crate) requests: u64,
    /// TaskSets, and what is known of each.
    pub(crate) sets: BTreeMap<String, Word>,
    /// Volcano Jobs, in the same way.
    pub(crate) jobs: BTreeMap<String, Word>,
    /// Kubernetes Jobs and JobFlows, by path and name, in the same way.
    pub(crate) others: BTreeMap<(&'static str, String), Word>,
    /// Answers that violate a guarantee.
    pub(crate) violations: Vec<String>,
    /// The spawner was killed, so a step may be lost.
    pub(crate) spawner_killed: bool,
}

impl Ledger {
    /// Records an answer that violates a guarantee.
    fn wrong(&mut self, what: String) {
        self.violations.push(what);
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) may_be: Vec<Option<u64>>,
}

/// Context shared by all clients.
pub(crate) struct Town<'a> {
    /// Current address of the server; it changes with every restart.
    pub(crate) address: &'a Mutex<SocketAddr>,
    pub(crate) over: &'a AtomicBool,
    pub(crate) host: &'a Path,
    pub(crate) ledger: &'a Mutex<Ledger>,
}

/// Deterministic pseudo-random numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

pub(crate) const RUNS: &str = "/api/v1/workflows/default";
pub(crate) const TEMPLATES: &str = "/api/v1/workflow-templates/default";
pub(crate) const SETS: &str = "/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/default/tasksets";
pub(crate) const JOBS: &str = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SCHEDULES: &str = "/api/v1/cron-workflows/default";

/// The schedule, and what the names of its runs begin with.
pub(crate) const SCHEDULE: &str = "each";

/// Creates what exists before the first kill: the limit of a lock, a schedule, and many waiting runs.
pub(crate) fn prepare(crowd: usize, town: &Town<'_>) {
    let map = json!({"metadata": {"name": LIMITS}, "data": {"few": "2"}});
    let (status, said) = ask(town, "POST", MAPS, Some(&map)).expect("the server answers");
    assert_eq!(status, 201, "{said}");
    let cron = json!({"cronWorkflow": schedule(SCHEDULE, town.host)});
    let (status, said) = ask(town, "POST", SCHEDULES, Some(&cron)).expect("the server answers");
    assert_eq!(status, 200, "{said}");
    others::prepare(town);
    thread::scope(|scope| {
        for part in 0..CROWD_CLIENTS {
            scope.spawn(move || {
                (part..crowd)
                    .step_by(CROWD_CLIENTS)
                    .for_each(|number| submit(&format!("held-{number}"), Shape::Held, town));
            });
        }
    });
}

/// Number of clients that submit the waiting runs.
const CROWD_CLIENTS: usize = 4;

/// Suspends the schedule.
pub(crate) fn hold_schedule(to: SocketAddr) {
    let answer =
        call(to, "PUT", &format!("{SCHEDULES}/{SCHEDULE}/suspend"), Some(&json!({}))).expect("the server answers");
    assert_eq!(answer.status, 200, "{}", answer.body);
}

/// One client until the load is over.
pub(crate) fn client(number: u64, town: &Town<'_>) {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ number.wrapping_mul(0x1234_5678_9abc_def1));
    let mut made = 0;
    let mut version = 0;
    let mut sets = 0;
    let mut open = Vec::new();
    for turn in 0_u64.. {
        if town.over.load(Ordering::Relaxed) {
            return;
        }
        if turn % 6 == 0 {
            open = open_runs(number, town);
        }
        match dice.below(12) {
            0..5 if open.len() < OPEN => {
                made += 1;
                let name = format!("c{number}-{made}");
                submit(&name, SHAPES[dice.below(SHAPES.len())], town);
                open.push(name);
            }
            5 => steer(&mut dice, &open, if made % 2 == 0 { "stop" } else { "terminate" }, town),
            6 => steer(&mut dice, &open, "suspend", town),
            7 => steer(&mut dice, &open, "resume", town),
            8 => delete(&mut dice, number, town),
            10 => retry(&mut dice, number, town),
            11 => {
                sets += 1;
                match sets % 4 {
                    0 => make_job(&format!("job{number}x{sets}"), town),
                    1 => make_set(&format!("set{number}x{sets}"), town),
                    2 => others::make(&format!("kube{number}x{sets}"), others::KUBE_JOBS, town),
                    _ => others::make(&format!("flow{number}x{sets}"), others::FLOWS, town),
                }
            }
            9 => {
                version += 1;
                put_or_take(&format!("t{number}"), version, dice.below(3) == 0, town);
            }
            _ => {
                // Waiting runs are resumed now and then, so that runs end.
                steer(&mut dice, &open, "resume", town);
                thread::sleep(Duration::from_millis(20));
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The client's runs that may still do something, as far as its ledger knows.
fn open_runs(client: u64, town: &Town<'_>) -> Vec<String> {
    let prefix = format!("c{client}-");
    let names: Vec<String> = {
        let ledger = town.ledger.lock().unwrap();
        let own = ledger.runs.iter().filter(|(name, _)| name.starts_with(&prefix));
        own.filter(|(_, entry)| entry.made == Word::Yes && entry.deleted == Word::No)
            .map(|(name, _)| name.clone())
            .collect()
    };
    let fields = "items.metadata.name,items.status.phase";
    let listed = ask(town, "GET", &format!("{RUNS}?fields={fields}"), None);
    let Some((200, listed)) = listed else { return names.into_iter().rev().take(3).collect() };
    let ended = |name: &String| {
        let items = listed["items"].as_array().into_iter().flatten();
        let found = items.filter(|item| item["metadata"]["name"] == name.as_str());
        found.into_iter().any(|item| matches!(item["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Error")))
    };
    names.into_iter().filter(|name| !ended(name)).collect()
}

fn make_job(name: &str, town: &Town<'_>) {
    town.ledger.lock().unwrap().jobs.insert(name.to_owned(), Word::Maybe);
    let Some((status, object)) = ask(town, "POST", JOBS, Some(&volcano_job(name, town.host))) else { return };
    let mut ledger = town.ledger.lock().unwrap();
    match status {
        201 => drop(ledger.jobs.insert(name.to_owned(), Word::Yes)),
        status => ledger.wrong(format!("a Volcano Job is answered {status}: {object}")),
    }
}

fn make_set(name: &str, town: &Town<'_>) {
    town.ledger.lock().unwrap().sets.insert(name.to_owned(), Word::Maybe);
    let Some((status, object)) = ask(town, "POST", SETS, Some(&task_set(name, town.host))) else { return };
    let mut ledger = town.ledger.lock().unwrap();
    match status {
        201 => drop(ledger.sets.insert(name.to_owned(), Word::Yes)),
        status => ledger.wrong(format!("a TaskSet is answered {status}: {object}")),
    }
}

pub(crate) fn submit(name: &str, shape: Shape, town: &Town<'_>) {
    // Recorded before the request: without an answer it may exist all the same.
    let entry = Entry { shape, made: Word::Maybe, deleted: Word::No, ended: Word::No, retries: 0, uid: None };
    town.ledger.lock().unwrap().runs.insert(name.to_owned(), entry);
    let body = json!({"workflow": shape.manifest(name, town.host)});
    let Some((status, object)) = ask(town, "POST", RUNS, Some(&body)) else { return };
    let mut ledger = town.ledger.lock().unwrap();
    if status != 200 {
        return ledger.wrong(format!("a workflow is answered {status}: {object}"));
    }
    let entry = ledger.runs.get_mut(name).expect("it was written down");
    entry.made = Word::Yes;
    entry.uid = object["metadata"]["uid"].as_str().map(str::to_owned);
    assert!(entry.uid.is_some(), "a new workflow has a uid: {object}");
}

fn steer(dice: &mut Dice, open: &[String], verb: &str, town: &Town<'_>) {
    if open.is_empty() {
        return;
    }
    let name = &open[dice.below(open.len())];
    let ends = matches!(verb, "stop" | "terminate");
    let note = |word: Word| {
        let mut ledger = town.ledger.lock().unwrap();
        if let Some(entry) = ledger.runs.get_mut(name).filter(|_| ends) {
            entry.ended = entry.ended.max(word);
        }
    };
    note(Word::Maybe);
    if let Some((status, said)) = ask(town, "PUT", &format!("{RUNS}/{name}/{verb}"), Some(&json!({}))) {
        // What is over cannot be steered any more, and what nobody suspended cannot be resumed.
        match status {
            200 => note(Word::Yes),
            400 | 404 | 409 => {}
            status => town.ledger.lock().unwrap().wrong(format!("{verb} of {name} is answered {status}: {said}")),
        }
    }
}

/// Retries a failed run, which fails again.
fn retry(dice: &mut Dice, client: u64, town: &Town<'_>) {
    let Some(name) = pick(dice, client, town, |entry| entry.shape == Shape::Fails, |entry| entry.retries += 1) else {
        return;
    };
    if let Some((status, said)) = ask(town, "PUT", &format!("{RUNS}/{name}/retry"), Some(&json!({}))) {
        // What is not over cannot be tried again yet.
        if !matches!(status, 200 | 400 | 404 | 409) {
            town.ledger.lock().unwrap().wrong(format!("retrying {name} is answered {status}: {said}"));
        }
    }
}

/// One of the client's acknowledged runs, and what is noted of it before it is touched.
fn pick(
    dice: &mut Dice,
    client: u64,
    town: &Town<'_>,
    fits: impl Fn(&Entry) -> bool,
    note: impl FnOnce(&mut Entry),
) -> Option<String> {
    let prefix = format!("c{client}-");
    let mut ledger = town.ledger.lock().unwrap();
    let own = ledger.runs.iter_mut().filter(|(name, entry)| {
        name.starts_with(&prefix) && entry.made == Word::Yes && entry.deleted == Word::No && fits(entry)
    });
    let mut own: Vec<(&String, &mut Entry)> = own.collect();
    if own.is_empty() {
        return None;
    }
    let at = dice.below(own.len());
    note(own[at].1);
    Some(own[at].0.clone())
}

fn delete(dice: &mut Dice, client: u64, town: &Town<'_>) {
    let Some(name) = pick(dice, client, town, |_| true, |entry| entry.deleted = Word::Maybe) else { return };
    if let Some((status, said)) = ask(town, "DELETE", &format!("{RUNS}/{name}"), None) {
        let mut ledger = town.ledger.lock().unwrap();
        match status {
            200 => ledger.runs.get_mut(&name).expect("it was written down").deleted = Word::Yes,
            status => ledger.wrong(format!("deleting {name} is answered {status}: {said}")),
        }
    }
}

fn put_or_take(name: &str, version: u64, take: bool, town: &Town<'_>) {
    let before = town.ledger.lock().unwrap().objects.get(name).cloned().unwrap_or(Kept { may_be: vec![None] });
    let set = |may_be: Vec<Option<u64>>| {
        town.ledger.lock().unwrap().objects.insert(name.to_owned(), Kept { may_be });
    };
    let after = (!take).then_some(version);
    set(before.may_be.iter().copied().chain([after]).collect());
    let there = before.may_be.iter().all(Option::is_some);
    let path = format!("{TEMPLATES}/{name}");
    let answer = match (take, there) {
        (true, _) => ask(town, "DELETE", &path, None),
        (false, true) => ask(town, "PUT", &path, Some(&json!({"name": name, "template": template(name, version)}))),
        (false, false) => ask(town, "POST", TEMPLATES, Some(&json!({"template": template(name, version)}))),
    };
    match answer {
        Some((200, _)) => set(vec![after]),
        // It is not what the client thought: nothing has changed.
        Some((404, _)) if take || there => set(vec![None]),
        Some((409, _)) => set(before.may_be.into_iter().filter(Option::is_some).collect()),
        Some((status, said)) => {
            town.ledger.lock().unwrap().wrong(format!("putting {name} is answered {status}: {said}"));
        }
        None => {}
    }
}

/// None: no answer came.
pub(crate) fn ask(town: &Town<'_>, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
    let address = *town.address.lock().unwrap();
    let answer = call(address, method, path, body);
    town.ledger.lock().unwrap().requests += 1;
    match answer {
        Ok(answer) => Some((answer.status, answer.body)),
        Err(_) => {
            thread::sleep(Duration::from_millis(30));
            None
        }
    }
}
