//! The rows of the table: what is measured, against what, and what it should be.

use std::path::Path;

use super::{
    beside, flood, flows,
    measure::{Outcome, Taken, Tools},
    oneshot, pages, replicas, restart,
    role::{Role, heard},
    row::{Goal, Line, median, seconds},
    sched, shape,
    spawn::TRUE,
    submits, swarm, walk,
};

/// Rows by the names they can be asked for.
pub const NAMES: [&str; 19] = [
    "proc-10k",
    "taskset",
    "volcano",
    "jobflow",
    "null-100k",
    "chain",
    "flat",
    "hello",
    "submit",
    "swarm",
    "one-shot",
    "idle",
    "logs",
    "watchers",
    "restart",
    "beside",
    "sched",
    "walk",
    "pages",
];

/// How large the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Full,
    /// Full sizes, one pair of each row: for two binaries that take turns.
    Once,
    /// For trying out; the numbers mean little.
    Quick,
}

impl Size {
    pub(super) fn of(self, full: u32, quick: u32) -> u32 {
        match self {
            Self::Full | Self::Once => full,
            Self::Quick => quick,
        }
    }

    /// How many pairs of yardstick and measurement a row has.
    pub(super) fn turns(self, full: u32, quick: u32) -> u32 {
        match self {
            Self::Full => full,
            Self::Once => 1,
            Self::Quick => quick,
        }
    }
}

/// Measures one row; it may have several lines.
pub fn run(name: &str, size: Size, tools: &Tools) -> Result<Vec<Line>, Box<dyn std::error::Error + Send + Sync>> {
    match name {
        "proc-10k" => {
            let mut lines = Vec::new();
            for (isolated, in_flight) in [(false, 4), (false, 16), (true, 4), (true, 16)] {
                lines.extend(processes(isolated, in_flight, size, tools)?);
            }
            Ok(lines)
        }
        "taskset" => replicas::replicas(size, tools),
        "volcano" => replicas::pods(size, tools),
        "jobflow" => flows::flows(size, tools),
        "null-100k" => null(size, tools),
        "chain" => chains(size, tools),
        "flat" => flat(size, tools),
        "hello" => hello(size, tools),
        "submit" => submits::submit(size, tools),
        "swarm" => swarm::swarm(size, tools),
        "one-shot" => oneshot::one_shot(size, tools),
        "idle" => oneshot::idle(size, tools),
        "logs" => flood::logs(size, tools),
        "watchers" => flood::watchers(size, tools),
        "restart" => restart::restart(size, tools),
        "beside" => beside::beside(size, tools),
        "sched" => sched::sched(size, tools),
        "walk" => walk::walk(size, tools),
        "pages" => pages::pages(size, tools),
        _ => Err(format!("there is no row `{name}`; choose from: {}", NAMES.join(", ")).into()),
    }
}

/// Many short processes, durable, output captured.
fn processes(isolated: bool, in_flight: u32, size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let count = size.of(10_000, 500);
    let manifest = tools.ground().join("processes.json");
    std::fs::write(&manifest, shape::layers(1, count).to_string())?;
    let (mut walls, mut cpus, mut ours, mut raws) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.turns(3, 1) {
        let raw = tools.role(&Role::Spawn { count, in_flight })?;
        let parallelism = in_flight.to_string();
        let isolation = if isolated { "overlay" } else { "none" };
        let own = octoflow(tools, &manifest, &["--parallelism", &parallelism, "--isolation", isolation])?;
        walls.push(seconds(raw.wall) / seconds(own.wall));
        cpus.push(seconds(own.cpu) / seconds(raw.cpu));
        ours.push(own);
        raws.push(raw);
    }
    let row = format!("proc-10k, {in_flight} in flight, {}", if isolated { "isolated" } else { "plain" });
    let rate = |taken: &[Taken]| {
        format!("{:.0}/s", median(taken.iter().map(|one| f64::from(count) / seconds(one.wall)).collect()))
    };
    let cost = |taken: &[Taken]| {
        format!("{:.2} ms", median(taken.iter().map(|one| 1e3 * seconds(one.cpu) / f64::from(count)).collect()))
    };
    Ok(vec![
        Line {
            row: row.clone(),
            what: "rate / raw spawn",
            ours: rate(&ours),
            yardstick: rate(&raws),
            value: median(walls),
            unit: "",
            goal: Some(Goal::AtLeast(if isolated { 0.5 } else { 0.6 })),
        },
        Line {
            row,
            what: "CPU / raw spawn",
            ours: cost(&ours),
            yardstick: cost(&raws),
            value: median(cpus),
            unit: "",
            goal: (!isolated).then_some(Goal::AtMost(1.5)),
        },
    ])
}

/// The controller alone: everything but processes.
fn null(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let (groups, steps) = (size.of(100, 5), size.of(1000, 200));
    let tasks = f64::from(groups * steps);
    let (mut costs, mut walls, mut yard) = (Vec::new(), Vec::new(), Vec::new());
    let sample = size.of(1000, 200);
    for _ in 0..size.turns(3, 1) {
        let raw = tools.role(&Role::Spawn { count: sample, in_flight: 4 })?;
        let dir = tools.fresh()?;
        let own = tools.role(&Role::Null { groups, steps, dir: dir.path().to_owned() })?;
        costs.push(1e6 * seconds(own.cpu) / tasks);
        walls.push(tasks / seconds(own.wall));
        yard.push(1e6 * seconds(raw.cpu) / f64::from(sample));
    }
    let cost = median(costs);
    Ok(vec![Line {
        row: "null-100k".to_owned(),
        what: "CPU a task",
        ours: format!("{:.0} tasks/s", median(walls)),
        yardstick: format!("{:.0} µs a raw spawn", median(yard)),
        value: cost,
        unit: "µs",
        goal: Some(Goal::AtMost(50.0)),
    }])
}

