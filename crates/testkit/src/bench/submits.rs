//! The way of a submission through the registry without HTTP, and the store alone as its yardstick.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use octoflow_control::registry::{Registry, WriteOptions, kinds};
use octoflow_store::{Batch, Change, Store};

use super::{
    controller,
    measure::{Outcome, Tools},
    role::{Role, heard},
    row::{Line, median, seconds},
    rows::Size,
    shape,
};

/// Records that share one commit of the yardstick.
const GROUP: u32 = 100;

/// So many submissions from so many threads, each acknowledged when it is on disk. Tasks run nowhere.
pub(super) fn submits(count: u32, threads: u32, dir: &Path) -> Outcome<Duration> {
    let registry = Registry::new(controller::open(dir)?)?;
    registry.restore_all()?;
    let kind = kinds::of_key("Workflow").ok_or("there are no workflows")?;
    let manifest = shape::three_steps();
    let left = AtomicU32::new(count);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| -> Outcome<()> {
                    while take() {
                        registry
                            .create(kind, "default", manifest.clone(), &WriteOptions::default())
                            .map_err(|fault| fault.to_string())?;
                    }
                    Ok(())
                })
            })
            .collect();
        clients.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| Err("a client panicked".into())))
    })?;
    let took = began.elapsed();
    registry.close()?;
    Ok(took)
}

/// So many records of the size of a submission, a hundred in a commit.
pub(super) fn records(count: u32, dir: &Path) -> Outcome<Duration> {
    let store = Store::open(dir)?;
    let body = shape::three_steps().to_string().into_bytes();
    let began = Instant::now();
    for group in 0..count.div_ceil(GROUP) {
        let records = (0..GROUP).map(|at| Change::PutObject {
            kind: "ConfigMap".to_owned(),
            namespace: "default".to_owned(),
            name: format!("record-{}", group * GROUP + at),
            uid: format!("uid-{group}-{at}"),
            body: body.clone(),
        });
        store.commit_wait(records.collect::<Batch>())?;
    }
    let took = began.elapsed();
    store.close()?;
    Ok(took)
}

/// The row `submit`: what the controller itself lets through.
pub(super) fn submit(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let count = size.of(5000, 500);
    let (mut ratios, mut ours, mut yards, mut cpu) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.turns(3, 1) {
        let dir = tools.fresh()?;
        let yard = tools.role(&Role::Records { count, dir: dir.path().to_owned() })?;
        let yard = f64::from(count) / seconds(heard(&yard.said)?);
        let dir = tools.fresh()?;
        let own = tools.role(&Role::Submits { count, threads: 16, dir: dir.path().to_owned() })?;
        let rate = f64::from(count) / seconds(heard(&own.said)?);
        ratios.push(rate / yard);
        ours.push(rate);
        yards.push(yard);
        cpu.push(1e6 * seconds(own.cpu) / f64::from(count));
    }
    let rate = |values: Vec<f64>| format!("{:.0}/s", median(values));
    Ok(vec![
        Line {
            row: "submit, 16 threads, tasks run nowhere".to_owned(),
            what: "submits / batched records of the store",
            ours: rate(ours),
            yardstick: rate(yards),
            value: median(ratios),
            unit: "",
            // What must be reached is measured over HTTP, by `swarm`; this row shows the share of the controller in it.
            goal: None,
        },
        Line {
            row: "submit, 16 threads, tasks run nowhere".to_owned(),
            what: "CPU a workflow of three steps, from submission to archive",
            ours: String::new(),
            yardstick: String::new(),
            value: median(cpu),
            unit: "µs",
            goal: None,
        },
    ])
}
