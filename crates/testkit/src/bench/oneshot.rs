//! The rows `one-shot` and `idle`: how long the smallest workflow takes over HTTP, and what a server costs that has
//! nothing to do.

use std::{
    fs::File,
    io::Write,
    net::TcpListener,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    measure::{Outcome, Tools},
    row::{Goal, Line, median, seconds},
    rows::Size,
    serve::Server,
    shape,
    spawn::once as spawn_once,
    swarm::RUNS,
    wire::{Client, greet},
};

/// Wake-ups a second of an idle server that count as none: clocks and the system's own.
const QUIET: f64 = 5.0;

pub(super) fn one_shot(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let dir = tools.fresh()?;
    let server = Server::start(tools, dir.path(), &[])?;
    let mut client = Client::connect(server.address)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut hello = Client::connect(listener.local_addr()?)?;
    let (stream, _) = listener.accept()?;
    std::thread::spawn(move || greet(stream));
    let body = json!({"workflow": shape::hello()}).to_string();
    let (mut ours, mut yards) = (Vec::new(), Vec::new());
    for turn in 0..size.of(200, 10) + 5 {
        let yard = yardstick(&mut hello, dir.path())?;
        let own = shot(&mut client, &server, &body)?;
        // The first ones find everything cold.
        if turn >= 5 {
            ours.push(seconds(own));
            yards.push(seconds(yard));
        }
    }
    server.stop()?;
    let (own, yard) = (median(ours), median(yards));
    let millis = |value: f64| format!("{:.2} ms", 1e3 * value);
    Ok(vec![Line {
        row: "one-shot".to_owned(),
        what: "p50 from the request to its end / (spawn + 2 fdatasync + 2 requests)",
        ours: millis(own),
        yardstick: millis(yard),
        value: own / yard,
        unit: "",
        goal: Some(Goal::AtMost(3.0)),
    }])
}

/// Submits one workflow and watches it until it is over.
fn shot(client: &mut Client, server: &Server, body: &str) -> Outcome<Duration> {
    let began = Instant::now();
    let made: Value = serde_json::from_slice(&client.ask("POST", RUNS, body)?)?;
    let name = made["metadata"]["name"].as_str().ok_or("a workflow has a name")?;
    let revision = made["metadata"]["resourceVersion"].as_str().ok_or("a workflow has a revision")?;
    let path = format!(
        "/api/v1/workflow-events/default?listOptions.fieldSelector=metadata.name%3D{name}&listOptions.resourceVersion={revision}"
    );
    let mut watch = Client::follow(server.address, &path)?;
    loop {
        let event = watch.value()?;
        match event["result"]["object"]["status"]["phase"].as_str() {
            Some("Succeeded") => return Ok(began.elapsed()),
            Some("Failed" | "Error") => return Err(format!("it went wrong: {event}").into()),
            _ => {}
        }
    }
}

fn yardstick(hello: &mut Client, dir: &Path) -> Outcome<Duration> {
    let mut file = File::create(dir.join("yardstick"))?;
    let page = [0u8; 4096];
    let began = Instant::now();
    for _ in 0..2 {
        hello.ask("GET", "/", "")?;
        file.write_all(&page)?;
        file.sync_data()?;
    }
    spawn_once()?;
    Ok(began.elapsed())
}

pub(super) fn idle(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let dir = tools.fresh()?;
    let server = Server::start(tools, dir.path(), &[])?;
    std::thread::sleep(Duration::from_secs(2));
    let span = Duration::from_secs(u64::from(size.of(20, 3)));
    let before = server.switches()?;
    std::thread::sleep(span);
    let wakes = (server.switches()? - before) as f64 / seconds(span);
    let (now, _) = server.memory_kib()?;
    server.stop()?;
    let line = |what, value, unit, most| Line {
        row: "idle".to_owned(),
        what,
        ours: String::new(),
        yardstick: String::new(),
        value,
        unit,
        goal: Some(Goal::AtMost(most)),
    };
    Ok(vec![
        line("memory of a server that did nothing yet", now as f64 * 1024.0 / 1e6, "MB", 40.0),
        line("times a thread was woken", wakes, "/s", QUIET),
    ])
}
