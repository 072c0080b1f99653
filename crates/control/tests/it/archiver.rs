//! Large runs are archived by a separate thread: their end is journaled, and the record that replaces the journal is
//! packed elsewhere. Anything that happens in between sees a finished run.

use octoflow_control::registry::{DeleteOptions, Registry, WriteOptions};
use octoflow_engine::argo::rerun::RerunOptions;
use octoflow_model::RunId;
use octoflow_store::faults::{Fault, install};

use super::{
    registry::{get, kind, until},
    *,
};

/// More nodes than the event loop packs by itself, and than a record in one part has.
const LARGE: u32 = 4_000;

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

/// Returns every fact of a run that was run to its end in another directory.
fn journal(manifest: Value) -> (RunId, Vec<Fact>) {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let (run, facts) = controller.submit_watched(submit("w", manifest)).unwrap();
    let facts = facts.iter().flatten().collect();
    controller.close().unwrap();
    (run, facts)
}

/// Makes a data directory in which the end of a run is journaled but its record was not packed.
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
fn at_gate(controller: &Controller, run: RunId) {
    let nodes = |object: &Value| object["status"]["nodes"].as_object().map_or(0, |nodes| nodes.len());
    while nodes(&controller.object(run).unwrap()) < LARGE as usize + 4 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn archived(controller: &Controller, run: RunId) -> bool {
    controller.store().reader().unwrap().run(run).unwrap().unwrap().archived
}

#[test]
fn a_large_run_ends_with_its_record_and_closing_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let runs: Vec<RunId> = (0..3).map(|at| controller.submit(submit(&format!("w{at}"), large(0))).unwrap()).collect();
    let object = finish(&controller, runs[0]);
    assert!(archived(&controller, runs[0]), "a watch ends when the record is there");
    assert_eq!(object["status"]["phase"], "Succeeded");
    controller.close().unwrap();
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
    registry.restore_all().unwrap();
    until(&registry, || archived(registry.controller(), run));
    let object = get(&registry, "Workflow", "w").unwrap();
    assert_eq!(object["status"]["phase"], "Succeeded");
    registry.close().unwrap();
    // Resuming only this run works the same.
    let dir = tempfile::tempdir().unwrap();
    let run = interrupted(dir.path(), large(0));
    let controller = open(dir.path());
    let facts: Vec<Fact> = controller.restore_run(run).unwrap().iter().flatten().collect();
    assert!(matches!(facts.last(), Some(Fact::Run(RunFact::Ended { .. }))));
    assert!(archived(&controller, run));
}

#[test]
fn whatever_is_asked_of_a_large_run_at_its_end_finds_it_over() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new(open(dir.path())).unwrap();
    let controller = registry.controller();
    // Asked at once, while the record is being packed or just there.
    for round in 0..8 {
        let name = format!("w{round}");
        let run = controller.submit(submit(&name, large(1))).unwrap();
        at_gate(controller, run);
        controller.command(run, resume()).unwrap();
        match round % 4 {
            0 => {
                let refused = controller.command(run, Command::Terminate);
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
                let retried = controller.retry(run, &RerunOptions::default());
                assert!(matches!(retried, Err(Error::Rerun(_))), "a run that went well: {retried:?}");
            }
            _ => {
                registry.delete(kind("Workflow"), "default", &name, &DeleteOptions::default()).unwrap();
                until(&registry, || get(&registry, "Workflow", &name).is_none());
                continue;
            }
        }
        assert_eq!(finish(controller, run)["status"]["phase"], "Succeeded");
        assert!(archived(controller, run));
        assert_eq!(controller.object(run).unwrap()["status"]["nodes"].as_object().unwrap().len(), LARGE as usize + 4);
    }
    registry.close().unwrap();
}

#[test]
fn storage_that_fails_while_a_record_is_packed_loses_nothing() {
    let disk = install();
    for n in (1..).step_by(5) {
        let dir = tempfile::tempdir().unwrap();
        let controller = open(dir.path());
        let run = controller.submit(submit("w", large(1))).unwrap();
        at_gate(&controller, run);
        let facts = controller.watch(run);
        disk.fail_nth(n, Fault::Full);
        // A command answered with an error may have been carried out all the same.
        while controller.command(run, resume()).is_err_and(|error| error.is_outage()) {}
        let heard: Vec<Fact> = facts.iter().flatten().collect();
        let ends = heard.iter().filter(|fact| matches!(fact, Fact::Run(RunFact::Ended { .. }))).count();
        assert_eq!(ends, 1, "at {n}");
        let met = disk.has_failed();
        disk.fail_all(None);
        assert!(archived(&controller, run), "at {n}");
        assert_eq!(controller.object(run).unwrap()["status"]["phase"], "Succeeded", "at {n}");
        drop(controller.close());
        if !met {
            assert!(n > 4, "{n} calls are too few");
            break;
        }
    }
}
