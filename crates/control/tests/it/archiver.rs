//! Large runs come to their end beside everything else: their end is journaled, and the record that takes the journal's
//! place is packed elsewhere. Whatever comes in between finds the run as one that is over.

use octoflow_control::registry::{DeleteOptions, Registry, WriteOptions};
use octoflow_engine::argo::again::AgainOptions;
use octoflow_model::RunId;
use octoflow_store::faults::{Fault, install};

use super::{
    registry::{get, kind, until},
    *,
};

/// More nodes than the event loop packs by itself.
const LARGE: u32 = 2_100;

/// Skips so many items and suspends once for each gate.
fn large(gates: usize) -> Value {
    let mut steps =
        vec![json!([{"name": "a", "template": "leaf", "withSequence": {"count": LARGE}, "when": "1 == 2"}])];
    steps.extend((0..gates).map(|at| json!([{"name": format!("gate-{at}"), "template": "gate"}])));
    json!({"spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": steps},
        {"name": "gate", "suspend": {}},
        {"name": "leaf", "container": container()},
    ]}})
}

/// Every fact of a run that came to its end elsewhere.
fn journal(manifest: Value) -> (RunId, Vec<Fact>) {
    let dir = tempfile::tempdir().unwrap();
    let house = open(dir.path());
    let (run, facts) = house.submit_watched(submit("w", manifest)).unwrap();
    let facts = facts.iter().flatten().collect();
    house.close().unwrap();
    (run, facts)
}

/// A data directory in which the end of a run is journaled and its record was not packed any more.
fn interrupted(dir: &Path, manifest: Value) -> RunId {
    let (run, facts) = journal(manifest);
    assert!(matches!(facts.last(), Some(Fact::Run(RunFact::Ended { .. }))));
    let store = octoflow_store::Store::open(dir).unwrap();
    let lines: Vec<u8> =
        facts.iter().flat_map(|fact| [serde_json::to_vec(fact).unwrap(), b"\n".to_vec()].concat()).collect();
    let Fact::Run(RunFact::Submitted(submission)) = &facts[0] else { panic!("a journal begins with its submission") };
    let row = octoflow_store::RunRow::new(run, "default", "Workflow", "w", &submission.uid, submission.at);
    let count = u32::try_from(facts.len()).unwrap();
    let batch = [Change::NewRun(Box::new(row)), Change::AppendFacts { run, first: 0, count, lines }];
    store.commit_wait(Batch::from_iter(batch)).unwrap();
    store.close().unwrap();
    run
}

/// Waits until a large run with one gate stands in front of it.
fn at_gate(house: &House, run: RunId) {
    let nodes = |object: &Value| object["status"]["nodes"].as_object().map_or(0, |nodes| nodes.len());
    while nodes(&house.object(run).unwrap()) < LARGE as usize + 4 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn archived(house: &House, run: RunId) -> bool {
    house.store().reader().unwrap().run(run).unwrap().unwrap().archived
}

#[test]
fn a_large_run_ends_with_its_record_and_closing_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let house = open(dir.path());
    let runs: Vec<RunId> = (0..3).map(|at| house.submit(submit(&format!("w{at}"), large(0))).unwrap()).collect();
    let object = finish(&house, runs[0]);
    assert!(archived(&house, runs[0]), "a watch ends when the record is there");
    assert_eq!(object["status"]["phase"], "Succeeded");
    house.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    for run in runs {
        assert!(reader.run(run).unwrap().unwrap().archived);
        assert!(read::facts(&reader, run).is_err(), "the record took the place of the facts");
        let object = read::object(&reader, run).unwrap();
        assert_eq!(object["status"]["nodes"].as_object().unwrap().len(), LARGE as usize + 2);
    }
}

#[test]
fn a_record_that_a_crash_interrupted_is_packed_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let run = interrupted(dir.path(), large(0));
    let registry = Registry::new(open(dir.path())).unwrap();
    registry.take_up_all().unwrap();
    until(&registry, || archived(registry.house(), run));
    let object = get(&registry, "Workflow", "w").unwrap();
    assert_eq!(object["status"]["phase"], "Succeeded");
    registry.close().unwrap();
    // And so does whoever takes up this one alone.
    let dir = tempfile::tempdir().unwrap();
    let run = interrupted(dir.path(), large(0));
    let house = open(dir.path());
    let facts: Vec<Fact> = house.take_up(run).unwrap().iter().flatten().collect();
    assert!(matches!(facts.last(), Some(Fact::Run(RunFact::Ended { .. }))));
    assert!(archived(&house, run));
}

#[test]
fn whatever_is_asked_of_a_large_run_at_its_end_finds_it_over() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new(open(dir.path())).unwrap();
    let house = registry.house();
    // Asked at once, while the record is being packed or just there.
    for round in 0..8 {
        let name = format!("w{round}");
        let run = house.submit(submit(&name, large(1))).unwrap();
        at_gate(house, run);
        house.command(run, resume()).unwrap();
        match round % 4 {
            0 => {
                let refused = house.command(run, Command::Terminate);
                assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
            }
            1 => {
                let options = WriteOptions::default();
                let marked = registry.update(kind("Workflow"), "default", &name, &options, |before| {
                    let mut after = before.clone();
                    after["metadata"]["labels"]["mark"] = json!("me");
                    Ok(after)
                });
                assert_eq!(marked.unwrap()["metadata"]["labels"]["mark"], "me");
            }
            2 => {
                let retried = house.retry(run, &AgainOptions::default());
                assert!(matches!(retried, Err(Error::Again(_))), "a run that went well: {retried:?}");
            }
            _ => {
                registry.delete(kind("Workflow"), "default", &name, &DeleteOptions::default()).unwrap();
                until(&registry, || get(&registry, "Workflow", &name).is_none());
                continue;
            }
        }
        assert_eq!(finish(house, run)["status"]["phase"], "Succeeded");
        assert!(archived(house, run));
        assert_eq!(house.object(run).unwrap()["status"]["nodes"].as_object().unwrap().len(), LARGE as usize + 4);
    }
    registry.close().unwrap();
}

#[test]
fn storage_that_fails_while_a_record_is_packed_loses_nothing() {
    let disk = install();
    for n in (1..).step_by(2) {
        let dir = tempfile::tempdir().unwrap();
        let house = open(dir.path());
        let run = house.submit(submit("w", large(1))).unwrap();
        at_gate(&house, run);
        let facts = house.watch(run);
        disk.fail_nth(n, Fault::Full);
        // What was answered with an error may have been done all the same.
        while house.command(run, resume()).is_err_and(|error| error.is_outage()) {}
        let heard: Vec<Fact> = facts.iter().flatten().collect();
        let ends = heard.iter().filter(|fact| matches!(fact, Fact::Run(RunFact::Ended { .. }))).count();
        assert_eq!(ends, 1, "at {n}");
        let met = disk.has_failed();
        disk.fail_all(None);
        assert!(archived(&house, run), "at {n}");
        assert_eq!(house.object(run).unwrap()["status"]["phase"], "Succeeded", "at {n}");
        drop(house.close());
        if !met {
            assert!(n > 4, "{n} calls are too few");
            break;
        }
    }
}
