//! Life hooks against a real HTTP listener: what each hears of which run, in which order, and what it takes until it has.

mod listener;

use std::{path::Path, time::Duration};

use octoflow_control::{
    hooks::{Delivery, DeliveryFilter, DeliveryStatus},
    registry::{DeleteOptions, Fault, Propagation, Registry, WriteOptions},
};
use octoflow_engine::Command;
use octoflow_store::{Batch, Change, Store};
use serde_json::{Value, json};

use super::registry::{create, held, kind, quick, registry, until};
use listener::{Heard, Listener};

/// Keeps an enabled life hook as the feature `name` of `me`, for whoever opens the directory next.
fn hook(dir: &Path, name: &str, url: &str, more: Value) {
    let mut spec = json!({
        "author": "me", "enabled": true, "jobSelector": {"expression": "*"},
        "plugins": [{"pluginType": "LifeHook", "callAddress": url, "timeoutSeconds": 1,
                     "jobSelector": {"expression": "*", "states": ["*"]}}],
    });
    if let Some(plugin) = more["plugin"].as_object() {
        spec["plugins"][0].as_object_mut().unwrap().extend(plugin.clone());
    }
    let put = |kind: &str, body: &Value| Change::PutObject {
        kind: kind.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        body: body.to_string().into_bytes(),
    };
    let mut batch = Batch::new();
    batch.push(put("Feature", &json!({"kind": "Feature", "metadata": {"name": name}, "spec": spec})));
    if !more["credentials"].is_null() {
        batch.push(put("FeatureSecrets", &more["credentials"]));
    }
    let store = Store::open(dir).unwrap();
    store.commit_wait(batch).unwrap();
    store.close().unwrap();
}

fn command(registry: &Registry, name: &str, command: Command) {
    let named = registry.find_run(kind("Workflow"), "default", name).unwrap();
    registry.controller().command(named.row.run, command).unwrap();
}

fn deliveries(registry: &Registry) -> Vec<Delivery> {
    registry.deliveries(&DeliveryFilter::default(), 0, 1000).unwrap().0
}

fn all_delivered(registry: &Registry) {
    until(registry, || deliveries(registry).is_empty());
}

fn states(heard: &[Heard]) -> Vec<String> {
    heard.iter().map(|heard| heard.body["currentState"].as_str().unwrap().to_owned()).collect()
}

fn suspend() -> Command {
    Command::Suspend
}

fn resume() -> Command {
    Command::Resume { selector: None, supplied: Default::default() }
}

#[test]
fn pl_36_a_hook_on_all_states_hears_each_once_and_the_next_only_after_the_acknowledgement() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|_| (200, "OK\n".to_owned()));
    hook(dir.path(), "f", &listener.url(), json!({}));
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("w")).unwrap();
    let heard = listener.wait(3);
    assert_eq!(states(&heard), ["waiting", "running", "succeeded"]);
    all_delivered(&registry);
    assert_eq!(listener.heard().len(), 3, "each exactly once");
    assert!(!listener.overlapped(), "the next only after the acknowledgement of the one before");
    for (number, heard) in heard.iter().enumerate() {
        let body = &heard.body;
        assert_eq!((&body["id"], &body["jobID"], &body["kind"]), (&json!("w"), &json!("w"), &json!("Workflow")));
        assert_eq!(body["current_state"], body["currentState"]);
        assert_eq!((&body["namespace"], &body["occurrence"]), (&json!("default"), &json!(number + 1)));
        assert!(body["currentTime"].as_str().is_some_and(|time| time.contains('T')), "{body}");
        assert_eq!(heard.header("idempotency-key"), body["eventID"].as_str());
    }
    let ids: std::collections::BTreeSet<&str> =
        heard.iter().map(|heard| heard.body["eventID"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3);
    let totals = registry.hooks().unwrap()[0].totals;
    assert_eq!((totals.delivered, totals.retried, totals.dead), (3, 0, 0));
}

#[test]
fn pl_37_re_twice_then_ok_is_three_deliveries_with_growing_pauses_and_then_the_next_state() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|number| (200, if number < 2 { "RE" } else { "ok" }.to_owned()));
    hook(dir.path(), "f", &listener.url(), json!({}));
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("w")).unwrap();
    let heard = listener.wait(5);
    assert_eq!(states(&heard), ["waiting", "waiting", "waiting", "running", "succeeded"]);
    let ids: Vec<&Value> = heard.iter().map(|heard| &heard.body["eventID"]).collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2] && ids[2] != ids[3], "a repetition has the id of its event");
    let (first, second) = (heard[1].at - heard[0].at, heard[2].at - heard[1].at);
    assert!(first >= Duration::from_millis(990) && second >= Duration::from_millis(1990), "{first:?}, {second:?}");
}

