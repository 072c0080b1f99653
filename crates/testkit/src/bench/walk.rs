//! The rows `walk`: submitted jobs that meet five plugins over HTTP, beside the same calls made by themselves, and others'
//! jobs beside a plugin that hangs. What comes out of the jobs waits for room, so that only the walk is measured.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    measure::{Outcome, Tools},
    row::{Goal, Line, median, seconds},
    rows::Size,
    serve::Server,
    swarm::RUNS,
    wire::{Client, crowd},
};

/// Jobs that are under way at once.
const IN_FLIGHT: u32 = 200;
const PLUGINS: u32 = 5;
const FEATURES: &str = "/v1/features";
const JOBS: &str = "/v1/job";
/// How long a plugin that hangs keeps each call.
const HANG: Duration = Duration::from_secs(4);

/// Plugins in this process: a thread a connection. Counts the jobs that have met the last one.
struct Plugins {
    address: SocketAddr,
    done: Arc<Done>,
}

#[derive(Default)]
struct Done {
    walked: Mutex<u32>,
    changed: Condvar,
}

impl Done {
    fn add(&self) {
        *self.walked.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    fn count(&self) -> u32 {
        *self.walked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many jobs have walked.
    fn wait(&self, count: u32) -> Outcome<()> {
        let walked = self.walked.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = Duration::from_secs(120);
        let waited = self.changed.wait_timeout_while(walked, patience, |walked| *walked < count);
        let (walked, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return Err(format!("{} of {count} jobs have walked after {patience:?}", *walked).into());
        }
        Ok(())
    }
}

impl Plugins {
    fn start(delay: Duration) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, done) = (listener.local_addr()?, Arc::new(Done::default()));
        let told = Arc::clone(&done);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let done = Arc::clone(&told);
                std::thread::spawn(move || serve(stream, delay, &done));
            }
        });
        Ok(Self { address, done })
    }

    /// The feature that all jobs of the kind `Form` meet.
    fn feature(&self) -> Value {
        let plugin = |kind: &str, path: &str| json!({"pluginType": kind, "callAddress": format!("http://{}/{path}", self.address), "concurrency": 256});
        json!({
            "name": "walk", "author": "bench",
            "jobSelector": {"conditions": [{"name": "form", "key": "jobKind", "expect": "Form"}], "expression": "form"},
            "plugins": [
                plugin("TemplateTranslator", "translate"),
                plugin("FactorGenerator", "factor"),
                plugin("AccessGate", "gate"),
                plugin("TemplateDecorator", "decorate"),
                plugin("SchedulerBinder", "bind"),
            ],
        })
    }
}

/// Answers requests of one connection until it ends. What goes wrong ends the connection, and the caller tells.
fn serve(stream: TcpStream, delay: Duration, done: &Done) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut stream = BufReader::new(stream);
    loop {
        let (path, body) = request(&mut stream)?;
        std::thread::sleep(if path == "/hang" { HANG } else { delay });
        let answer = match path.as_str() {
            "/translate" => task_set(),
            "/factor" => json!({"topic": "priority", "advice": "10", "reason": "bench"}),
            "/gate" | "/hang" => json!({"decision": "pass", "reason": ""}),
            _ => {
                let mut job: Value = serde_json::from_slice::<Value>(&body).ok()?["job"].take();
                job["metadata"]["annotations"][&path[1..]] = json!("yes");
                job
            }
        };
        let text = answer.to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", text.len());
        stream.get_mut().write_all(format!("{head}{text}").as_bytes()).ok()?;
        if path == "/bind" {
            done.add();
        }
    }
}

fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    if stream.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((path, body))
}

fn task_set() -> Value {
    json!({
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {},
        "spec": {"roles": [{
            "name": "worker", "replicas": 1, "completionPolicy": {"maxFailed": 1, "minSucceeded": 1},
            "template": {"spec": {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}]}},
        }]},
    })
}

fn job(kind: &str) -> String {
    let job = json!({"apiVersion": "v1", "kind": kind, "command": ["true"]});
    json!({"userID": "u1", "jobName": "bench", "jobKind": kind, "header": {"team": "x"}, "job": job}).to_string()
}

/// A server whose only place is taken, so that what is submitted waits.
fn busy(tools: &Tools, dir: &std::path::Path) -> Outcome<Server> {
    let server = Server::start(tools, dir, &["--parallelism", "1"])?;
    let sleep = json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "busy"},
        "spec": {"entrypoint": "main", "templates": [
            {"name": "main", "container": {"image": "busybox", "command": ["sleep", "600"]}},
        ]},
    }});
    Client::connect(server.address)?.ask("POST", RUNS, &sleep.to_string())?;
    Ok(server)
}

fn register(client: &mut Client, feature: &Value) -> Outcome<()> {
    let name = feature["name"].as_str().unwrap_or_default();
    for (method, path, body) in [
        ("POST", FEATURES.to_owned(), feature.to_string()),
        ("PUT", format!("{FEATURES}/turn-on/{name}"), String::new()),
    ] {
        good(&client.ask(method, &path, &body)?)?;
    }
    Ok(())
}

