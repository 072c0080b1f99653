//! Tests of decisions about times that come, are missed, or come again.

use std::collections::BTreeSet;

use octoflow_model::{RunId, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::books::Driver;
use crate::cron::{Act, Skip, Timetable, child, wake_at};

fn hourly(more: Value) -> Driver {
    let mut spec = json!({"schedules": ["0 * * * *"]});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    Driver::new(spec)
}

#[test]
fn j05_forbid_skips_allow_adds_and_replace_ends_the_older() {
    let mut allow = hourly(json!({}));
    let mut forbid = hourly(json!({"concurrencyPolicy": "Forbid"}));
    let mut replace = hourly(json!({"concurrencyPolicy": "Replace"}));
    for cron in [&mut allow, &mut forbid, &mut replace] {
        cron.at("2026-05-01T09:59:30Z");
        cron.at("2026-05-01T10:00:00Z");
        cron.at("2026-05-01T10:59:30Z");
    }
    let eleven = Time::parse("2026-05-01T11:00:00Z").unwrap();
    assert_eq!(allow.look(eleven), [Act::Start { nominal: eleven, replaces: vec![] }]);
    assert_eq!(allow.active.len(), 2);
    assert_eq!(forbid.look(eleven), [Act::Skip { nominal: eleven, why: Skip::Busy }]);
    assert_eq!(replace.look(eleven), [Act::Start { nominal: eleven, replaces: vec![RunId(1)] }]);
    assert_eq!(replace.active, [RunId(2)]);
    // What was let pass stays so, also once there would be room.
    forbid.active.clear();
    forbid.restart();
    forbid.object["spec"]["startingDeadlineSeconds"] = json!(3600);
    assert_eq!(forbid.at("2026-05-01T11:00:20Z"), []);
}

#[test]
fn j10_a_missed_time_within_the_deadline_runs_once_on_start_up() {
    let mut cron = hourly(json!({"startingDeadlineSeconds": 600}));
    cron.at("2026-05-01T09:59:30Z");
    cron.at("2026-05-01T10:00:00Z");
    cron.restart();
    cron.at("2026-05-01T13:05:00Z");
    assert_eq!(cron.started(), ["10:00", "13:00"], "only the newest");
    cron.restart();
    assert_eq!(cron.at("2026-05-01T13:06:00Z"), [], "once");
    cron.restart();
    assert_eq!(cron.at("2026-05-01T14:11:00Z"), [], "too late");
    // A schedule that has never run has missed nothing, and without a deadline nothing is caught up.
    let mut new = hourly(json!({"startingDeadlineSeconds": 600}));
    assert_eq!(new.at("2026-05-01T13:05:00Z"), []);
    let mut without = hourly(json!({}));
    without.at("2026-05-01T09:59:30Z");
    without.at("2026-05-01T10:00:00Z");
    without.restart();
    assert_eq!(without.at("2026-05-01T11:00:20Z"), []);
}

#[test]
fn what_is_caught_up_can_be_chosen() {
    let missed = |policy: Value| {
        let mut cron = hourly(json!({"catchUp": policy}));
        cron.object["metadata"]["creationTimestamp"] = json!("2026-05-01T09:30:00Z");
        cron.at("2026-05-01T09:59:30Z");
        cron.at("2026-05-01T10:00:00Z");
        cron.restart();
        cron.at("2026-05-01T16:30:00Z");
        cron.started().split_off(1)
    };
    assert!(missed(json!({"policy": "skip"})).is_empty());
    assert_eq!(missed(json!({"policy": "latest"})), ["16:00"]);
    assert_eq!(missed(json!({"policy": "all", "limit": 3})), ["14:00", "15:00", "16:00"]);
    assert_eq!(missed(json!({"policy": "all"})).len(), 6);
    let mut late = hourly(json!({"catchUp": {"policy": "all"}, "startingDeadlineSeconds": 5400}));
    late.at("2026-05-01T03:15:00Z");
    assert_eq!(late.started(), ["02:00", "03:00"], "from its creation on, within the deadline");
}

#[test]
fn a_machine_that_slept_is_as_if_it_had_been_off() {
    let mut cron = hourly(json!({"startingDeadlineSeconds": 1800}));
    cron.at("2026-05-01T09:59:30Z");
    cron.at("2026-05-01T10:00:00Z");
    cron.at("2026-05-01T15:20:00Z");
    assert_eq!(cron.started(), ["10:00", "15:00"]);
}

#[test]
fn a_clock_that_goes_far_ahead_and_back_silences_nobody() {
    let mut cron = hourly(json!({}));
    cron.at("2026-05-01T09:59:30Z");
    cron.at("2026-05-01T10:00:00Z");
    cron.at("2031-05-01T10:00:00Z");
    cron.at("2026-05-01T10:00:30Z");
    cron.at("2026-05-01T10:59:30Z");
    cron.at("2026-05-01T11:00:00Z");
    assert_eq!(cron.started(), ["10:00", "10:00", "11:00"]);
    assert_eq!(cron.started[1].to_string(), "2031-05-01T10:00:00Z");
}

#[test]
fn ten_years_that_pass_at_once_start_a_bounded_number_of_runs() {
    for (catch_up, most) in
        [(json!(null), 2), (json!({"policy": "latest"}), 2), (json!({"policy": "all", "limit": 5}), 7)]
    {
        let mut cron = Driver::new(json!({"schedules": ["* * * * *"], "catchUp": catch_up}));
        cron.at("2026-05-01T09:59:30Z");
        cron.at("2026-05-01T10:00:00Z");
        let begun = cron.started.len();
        cron.at("2036-05-01T10:00:30Z");
        assert!(cron.started.len() - begun <= most, "{catch_up}: {}", cron.started.len() - begun);
        // Set back, no time comes twice.
        cron.at("2026-05-01T10:00:30Z");
        cron.at("2026-05-01T10:01:00Z");
        let mut times = cron.started.clone();
        times.sort_unstable();
        times.dedup();
        assert_eq!(times.len(), cron.started.len());
    }
}

#[test]
fn who_is_suspended_or_stopped_does_nothing_and_needs_no_waking() {
    let mut cron = hourly(json!({"suspend": true, "catchUp": {"policy": "all"}}));
    cron.at("2026-05-01T09:59:30Z");
    assert_eq!(cron.at("2026-05-01T10:00:00Z"), []);
    cron.object["spec"]["suspend"] = json!(false);
    cron.stopped = true;
    assert_eq!(cron.at("2026-05-01T11:00:00Z"), []);
    let timetable = Timetable::read(&cron.object).unwrap();
    let state = crate::cron::CronState {
        now: Time::parse("2026-05-01T11:30:00Z").unwrap(),
        looked: None,
        ledger: &cron.books,
        active: &[],
        succeeded: 0,
        failed: 0,
        last: None,
        stopped: false,
    };
    assert_eq!(wake_at(&timetable, &state), Time::parse("2026-05-01T12:00:00Z"));
    assert_eq!(wake_at(&timetable, &crate::cron::CronState { stopped: true, ..state }), None);
}

#[test]
fn j07_the_stop_condition_is_looked_at_before_anything_else() {
    let mut cron = hourly(json!({"stopStrategy": {"expression": "cronworkflow.succeeded >= 1"}}));
    cron.at("2026-05-01T09:59:30Z");
    cron.at("2026-05-01T10:00:00Z");
    cron.succeeded = 1;
    assert_eq!(cron.at("2026-05-01T11:00:00Z"), [Act::Stop]);
    assert_eq!(cron.at("2026-05-01T12:00:00Z"), []);
    let mut older = hourly(json!({"stopStrategy": {"condition": "cronworkflow.failed > 'x'"}}));
    assert!(matches!(older.at("2026-05-01T09:59:30Z").as_slice(), [Act::Trouble(_)]));
}

#[test]
fn a_condition_sees_the_schedule() {
    let tried = |when: &str| {
        let mut cron = hourly(json!({"when": when}));
        cron.object["metadata"]["labels"] = json!({"tier": "gold", "a.b/c": "d"});
        cron.at("2026-05-01T09:59:30Z");
        cron.at("2026-05-01T10:00:00Z");
        cron.at("2026-05-01T10:59:30Z");
        cron.at("2026-05-01T11:00:00Z");
        cron.started().len()
    };
    assert_eq!(
        tried(
            "{{= cronworkflow.lastScheduledTime == nil || (now() - cronworkflow.lastScheduledTime).Seconds() > 30 }}"
        ),
        2
    );
    assert_eq!(tried("{{= cronworkflow.lastScheduledTime == nil }}"), 1);
    assert_eq!(tried("{{cronworkflow.labels.tier}} == gold && {{cronworkflow.name}} == c"), 2);
    assert_eq!(tried("{{cronworkflow.labels.a.b/c}} == d && {{cronworkflow.namespace}} == default"), 2);
    assert_eq!(tried("{{= cronworkflow.annotations['tier'] == 'silver' }}"), 0);
    assert_eq!(tried("cronworkflow.failed < 5"), 2);
    let mut wrong = hourly(json!({"when": "{{cronworkflow.nothing}} == 1"}));
    wrong.at("2026-05-01T09:59:30Z");
    let acts = wrong.at("2026-05-01T10:00:00Z");
    assert!(matches!(&acts[0], Act::Trouble(why) if why.contains("`cronworkflow.nothing`")), "{acts:?}");
    assert!(matches!(acts[1], Act::Skip { why: Skip::Unwanted, .. }));
}

#[test]
fn j09_what_cannot_be_read_is_told_all_at_once() {
    let wrong = Timetable::read(&json!({"metadata": {"name": "c"}, "spec": {"schedules": ["99 * * * *", "@often"],
        "concurrencyPolicy": "Maybe", "catchUp": {"policy": "some"}}}))
    .unwrap_err();
    assert_eq!(wrong.len(), 4, "{wrong:?}");
    let many = Timetable::read(&json!({"spec": {"schedules": vec!["* * * * *"; 101]}})).unwrap_err();
    assert_eq!(many, ["a CronWorkflow has at most 100 schedules, not 101"]);
    let none = Timetable::read(&json!({"spec": {"schedules": [], "timezone": "Nowhere"}})).unwrap_err();
    assert_eq!(none.len(), 2, "{none:?}");
}

#[test]
fn a_child_says_whose_it_is_and_for_which_time() {
    let object = json!({"metadata": {"name": "c", "namespace": "n"}, "spec": {
        "workflowMetadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}}, "workflowSpec": {"entrypoint": "e"}}});
    let made = child(&object, "u", Time::parse("2026-05-01T10:00:00Z").unwrap());
    assert_eq!(made["metadata"]["name"], "c-1777629600");
    assert_eq!(made["metadata"]["namespace"], "n");
    assert_eq!(made["metadata"]["labels"], json!({"a": "b", "workflows.argoproj.io/cron-workflow": "c"}));
    let annotations = &made["metadata"]["annotations"];
    assert_eq!(annotations["workflows.argoproj.io/scheduled-time"], "2026-05-01T10:00:00Z");
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "u");
    assert_eq!(made["spec"], json!({"entrypoint": "e"}));
}

/// An event in the life of a scheduler.
#[derive(Clone, Debug)]
enum Event {
    Passes(i64),
    Jumps(i64),
    Restart,
    Ends,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (1..60_i64).prop_map(Event::Passes),
        2 => (-7200..7200_i64).prop_map(Event::Jumps),
        1 => (-40_000_000..40_000_000_i64).prop_map(Event::Jumps),
        2 => Just(Event::Restart),
        2 => Just(Event::Ends),
    ]
}

fn manifest() -> impl Strategy<Value = Value> {
    let schedules = prop::sample::select(vec![
        json!(["* * * * *"]),
        json!(["*/2 * * * *", "*/3 * * * *", "@every 45s"]),
        json!(["CRON_TZ=Europe/Zurich 30 2 * * *", "CRON_TZ=America/New_York */10 1-3 * * *"]),
        json!(["@every 1s"]),
    ]);
    let policies = prop::sample::select(vec!["Allow", "Forbid", "Replace"]);
    let catch_up = prop::sample::select(vec![
        json!(null),
        json!({"policy": "skip"}),
        json!({"policy": "latest"}),
        json!({"policy": "all", "limit": 20}),
    ]);
    (schedules, policies, catch_up, prop::option::of(1..100_000_u32)).prop_map(|(schedules, policy, catch_up, late)| {
        json!({"schedules": schedules, "concurrencyPolicy": policy, "catchUp": catch_up, "startingDeadlineSeconds": late})
    })
}

proptest! {
    #[test]
    fn no_time_ever_has_two_runs(
        spec in manifest(), start in 1_774_000_000_i64..1_793_000_000, events in prop::collection::vec(event(), 1..120)
    ) {
        let mut cron = Driver::new(spec);
        let mut now = Time::from_secs(start);
        cron.look(now);
        for event in events {
            match event {
                Event::Passes(seconds) | Event::Jumps(seconds) => now = Time(now.0 + seconds * 1_000_000),
                Event::Restart => cron.restart(),
                Event::Ends => drop(cron.active.pop()),
            }
            let acts = cron.look(now);
            let started = acts.iter().filter_map(|act| match act {
                Act::Start { nominal, .. } => Some(*nominal),
                _ => None,
            });
            for nominal in started {
                prop_assert!(nominal <= now, "{} has not come at {}", nominal, now);
            }
            if cron.object["spec"]["concurrencyPolicy"] != "Allow" {
                prop_assert!(cron.active.len() <= 1);
            }
        }
        let distinct: BTreeSet<Time> = cron.started.iter().copied().collect();
        prop_assert_eq!(distinct.len(), cron.started.len());
    }

    #[test]
    fn who_looks_in_time_misses_nothing(steps in prop::collection::vec(1..80_i64, 1..200), start in 1_774_000_000_i64..1_793_000_000) {
        let mut cron = Driver::new(json!({"schedules": ["* * * * *"]}));
        let mut now = Time::from_secs(start);
        cron.look(now);
        for seconds in steps {
            now = Time(now.0 + seconds * 1_000_000);
            cron.look(now);
        }
        let expected: Vec<i64> = ((start / 60 + 1)..=(now.seconds() / 60)).map(|minute| minute * 60).collect();
        let started: Vec<i64> = cron.started.iter().map(|time| time.seconds()).collect();
        prop_assert_eq!(started, expected);
    }
}