#[test]
fn pl_40_a_hook_on_waiting_hears_of_every_submission() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|_| (200, "OK".to_owned()));
    let states = json!({"plugin": {"jobSelector": {"expression": "*", "states": ["waiting"]}}});
    hook(dir.path(), "f", &listener.url(), states);
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("a")).unwrap();
    create(&registry, "Workflow", held("b")).unwrap();
    let mut jobs: Vec<(String, String)> = listener
        .wait(2)
        .iter()
        .map(|heard| {
            assert_eq!(heard.body["current_state"], "waiting");
            (heard.body["id"].as_str().unwrap().to_owned(), heard.body["currentState"].as_str().unwrap().to_owned())
        })
        .collect();
    jobs.sort();
    assert_eq!(jobs, [("a".to_owned(), "waiting".to_owned()), ("b".to_owned(), "waiting".to_owned())]);
    all_delivered(&registry);
    assert_eq!(listener.heard().len(), 2);
}

#[test]
fn every_suspension_is_an_event_of_its_own_and_so_is_the_stop_of_a_suspended_run() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|_| (200, "OK".to_owned()));
    hook(dir.path(), "f", &listener.url(), json!({}));
    let registry = registry(dir.path());
    let mut workflow = held("w");
    let gate = json!([{"name": "second", "template": "gate"}]);
    workflow["spec"]["templates"][0]["steps"].as_array_mut().unwrap().insert(1, gate);
    create(&registry, "Workflow", workflow).unwrap();
    listener.wait(2);
    for next in [suspend(), resume(), suspend(), suspend(), Command::Stop] {
        command(&registry, "w", next);
    }
    let heard = listener.wait(6);
    assert_eq!(states(&heard), ["waiting", "running", "suspended", "running", "suspended", "stopped"]);
    let occurrences: Vec<i64> = heard.iter().map(|heard| heard.body["occurrence"].as_i64().unwrap()).collect();
    assert_eq!(occurrences, [1, 2, 3, 4, 5, 6]);
    all_delivered(&registry);
}

#[test]
fn a_hook_on_running_and_failed_hears_of_a_run_that_failed_without_ever_running() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|_| (200, "OK".to_owned()));
    let states_wanted = json!({"plugin": {"jobSelector": {"expression": "*", "states": ["running", "failed"]}}});
    hook(dir.path(), "f", &listener.url(), states_wanted);
    let registry = registry(dir.path());
    // The map with the limit does not exist, so it never begins.
    let mut workflow = quick("w");
    workflow["spec"]["synchronization"] = json!({"semaphores": [{"configMapKeyRef": {"name": "none", "key": "k"}}]});
    create(&registry, "Workflow", workflow).unwrap();
    let heard = listener.wait(1);
    assert_eq!(states(&heard), ["failed"]);
    all_delivered(&registry);
    assert_eq!(listener.heard().len(), 1);
}

#[test]
fn ex_and_4xx_are_dead_letters_that_hold_nothing_up_and_can_be_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|number| match number {
        0 => (200, "EX".to_owned()),
        1 => (404, "nothing here, password=hunter2".to_owned()),
        _ => (200, "OK".to_owned()),
    });
    hook(dir.path(), "f", &listener.url(), json!({}));
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("w")).unwrap();
    assert_eq!(states(&listener.wait(3)), ["waiting", "running", "succeeded"]);
    until(&registry, || deliveries(&registry).len() == 2);
    let dead = deliveries(&registry);
    assert!(dead.iter().all(|delivery| delivery.status == DeliveryStatus::Dead && delivery.tries == 1));
    assert_eq!(dead[0].reason, "the hook answered EX");
    assert_eq!(dead[1].reason, "the hook answered with status 404");
    let run = registry.find_run(kind("Workflow"), "default", "w").unwrap().row.run;
    let told: Vec<String> = registry.controller().explain(run).unwrap().into_iter().map(|one| one.reason).collect();
    assert!(told.iter().any(|why| why.contains("did not take `waiting`") && why.contains("hook replay")), "{told:?}");

    assert!(registry.replay_delivery(&dead[1].event).unwrap());
    let heard = listener.wait(4);
    assert_eq!(heard[3].body, heard[1].body, "the same event again");
    assert_eq!(registry.replay_dead("LifeHook.f.me").unwrap(), 1);
    listener.wait(5);
    all_delivered(&registry);
    assert!(!registry.replay_delivery(&dead[0].event).unwrap(), "it is no dead letter any more");
}

#[test]
fn what_is_tried_often_enough_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|_| (500, "OK".to_owned()));
    let twice = json!({"plugin": {"tries": 2, "jobSelector": {"expression": "*", "states": ["succeeded"]}}});
    hook(dir.path(), "f", &listener.url(), twice);
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("w")).unwrap();
    listener.wait(2);
    until(&registry, || deliveries(&registry).first().is_some_and(|one| one.status == DeliveryStatus::Dead));
    let dead = deliveries(&registry).remove(0);
    assert_eq!((dead.tries, dead.reason.as_str()), (2, "given up after 2 tries: the hook answered with status 500"));
    assert!(registry.drop_delivery(&dead.event).unwrap());
    assert!(deliveries(&registry).is_empty());
}

