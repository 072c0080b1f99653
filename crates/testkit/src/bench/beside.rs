//! The row `beside`: how long other people's requests take while one run of very many nodes unfolds and ends, against the
//! same requests to the same server while nothing else happens.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    measure::{Outcome, Tools},
    row::{Goal, Line, seconds},
    rows::Size,
    serve::Server,
    shape,
    swarm::RUNS,
    wire::Client,
};

/// The large run's namespace: the others ask about their own.
const LARGE: &str = "/api/v1/workflows/large";
/// Between two rounds of requests, so that the client is a neighbour and not the load.
const PAUSE: Duration = Duration::from_millis(3);
/// How long the server is measured without the large run.
const CALM: Duration = Duration::from_secs(8);
/// A large run that is not over by then never will be.
const PATIENCE: Duration = Duration::from_secs(600);

/// What one client saw, in milliseconds.
#[derive(Default)]
struct Seen {
    submits: Vec<f64>,
    lists: Vec<f64>,
}

impl Seen {
    fn of(list: bool, seen: &Self) -> &[f64] {
        if list { &seen.lists } else { &seen.submits }
    }
}

pub(super) fn beside(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let items = size.of(1_000_000, 20_000);
    let mut lines = Vec::new();
    for (kind, manifest) in [("skipped", shape::loop_of_skipped(items)), ("suspended", shape::loop_of_suspended(items))]
    {
        lines.extend(once(kind, items, &manifest, tools)?);
    }
    Ok(lines)
}

fn once(kind: &str, items: u32, manifest: &Value, tools: &Tools) -> Outcome<Vec<Line>> {
    let dir = tools.fresh()?;
    let server = Server::start(tools, dir.path(), &["--parallelism", "2"])?;
    let mut client = Client::connect(server.address)?;
    let until = Instant::now() + CALM;
    let calm = watch(&mut client, || Ok(Instant::now() > until))?;

    client.ask("POST", LARGE, &json!({"workflow": manifest}).to_string())?;
    let mut observer = Observer::new(server.address)?;
    let unfolding = watch(&mut client, || Ok(observer.nodes()? >= u64::from(items) || observer.is_over()?))?;
    let mut phases = vec![("while it unfolds", unfolding)];
    if !observer.is_over()? {
        let began = Instant::now();
        client.ask("PUT", &format!("{LARGE}/large/terminate"), "{}")?;
        let answered = 1e3 * seconds(began.elapsed());
        phases.push(("while it ends", watch(&mut client, || observer.is_over())?));
        phases.push(("its terminate", Seen { submits: vec![answered], lists: Vec::new() }));
    }
    let (_, peak) = server.memory_kib()?;
    server.stop()?;

    let row = format!("beside, {items} {kind} items");
    let mut lines = Vec::new();
    for (phase, seen) in &phases {
        for (what, list) in [("p99 of submits / calm", false), ("p99 of lists / calm", true)] {
            let (own, still) = (Seen::of(list, seen), Seen::of(list, &calm));
            if own.is_empty() {
                continue;
            }
            lines.push(Line {
                row: format!("{row}, {phase}"),
                what,
                ours: told(own),
                yardstick: told(still),
                value: part(own, 0.99) / part(still, 0.99),
                unit: "",
                goal: (own.len() > 1).then_some(Goal::AtMost(2.0)),
            });
        }
    }
    lines.push(Line {
        row,
        what: "most memory of the server",
        ours: String::new(),
        yardstick: String::new(),
        value: peak as f64 * 1024.0 / 1e6,
        unit: "MB",
        goal: None,
    });
    Ok(lines)
}

/// Submits and lists in turn until it is enough.
fn watch(client: &mut Client, mut enough: impl FnMut() -> Outcome<bool>) -> Outcome<Seen> {
    let body = json!({"workflow": shape::nothing()}).to_string();
    let list = format!("{RUNS}?listOptions.limit=20");
    let mut seen = Seen::default();
    let began = Instant::now();
    let mut round = 0;
    loop {
        let asked = Instant::now();
        client.ask("POST", RUNS, &body)?;
        seen.submits.push(1e3 * seconds(asked.elapsed()));
        let asked = Instant::now();
        client.ask("GET", &list, "")?;
        seen.lists.push(1e3 * seconds(asked.elapsed()));
        thread::sleep(PAUSE);
        round += 1;
        // Looking costs something as well, so it is done now and then.
        if round % 20 == 0 && enough()? {
            return Ok(seen);
        }
        if began.elapsed() > PATIENCE {
            return Err("the large run is not over".into());
        }
    }
}

/// Asks how far the large run is.
struct Observer(Client);

impl Observer {
    fn new(server: SocketAddr) -> Outcome<Self> {
        Ok(Self(Client::connect(server)?))
    }

    fn status(&mut self) -> Outcome<Value> {
        let path = format!("{LARGE}?fields=items.status.phase,items.status.progress");
        let listed: Value = serde_json::from_slice(&self.0.ask("GET", &path, "")?)?;
        Ok(listed["items"][0]["status"].clone())
    }

    /// How many nodes with work it has, whatever became of them.
    fn nodes(&mut self) -> Outcome<u64> {
        let status = self.status()?;
        let progress = status["progress"].as_str().and_then(|text| text.split_once('/'));
        Ok(progress.and_then(|(_, all)| all.parse().ok()).unwrap_or_default())
    }

    fn is_over(&mut self) -> Outcome<bool> {
        Ok(!matches!(self.status()?["phase"].as_str(), None | Some("" | "Pending" | "Running")))
    }
}

fn part(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

fn told(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("p99 {:.1} ms, most {most:.0} ms, {} times", part(values, 0.99), values.len())
}
