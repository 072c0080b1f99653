//! Storage that fails while runs are open: callers get the reason, nothing acknowledged is lost, everything recovers by
//! itself, and watchers get every fact once.

use std::{
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use octoflow_control::{Claim, registry::Registry};
use octoflow_engine::engine::fold;
use octoflow_model::{RunFact, RunId};
use octoflow_store::faults::{Fault, install};

use super::*;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Retries while storage is unavailable.
fn insist<T>(mut ask: impl FnMut() -> Result<T, Error>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match ask() {
            Err(error) if error.is_outage() => {
                assert!(Instant::now() < until, "it never goes on: {error}");
                std::thread::sleep(Duration::from_millis(20));
            }
            answer => return answer.unwrap(),
        }
    }
}

/// All facts until the end.
fn all(facts: &Receiver<Vec<Fact>>) -> Vec<Fact> {
    let mut heard = Vec::new();
    loop {
        match facts.recv_timeout(PATIENCE) {
            Ok(more) => heard.extend(more),
            Err(RecvTimeoutError::Disconnected) => return heard,
            Err(RecvTimeoutError::Timeout) => panic!("nothing comes any more"),
        }
    }
}

fn claimed(name: &str, manifest: Value) -> Submit {
    let claim = Claim { scope: "test".to_owned(), key: name.to_owned(), fingerprint: b"print".to_vec() };
    Submit { claim: Some(claim), ..submit(name, manifest) }
}

#[test]
fn a_full_disk_turns_callers_away_and_everything_goes_on_when_there_is_room() {
    let disk = install();
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let (run, facts) = controller.submit_watched(submit("held", waiting())).unwrap();
    while controller.object(run).unwrap()["status"]["phase"] != "Running" {}

    disk.fail_all(Some(Fault::Full));
    let resume = || controller.command(run, Command::Resume { selector: None, supplied: Default::default() });
    let error = resume().unwrap_err();
    assert!(error.is_outage() && error.is_full(), "{error:?}");
    assert!(controller.submit(submit("another", steps(3))).unwrap_err().is_full());
    let object = controller.object(run).unwrap();
    assert_eq!(object["status"]["phase"], "Running", "what is on disk can be read: {object}");
    assert!(controller.explain(run).is_ok() && controller.metrics().is_ok());
    assert!(controller.supervisor().failure().is_none() && controller.stalled(PATIENCE).is_none());

    disk.fail_all(None);
    insist(|| match resume() {
        // A command answered with an error may have been carried out all the same.
        Err(Error::Refused(_)) => Ok(()),
        told => told,
    });
    let heard = all(&facts);
    assert!(matches!(heard.last(), Some(Fact::Run(RunFact::Ended { .. }))), "{:?}", heard.last());
    assert_eq!(fold(run, heard).unwrap().phase(), "Succeeded");
    let run = controller.submit(submit("another", steps(3))).unwrap();
    assert_eq!(finish(&controller, run)["status"]["phase"], "Succeeded");
    controller.close().unwrap();
}

/// One of every call that writes fails, in turn.
#[test]
fn whichever_write_fails_the_run_ends_well_and_its_watcher_hears_everything_once() {
    let disk = install();
    for fault in [Fault::Broken, Fault::Full] {
        // Not every call: those of the store itself are tried one by one in its own tests.
        for n in (1..).step_by(3) {
            let dir = tempfile::tempdir().unwrap();
            let controller = open(dir.path());
            disk.fail_nth(n, fault);
            let (run, facts) = match controller.submit_watched(claimed("w", steps(4))) {
                Ok((run, facts)) => (run, Some(facts)),
                // It may have been made without an answer; the key finds it again.
                Err(error) if error.is_outage() => (insist(|| controller.submit(claimed("w", steps(4)))), None),
                Err(error) => panic!("{fault:?} at {n}: {error}"),
            };
            match facts {
                Some(facts) => {
                    let heard = all(&facts);
                    // A run made by a request that was answered with an error has lost its watcher.
                    if !heard.is_empty() {
                        assert_eq!(fold(run, heard).unwrap().phase(), "Succeeded", "{fault:?} at {n}");
                    }
                }
                None => drop(insist(|| Ok(finish(&controller, run)))),
            }
            let object = insist(|| controller.object(run));
            assert_eq!(object["status"]["phase"], "Succeeded", "{fault:?} at {n}: {object}");
            assert_eq!(object["status"]["nodes"].as_object().unwrap().len(), 8, "{fault:?} at {n}");
            let met = disk.has_failed();
            disk.fail_all(None);
            assert!(controller.supervisor().failure().is_none());
            let closed = controller.close();
            assert!(closed.is_ok() || met, "{fault:?} at {n}: {closed:?}");
            let reader = Reader::open(dir.path()).unwrap();
            assert_eq!(reader.count(&octoflow_store::Filter::default()).unwrap(), 1, "{fault:?} at {n}: one run");
            if !met {
                assert!(n > 10, "{n} calls are too few");
                break;
            }
        }
    }
}