#[test]
fn a_hook_that_never_answers_delays_no_other_hook() {
    let dir = tempfile::tempdir().unwrap();
    let hanging = Listener::hanging();
    let listener = Listener::answering(|_| (200, "OK".to_owned()));
    hook(dir.path(), "hangs", &hanging.url(), json!({"plugin": {"timeoutSeconds": 30}}));
    hook(dir.path(), "nobody", "http://127.0.0.1:9/none", json!({}));
    hook(dir.path(), "works", &listener.url(), json!({}));
    let registry = registry(dir.path());
    let began = std::time::Instant::now();
    for at in 0..20 {
        create(&registry, "Workflow", quick(&format!("w{at}"))).unwrap();
    }
    listener.wait(60);
    assert!(began.elapsed() < Duration::from_secs(20), "it waited for the others: {:?}", began.elapsed());
}

#[test]
fn credentials_and_a_signature_go_along_and_are_kept_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|_| (200, "OK".to_owned()));
    let more = json!({"credentials": {"authorization": "dXNlcjpwdw==", "signing": "s3cret"},
                      "plugin": {"jobSelector": {"expression": "*", "states": ["succeeded"]}}});
    hook(dir.path(), "f", &listener.url(), more);
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("w")).unwrap();
    let heard = listener.wait(1).remove(0);
    assert_eq!(heard.header("authorization"), Some("Basic dXNlcjpwdw=="));
    let timestamp = heard.header("x-octoflow-timestamp").unwrap();
    assert!(timestamp.parse::<i64>().is_ok(), "{timestamp}");
    let signature = heard.header("x-octoflow-signature").unwrap();
    let hex = signature.strip_prefix("sha256=").unwrap();
    assert!(hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{signature}");
}

#[test]
fn a_redirect_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let other = Listener::answering(|_| (200, "OK".to_owned()));
    let listener = Listener::redirecting(&other.url());
    hook(dir.path(), "f", &listener.url(), json!({"plugin": {"tries": 1}}));
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("w")).unwrap();
    until(&registry, || deliveries(&registry).iter().filter(|one| one.status == DeliveryStatus::Dead).count() == 3);
    assert!(other.heard().is_empty());
}

#[test]
fn events_wait_while_a_feature_is_off_and_go_with_it_when_it_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|_| (503, String::new()));
    hook(dir.path(), "f", &listener.url(), json!({}));
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("w")).unwrap();
    listener.wait(1);
    registry.switch_feature("f", false, &WriteOptions::default()).unwrap();
    // Nobody who is off hears of what happens meanwhile.
    create(&registry, "Workflow", quick("later")).unwrap();
    until(&registry, || registry.find_run(kind("Workflow"), "default", "later").unwrap().row.archived);
    assert_eq!(deliveries(&registry).len(), 3, "those of `w` wait");
    listener.answer(|_| (200, "OK".to_owned()));
    registry.switch_feature("f", true, &WriteOptions::default()).unwrap();
    all_delivered(&registry);
    assert!(listener.heard().iter().all(|heard| heard.body["id"] == "w"));

    listener.answer(|_| (503, String::new()));
    create(&registry, "Workflow", quick("third")).unwrap();
    until(&registry, || deliveries(&registry).len() == 3);
    registry.delete_feature("f").unwrap();
    all_delivered(&registry);
}

#[test]
fn the_deletion_of_an_open_run_tells_that_it_was_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|_| (200, "OK".to_owned()));
    hook(dir.path(), "f", &listener.url(), json!({}));
    let registry = registry(dir.path());
    create(&registry, "Workflow", held("w")).unwrap();
    let options = DeleteOptions { propagation: Propagation::Background, ..DeleteOptions::default() };
    registry.delete(kind("Workflow"), "default", "w", &options).unwrap();
    assert_eq!(states(&listener.wait(3)), ["waiting", "running", "stopped"]);
    all_delivered(&registry);
    assert!(matches!(registry.get(kind("Workflow"), "default", "w"), Err(Fault::NotFound { .. })));
}

#[test]
fn what_was_not_acknowledged_is_delivered_by_the_next_process_under_the_same_id() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::answering(|_| (503, String::new()));
    let first = {
        hook(dir.path(), "f", &listener.url(), json!({}));
        let registry = registry(dir.path());
        create(&registry, "Workflow", held("w")).unwrap();
        let first = listener.wait(1).remove(0);
        registry.controller().close().unwrap();
        first
    };
    listener.answer(|_| (200, "OK".to_owned()));
    let registry = reopened(dir.path());
    let heard = listener.wait(listener.heard().len() + 2);
    let heard = &heard[heard.len() - 2..];
    assert_eq!(states(heard), ["waiting", "running"]);
    assert_eq!(heard[0].body, first.body, "the same event under the same id");
    all_delivered(&registry);
}

fn reopened(dir: &Path) -> Registry {
    registry(dir)
}
