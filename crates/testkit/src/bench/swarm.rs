//! The row `swarm`: thousands of small workflows over HTTP, acknowledged when they are on disk, and run to their end.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    measure::{Outcome, Tools},
    role::{Role, heard},
    row::{Goal, Line, median, seconds},
    rows::Size,
    serve::Server,
    shape,
    wire::{Client, crowd},
};

pub(super) const RUNS: &str = "/api/v1/workflows/default";
const CONNECTIONS: u32 = 16;
const STEPS: u32 = 3;

#[derive(Default)]
struct Seen {
    submits: Vec<f64>,
    records: Vec<f64>,
    hellos: Vec<f64>,
    alive: Vec<f64>,
    of_goal: Vec<f64>,
    of_records: Vec<f64>,
    of_hellos: Vec<f64>,
    whole: Vec<f64>,
    spawn: Vec<f64>,
    of_spawn: Vec<f64>,
    memory: Vec<f64>,
}

pub(super) fn swarm(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let count = size.of(5000, 200);
    let mut seen = Seen::default();
    for _ in 0..size.turns(5, 1) {
        once(count, tools, &mut seen)?;
    }
    let rate = |values: &Vec<f64>| format!("{:.0}/s", median(values.clone()));
    let line = |what, ours: String, yardstick: String, value: &Vec<f64>, unit, goal| Line {
        row: format!("swarm, {count} workflows of {STEPS} steps"),
        what,
        ours,
        yardstick,
        value: median(value.clone()),
        unit,
        goal,
    };
    let least = "the lower of 0.3 × records and 0.1 × hello".to_owned();
    let told = rate(&seen.submits);
    Ok(vec![
        line("submits / the goal's rate", told.clone(), least, &seen.of_goal, "", Some(Goal::AtLeast(1.0))),
        line("submits / batched records of the store", told.clone(), rate(&seen.records), &seen.of_records, "", None),
        line("submits / requests to a hello server", told, rate(&seen.hellos), &seen.of_hellos, "", None),
        line("requests for /livez, which does nothing", rate(&seen.alive), String::new(), &seen.alive, "/s", None),
        line(
            "steps, from the first submit to the last end / raw spawn",
            rate(&seen.whole),
            rate(&seen.spawn),
            &seen.of_spawn,
            "",
            Some(Goal::AtLeast(0.5)),
        ),
        line("most memory of the server", String::new(), String::new(), &seen.memory, "MB", Some(Goal::AtMost(200.0))),
    ])
}

fn once(count: u32, tools: &Tools, seen: &mut Seen) -> Outcome<()> {
    let dir = tools.fresh()?;
    let records = tools.role(&Role::Records { count, dir: dir.path().to_owned() })?;
    let records = f64::from(count) / seconds(heard(&records.said)?);
    let body = json!({"workflow": shape::three_steps()}).to_string();
    // The same client, the same number of connections, the same request.
    let hello = Server::hello(tools)?;
    let hellos = f64::from(4 * count) / seconds(crowd(hello.address, 4 * count, CONNECTIONS, ("POST", RUNS, &body))?);
    hello.stop()?;
    let tasks = f64::from(count * STEPS);
    let spawn = tasks / seconds(tools.role(&Role::Spawn { count: count * STEPS, in_flight: CONNECTIONS })?.wall);

    let dir = tools.fresh()?;
    let server = Server::start(tools, dir.path(), &["--parallelism", "16"])?;
    let alive = f64::from(count) / seconds(crowd(server.address, count, CONNECTIONS, ("GET", "/livez", ""))?);
    let began = Instant::now();
    let submits = f64::from(count) / seconds(crowd(server.address, count, CONNECTIONS, ("POST", RUNS, &body))?);
    until_nothing_is_open(server.address)?;
    let whole = tasks / seconds(began.elapsed());
    let (_, peak) = server.memory_kib()?;
    server.stop()?;

    seen.of_goal.push(submits / (0.3 * records).min(0.1 * hellos));
    seen.of_records.push(submits / records);
    seen.of_hellos.push(submits / hellos);
    seen.of_spawn.push(whole / spawn);
    seen.memory.push(peak as f64 * 1024.0 / 1e6);
    seen.submits.push(submits);
    seen.records.push(records);
    seen.hellos.push(hellos);
    seen.alive.push(alive);
    seen.whole.push(whole);
    seen.spawn.push(spawn);
    Ok(())
}

/// Asks now and then, so that asking costs nothing.
pub(super) fn until_nothing_is_open(server: SocketAddr) -> Outcome<()> {
    let open = "listOptions.labelSelector=workflows.argoproj.io/completed%3Dfalse&listOptions.limit=1";
    let path = format!("{RUNS}?{open}&fields=items.metadata.name");
    let mut client = Client::connect(server)?;
    loop {
        let listed: Value = serde_json::from_slice(&client.ask("GET", &path, "")?)?;
        if listed["items"].as_array().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
