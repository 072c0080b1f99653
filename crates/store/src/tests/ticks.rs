//! Ticks: one time, one run. Expiry times: ordered, and deleted with the run.

use super::*;
use crate::Tick;

fn tick(nominal: i64, run: Option<u64>) -> Change {
    let nominal = Time::from_secs(nominal);
    Change::Tick(Box::new(Tick {
        uid: "u".to_owned(),
        nominal,
        at: nominal,
        run: run.map(RunId),
        outcome: "x".to_owned(),
    }))
}

#[test]
fn a_time_that_was_dealt_with_refuses_the_run_that_comes_with_it() {
    let (dir, store) = store();
    store.commit_wait(Batch::from_iter([new_run(1, "a"), tick(60, Some(1))])).unwrap();
    let refused = store.commit_wait(Batch::from_iter([new_run(2, "b"), append(2, 0, &["{}"]), tick(60, Some(2))]));
    assert!(matches!(refused, Err(Error::TickTaken { .. })), "{refused:?}");
    let reader = store.reader().unwrap();
    assert!(reader.run(RunId(2)).unwrap().is_none(), "nothing of the batch is there");
    store.close().unwrap();

    let store = Store::open(dir.path()).unwrap();
    assert!(matches!(store.commit_wait(tick(60, None).into()), Err(Error::TickTaken { .. })), "also after a restart");
    store.commit_wait(tick(120, None).into()).unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(reader.tick("u", Time::from_secs(60)).unwrap().unwrap().run, Some(RunId(1)));
    assert_eq!(reader.newest_tick("u", Time::from_secs(119)).unwrap(), Some(Time::from_secs(60)));
    assert_eq!(reader.newest_tick("u", Time::from_secs(59)).unwrap(), None);
    let all: Vec<i64> = reader.ticks("u", 10).unwrap().iter().map(|tick| tick.nominal.seconds()).collect();
    assert_eq!(all, [120, 60]);
    assert_eq!(reader.tick_owners().unwrap(), ["u"]);
    store.commit_wait(Change::DropTicks { uid: "u".to_owned() }.into()).unwrap();
    assert!(reader.tick_owners().unwrap().is_empty());
}

#[test]
fn the_oldest_ticks_are_forgotten_in_the_order_they_came() {
    let (_dir, store) = store();
    // As after a clock that was far ahead for a moment.
    store.commit_wait(tick(9_000_000, None).into()).unwrap();
    for chunk in 0..10 {
        store.commit_wait((0..1000).map(|at| tick(chunk * 1000 + at, None)).collect()).unwrap();
    }
    let reader = store.reader().unwrap();
    assert!(reader.tick("u", Time::from_secs(9_000_000)).unwrap().is_none());
    assert!(reader.tick("u", Time::from_secs(0)).unwrap().is_some());
    assert_eq!(reader.ticks("u", 20_000).unwrap().len(), 10_000);
}

#[test]
fn runs_that_are_to_go_come_in_order_and_leave_with_the_run() {
    let (_dir, store) = store();
    let at = |seconds| Some(Time::from_secs(seconds));
    let changes = [
        new_run(1, "a"),
        new_run(2, "b"),
        new_run(3, "c"),
        Change::Expire { run: RunId(1), due: at(30) },
        Change::Expire { run: RunId(2), due: at(10) },
        Change::Expire { run: RunId(3), due: at(20) },
        Change::Expire { run: RunId(1), due: at(5) },
        Change::Expire { run: RunId(3), due: None },
    ];
    store.commit_wait(Batch::from_iter(changes)).unwrap();
    let reader = store.reader().unwrap();
    let due = || reader.expiries(10).unwrap().into_iter().map(|(_, run)| run.0).collect::<Vec<_>>();
    assert_eq!(due(), [1, 2]);
    store.commit_wait(Change::DeleteRun { run: RunId(1) }.into()).unwrap();
    assert_eq!(due(), [2]);
    store.commit_wait(Batch::from_iter([finish(2, "{}"), finish(3, "{}")])).unwrap();
    let finished = reader.finished("Workflow", "Succeeded", 1).unwrap();
    assert_eq!(finished.iter().map(|row| row.run.0).collect::<Vec<_>>(), [2]);
    assert_eq!(reader.count_finished("Workflow", "Succeeded").unwrap(), 2);
    assert_eq!(reader.count_finished("Workflow", "Failed").unwrap(), 0);
}
