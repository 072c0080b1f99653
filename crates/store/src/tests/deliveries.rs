//! Deliveries: of the events for one plugin and run one is next, in their order, whatever becomes of the others.

use super::*;
use crate::{Delivery, DeliveryCount, DeliveryFilter, DeliveryStatus};

fn delivery(plugin: &str, run: &str, sequence: u32) -> Delivery {
    Delivery {
        event: format!("{plugin}-{run}-{sequence}"),
        plugin: plugin.to_owned(),
        run: run.to_owned(),
        job: run.to_owned(),
        namespace: "default".to_owned(),
        sequence,
        state: "running".to_owned(),
        body: b"{}".to_vec(),
        created: Time(1),
        due: Time(1),
        tries: 0,
        status: DeliveryStatus::Behind,
        reason: String::new(),
    }
}

fn put(plugin: &str, run: &str, sequence: u32) -> Change {
    Change::PutDelivery(Box::new(delivery(plugin, run, sequence)))
}

fn next(store: &Store, plugin: &str) -> Vec<String> {
    let found = store.reader().unwrap().next_deliveries(plugin, 100).unwrap();
    found.into_iter().map(|delivery| delivery.event).collect()
}

#[test]
fn events_of_a_run_go_out_one_after_the_other_and_no_run_waits_for_another() {
    let (dir, store) = store();
    let batch = [put("a", "x", 1), put("a", "x", 2), put("a", "y", 1), put("b", "x", 1), put("a", "x", 3)];
    store.commit_wait(Batch::from_iter(batch)).unwrap();
    assert_eq!(next(&store, "a"), ["a-x-1", "a-y-1"]);
    assert_eq!(next(&store, "b"), ["b-x-1"]);
    // The same event again is the same event.
    store.commit_wait(put("a", "x", 1).into()).unwrap();
    store.commit_wait(Change::DeleteDelivery { event: "a-x-1".to_owned() }.into()).unwrap();
    store.commit_wait(Change::DeleteDelivery { event: "a-x-1".to_owned() }.into()).unwrap();
    assert_eq!(next(&store, "a"), ["a-x-2", "a-y-1"]);
    store.close().unwrap();

    let store = Store::open(dir.path()).unwrap();
    assert_eq!(next(&store, "a"), ["a-x-2", "a-y-1"], "also after a restart");
    let retry = Change::RetryDelivery { event: "a-x-2".to_owned(), due: Time(9), reason: "busy".to_owned() };
    store.commit_wait(retry.into()).unwrap();
    assert_eq!(next(&store, "a"), ["a-y-1", "a-x-2"], "those first that are due first");
    let waiting = store.reader().unwrap().delivery("a-x-2").unwrap().unwrap();
    assert_eq!((waiting.tries, waiting.due, waiting.reason.as_str()), (1, Time(9), "busy"));
}

#[test]
fn a_dead_letter_keeps_nobody_back_and_can_be_sent_again() {
    let (_dir, store) = store();
    store.commit_wait(Batch::from_iter((1..=3).map(|at| put("a", "x", at)))).unwrap();
    let bury = |event: &str, keep| {
        let event = event.to_owned();
        store.commit_wait(Change::BuryDelivery { event, reason: "no".to_owned(), keep }.into()).unwrap();
    };
    bury("a-x-1", 10);
    assert_eq!(next(&store, "a"), ["a-x-2"]);
    let reader = store.reader().unwrap();
    let dead = |reader: &Reader| {
        let filter = DeliveryFilter { dead: Some(true), plugin: Some("a".to_owned()), ..DeliveryFilter::default() };
        let found = reader.deliveries(&filter, 0, 10).unwrap().0;
        found.into_iter().map(|delivery| (delivery.event, delivery.tries, delivery.reason)).collect::<Vec<_>>()
    };
    assert_eq!(dead(&reader), [("a-x-1".to_owned(), 1, "no".to_owned())]);
    assert_eq!(reader.delivery_counts().unwrap(), [DeliveryCount { plugin: "a".to_owned(), pending: 2, dead: 1 }]);
    // It takes its place again behind the one that is on its way, and before the later ones.
    store.commit_wait(Change::ReplayDelivery { event: "a-x-1".to_owned(), due: Time(5) }.into()).unwrap();
    assert_eq!(next(&store, "a"), ["a-x-2"]);
    store.commit_wait(Change::DeleteDelivery { event: "a-x-2".to_owned() }.into()).unwrap();
    assert_eq!(next(&store, "a"), ["a-x-1"]);
    // Only so many are kept.
    bury("a-x-1", 1);
    bury("a-x-3", 1);
    assert_eq!(dead(&reader).len(), 1);
    store.commit_wait(Change::DropDeliveries { plugin: "a".to_owned() }.into()).unwrap();
    assert!(reader.delivery_counts().unwrap().is_empty());
}

#[test]
fn lists_go_on_where_the_last_page_ended() {
    let (_dir, store) = store();
    store.commit_wait(Batch::from_iter((1..=5).map(|at| put("a", "x", at)).chain([put("a", "y", 1)]))).unwrap();
    let reader = store.reader().unwrap();
    let filter = DeliveryFilter { job: Some("x".to_owned()), ..DeliveryFilter::default() };
    let (mut after, mut seen) = (0, Vec::new());
    loop {
        let (page, next) = reader.deliveries(&filter, after, 2).unwrap();
        seen.extend(page.into_iter().map(|delivery| delivery.sequence));
        match next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
}