fn good(answer: &[u8]) -> Outcome<()> {
    let answer: Value = serde_json::from_slice(answer)?;
    match answer["code"].as_str() {
        Some("OPERATION_SUCCEEDED") => Ok(()),
        _ => Err(format!("refused: {answer}").into()),
    }
}

pub(super) fn walk(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let mut lines = Vec::new();
    for (delay, goal) in [(10, 0.8), (0, 0.2)] {
        lines.extend(rate(Duration::from_millis(delay), goal, size, tools)?);
    }
    lines.push(beside_hanging(size, tools)?);
    Ok(lines)
}

/// How fast jobs walk, beside the bare calls.
fn rate(delay: Duration, goal: f64, size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let count = size.of(2000, 200);
    let (mut ratios, mut ours, mut yards, mut cpu) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.turns(3, 1) {
        let plugins = Plugins::start(delay)?;
        let asked = json!({"factors": {}, "header": {"jobID": "j"}, "job": task_set()}).to_string();
        let calls = count * PLUGINS;
        let bare = crowd(plugins.address, calls, IN_FLIGHT, ("POST", "/decorate", &asked))?;
        let dir = tools.fresh()?;
        let server = busy(tools, dir.path())?;
        register(&mut Client::connect(server.address)?, &plugins.feature())?;
        let used = server.cpu()?;
        let own = submit(&server, &plugins.done, count)?;
        cpu.push(1e6 * (seconds(server.cpu()?) - seconds(used)) / f64::from(count));
        server.stop()?;
        let (own, bare) = (f64::from(calls) / seconds(own), f64::from(calls) / seconds(bare));
        ratios.push(own / bare);
        ours.push(own);
        yards.push(bare);
    }
    let row = format!("walk, {IN_FLIGHT} jobs in flight, plugins take {} ms", delay.as_millis());
    let calls = |values: Vec<f64>| format!("{:.0}/s", median(values));
    Ok(vec![
        Line {
            row: row.clone(),
            what: "calls of plugins / the same calls by themselves",
            ours: calls(ours),
            yardstick: calls(yards),
            value: median(ratios),
            unit: "",
            goal: Some(Goal::AtLeast(goal)),
        },
        Line {
            row,
            what: "CPU of the server a job",
            ours: String::new(),
            yardstick: String::new(),
            value: median(cpu),
            unit: "µs",
            goal: None,
        },
    ])
}

/// Submits so many jobs, so many in flight; the time until all have walked.
fn submit(server: &Server, done: &Done, count: u32) -> Outcome<Duration> {
    let (sent, before, body) = (AtomicU32::new(0), done.count(), job("Form"));
    let began = Instant::now();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| -> Outcome<()> {
                    let mut client = Client::connect(server.address)?;
                    loop {
                        let number = sent.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return Ok(());
                        }
                        done.wait(before + (number + 1).saturating_sub(IN_FLIGHT))?;
                        good(&client.ask("POST", JOBS, &body)?)?;
                    }
                })
            })
            .collect();
        clients.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| Err("a client panicked".into())))
    })?;
    done.wait(before + count)?;
    Ok(began.elapsed())
}

/// How long single jobs walk while a gate hangs that others meet.
fn beside_hanging(size: Size, tools: &Tools) -> Outcome<Line> {
    let count = size.of(300, 20);
    let plugins = Plugins::start(Duration::ZERO)?;
    let dir = tools.fresh()?;
    let server = busy(tools, dir.path())?;
    let mut client = Client::connect(server.address)?;
    register(&mut client, &plugins.feature())?;
    let hanging = json!({
        "name": "hang", "author": "bench",
        "jobSelector": {"conditions": [{"name": "hang", "key": "jobKind", "expect": "TaskSet"}], "expression": "hang"},
        "plugins": [{"pluginType": "AccessGate", "callAddress": format!("http://{}/hang", plugins.address)}],
    });
    register(&mut client, &hanging)?;
    let alone = |client: &mut Client| -> Outcome<f64> {
        let mut times = Vec::new();
        for turn in 0..count + 5 {
            let (before, began) = (plugins.done.count(), Instant::now());
            good(&client.ask("POST", JOBS, &job("Form"))?)?;
            plugins.done.wait(before + 1)?;
            // The first ones find everything cold.
            if turn >= 5 {
                times.push(seconds(began.elapsed()));
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() * 99 / 100])
    };
    let calm = alone(&mut client)?;
    let held = json!({"userID": "u2", "jobName": "held", "jobKind": "TaskSet", "job": task_set()}).to_string();
    for _ in 0..size.of(200, 20) {
        good(&client.ask("POST", JOBS, &held)?)?;
    }
    let beside = alone(&mut client)?;
    server.stop()?;
    let millis = |value: f64| format!("{:.2} ms", 1e3 * value);
    Ok(Line {
        row: "walk".to_owned(),
        what: "p99 of a job's walk beside a plugin that hangs / without",
        ours: millis(beside),
        yardstick: millis(calm),
        value: beside / calm,
        unit: "",
        goal: Some(Goal::AtMost(1.1)),
    })
}