/// A step that makes an object, one that waits for it, and one that deletes it: the objects are ours, so an outage of
/// storage must only delay them.
#[test]
fn resource_templates_wait_for_storage_and_never_end_in_error() {
    let disk = install();
    let resource = |action: &str, more: Value| {
        let mut resource = json!({"action": action, "manifest":
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: made}, data: {k: v}}"});
        resource.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        resource
    };
    let manifest = json!({"spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[{"name": "a", "template": "make"}], [{"name": "b", "template": "look"}], [{"name": "c", "template": "drop"}]]},
        {"name": "make", "resource": resource("create", json!({}))},
        {"name": "look", "resource": resource("get", json!({"successCondition": "data.k == v"}))},
        {"name": "drop", "resource": resource("delete", json!({}))},
    ]}});
    for n in (2..).step_by(5) {
        let dir = tempfile::tempdir().unwrap();
        let controller = open(dir.path());
        disk.fail_nth(n, Fault::Full);
        let run = insist(|| controller.submit(claimed("w", manifest.clone())));
        insist(|| Ok(finish(&controller, run)));
        let object = insist(|| controller.object(run));
        let met = disk.has_failed();
        disk.fail_all(None);
        assert_eq!(object["status"]["phase"], "Succeeded", "at {n}: {object}");
        assert!(controller.store().reader().unwrap().object("ConfigMap", "default", "made").unwrap().is_none());
        drop(controller.close());
        if !met {
            assert!(n > 20, "{n} calls are too few");
            break;
        }
    }
}

#[test]
fn revisions_and_watches_go_on_from_what_is_on_disk() {
    let disk = install();
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new(open(dir.path())).unwrap();
    let map = |value: u32| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": value.to_string()}});
    registry.controller().put_object(map(0)).unwrap();
    let mut last = registry.revision().unwrap();
    for value in 1..20 {
        disk.fail_nth(u64::from(value % 7) + 1, Fault::Broken);
        insist(|| registry.controller().put_object(map(value)));
        disk.fail_all(None);
        let now = insist(|| registry.revision().map_err(|fault| panic!("{fault}")));
        assert!(now > last, "{now:?} after {last:?}");
        last = now;
        let body =
            insist(|| Ok(registry.controller().store().reader()?.object("ConfigMap", "default", "m")?)).unwrap().body;
        assert!(String::from_utf8(body).unwrap().contains(&format!("\"{value}\"")));
    }
    registry.close().unwrap();
}

#[test]
fn a_panic_on_the_writers_thread_ends_the_event_loop_and_the_owner_hears_it() {
    let dir = tempfile::tempdir().unwrap();
    let controller = open(dir.path());
    let (tell, told) = mpsc::channel();
    controller.supervisor().on_failure(move |failure| tell.send(failure.clone()).unwrap());
    controller.store().commit(Batch::new(), |_| panic!("a fault put there by the test"));
    let failure = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!(failure.thread, "event-loop");
    assert!(failure.to_string().contains("start octoflow again"), "{failure}");
    assert!(controller.stalled(PATIENCE).is_some());
    assert!(matches!(controller.object(RunId(1)), Err(Error::Gone | Error::UnknownRun(_))));
}