/// One after the other: what a hop costs when nothing can be done side by side.
fn chains(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let (short, long) = (size.of(100, 20), size.of(1000, 100));
    let mut lines = Vec::new();
    for isolated in [false, true] {
        let kind = if isolated { "isolated" } else { "plain" };
        let mut hops = Vec::new();
        for (count, pairs) in [(short, size.turns(5, 1)), (long, size.turns(3, 1))] {
            let (mut ratios, mut ours, mut yards) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..pairs {
                let dir = tools.fresh()?;
                let yard = tools.role(&Role::Hops { count, dir: dir.path().to_owned() })?;
                let yard = seconds(heard(&yard.said)?) / f64::from(count);
                let dir = tools.fresh()?;
                let role =
                    Role::Chain { count, isolated, dir: dir.path().to_owned(), octoflow: tools.octoflow().to_owned() };
                let own = seconds(heard(&tools.role(&role)?.said)?) / f64::from(count);
                ratios.push(own / yard);
                ours.push(own);
                yards.push(yard);
            }
            hops.push(median(ours.clone()));
            lines.push(Line {
                row: format!("chain-{count}, {kind}"),
                what: "hop / (spawn + fdatasync)",
                ours: millis(median(ours)),
                yardstick: millis(median(yards)),
                value: median(ratios),
                unit: "",
                goal: Some(Goal::AtMost(2.0)),
            });
        }
        lines.push(Line {
            row: format!("chain-{long} / chain-{short}, {kind}"),
            what: "hop / hop",
            ours: millis(hops[1]),
            yardstick: millis(hops[0]),
            value: hops[1] / hops[0],
            unit: "",
            goal: Some(Goal::AtMost(1.2)),
        });
    }
    Ok(lines)
}

/// What a node costs must not depend on how many there are.
fn flat(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let steps = size.of(1000, 100);
    let sizes = [1, 10, 100];
    let mut cpu: Vec<Vec<f64>> = vec![Vec::new(); sizes.len()];
    let mut peak: Vec<Vec<f64>> = vec![Vec::new(); sizes.len()];
    for _ in 0..size.turns(3, 1) {
        let dir = tools.fresh()?;
        let idle = tools.role(&Role::Null { groups: 1, steps: 1, dir: dir.path().to_owned() })?;
        for (at, groups) in sizes.into_iter().enumerate() {
            let dir = tools.fresh()?;
            let taken = tools.role(&Role::Null { groups, steps, dir: dir.path().to_owned() })?;
            let nodes = f64::from(groups * steps);
            cpu[at].push(1e6 * (seconds(taken.cpu) - seconds(idle.cpu)) / nodes);
            peak[at].push(taken.peak_kib as f64);
        }
    }
    let cpu: Vec<f64> = cpu.into_iter().map(median).collect();
    let peak: Vec<f64> = peak.into_iter().map(median).collect();
    let micros = |value: f64| format!("{value:.1} µs a node");
    let more = f64::from((sizes[2] - sizes[0]) * steps);
    let line = |at: usize, goal: bool| Line {
        row: format!("flat, {} nodes", sizes[at] * steps),
        what: "CPU / that of the smallest",
        ours: micros(cpu[at]),
        yardstick: micros(cpu[0]),
        value: cpu[at] / cpu[0],
        unit: "",
        goal: goal.then_some(Goal::AtMost(1.3)),
    };
    Ok(vec![
        line(1, true),
        line(2, true),
        Line {
            row: format!("flat, {} nodes", sizes[2] * steps),
            what: "memory a node",
            ours: format!("{:.0} MiB", peak[2] / 1024.0),
            yardstick: format!("{:.0} MiB", peak[0] / 1024.0),
            value: (peak[2] - peak[0]) * 1024.0 / 1000.0 / more,
            unit: "kB",
            goal: Some(Goal::AtMost(1.5)),
        },
    ])
}

/// The smallest workflow there is, against the command it runs.
fn hello(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let manifest = tools.ground().join("hello.json");
    std::fs::write(&manifest, shape::hello().to_string())?;
    let (mut above, mut ours, mut bares) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.turns(15, 3) {
        let bare = tools.measure::<&str>(Path::new(TRUE), &[])?;
        let own = octoflow(tools, &manifest, &[])?;
        above.push(1e3 * (seconds(own.wall) - seconds(bare.wall)));
        ours.push(seconds(own.wall));
        bares.push(seconds(bare.wall));
    }
    Ok(vec![Line {
        row: "hello".to_owned(),
        what: "above the bare command",
        ours: millis(median(ours)),
        yardstick: millis(median(bares)),
        value: median(above),
        unit: "ms",
        goal: Some(Goal::AtMost(60.0)),
    }])
}

/// `octoflow run` of a manifest in a data directory of its own.
fn octoflow(tools: &Tools, manifest: &Path, more: &[&str]) -> Outcome<Taken> {
    let dir = tools.fresh()?;
    let (data, file) = (dir.path().to_string_lossy().into_owned(), manifest.to_string_lossy().into_owned());
    let mut words = vec!["run", &file, "--data-dir", &data, "-o", "name", "--quiet"];
    words.extend(more);
    tools.measure(tools.octoflow(), &words)
}

fn millis(value: f64) -> String {
    format!("{:.2} ms", 1e3 * value)
}
