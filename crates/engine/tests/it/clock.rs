//! The wall clock may be set at any moment: what a run counts is elapsed time, and what it shows is the date of its
//! submission plus that.

use std::time::Duration;

use octoflow_engine::{Engine, Input, argo::status, engine};
use octoflow_model::{
    Fact, Order, Report, Time,
    order::{End, Exit},
    submission::{Stored, Submission, SubmitContext},
};
use serde_json::Value;

use crate::{
    inputs,
    play::{DAWN, ROOMY, RUN},
    text::manifest,
};

const HOUR: i64 = 3_600_000_000;
const TEN_YEARS: i64 = 10 * 365 * 24 * HOUR;
const SKEWS: [i64; 4] = [0, HOUR, -HOUR, TEN_YEARS];

const SPEC: &str = "
activeDeadlineSeconds: 600
ttlStrategy: {secondsAfterCompletion: 60}
templates:
- name: main
  steps:
  - - {name: pause, template: pause}
  - - {name: work, template: work}
- name: pause
  suspend: {duration: 10s}
- name: work
  activeDeadlineSeconds: 30
  container: {image: i, command: [c]}";

fn submission(skew: i64) -> Box<Submission> {
    Box::new(Submission {
        name: "w".into(),
        namespace: "default".into(),
        uid: "u".into(),
        at: DAWN.shifted(skew),
        manifest: manifest(SPEC),
        stored: Stored::default(),
        context: SubmitContext { skew, ..SubmitContext::default() },
        previous: None,
        parent: None,
        ordered_by: None,
    })
}

fn after(seconds: u64) -> Time {
    DAWN.saturating_add(Duration::from_secs(seconds))
}

fn kept(journal: &mut Vec<Fact>, outcome: octoflow_engine::Outcome) -> Vec<Order> {
    assert!(outcome.refusal.is_none());
    journal.extend(outcome.decided.into_iter().flat_map(|decided| decided.facts));
    outcome.orders
}

#[test]
fn deadlines_and_pauses_are_elapsed_time_whatever_the_date_is() {
    for skew in SKEWS {
        let mut engine = Engine::new(ROOMY);
        let mut journal = Vec::new();
        kept(&mut journal, inputs::submit(&mut engine, RUN, submission(skew), DAWN));
        assert_eq!(engine.wake_at(), Some(after(10)), "the pause");
        // A restart reads the same times back.
        let mut engine = Engine::new(ROOMY);
        inputs::restore(&mut engine, RUN, journal.clone());
        let (_, outcome) = inputs::go_on(&mut engine, &[RUN], after(5));
        kept(&mut journal, outcome);
        assert_eq!(engine.wake_at(), Some(after(10)), "the pause after a restart");
        let orders = kept(&mut journal, engine.handle(Input::Tick, after(10)));
        let [Order::Start { attempt, .. }] = orders[..] else { panic!("{orders:?}") };
        assert_eq!(engine.wake_at(), Some(after(40)), "the deadline of the task");
        // The runtime's own clock was set in both directions meanwhile.
        kept(
            &mut journal,
            engine.handle(Input::Report(Report::Started { attempt, at: after(10).shifted(-TEN_YEARS) }), after(11)),
        );
        let end = End {
            exit: Exit::Code(0),
            started: None,
            collected: Default::default(),
            log_truncated: false,
            log_bytes: 0,
            members: Vec::new(),
        };
        let ended = Report::Ended { attempt, at: after(15).shifted(TEN_YEARS), end: Box::new(end) };
        kept(&mut journal, engine.handle(Input::Report(ended), after(15)));
        let run = engine.run(RUN).unwrap();
        assert_eq!(run.expires(), Some(after(75)), "when it goes is told in the engine's time");
        let status = status::status(run.of::<octoflow_engine::argo::Run>().unwrap());
        assert_eq!(status["phase"], "Succeeded");
        let date = |seconds: u64| after(seconds).shifted(skew).to_string();
        assert_eq!(
            times(&status),
            (date(0), date(15)),
            "dates are the wall clock at its submission, and what passed since"
        );
        for node in status["nodes"].as_object().unwrap().values() {
            let (started, finished) = times(node);
            assert!(Time::parse(&started) <= Time::parse(&finished), "{node}");
            assert!(Time::parse(&started) >= Time::parse(&date(0)) && Time::parse(&finished) <= Time::parse(&date(15)));
        }
        let again = engine::fold(RUN, journal).unwrap();
        assert_eq!(again.expires(), Some(after(75)));
    }
}

fn times(of: &Value) -> (String, String) {
    let time = |field: &str| of[field].as_str().unwrap_or_default().to_owned();
    (time("startedAt"), time("finishedAt"))
}

#[test]
fn runs_with_different_dates_wait_for_the_same_engine() {
    let mut engine = Engine::new(ROOMY);
    for (number, skew) in SKEWS.into_iter().enumerate() {
        let run = octoflow_model::RunId(10 + number as u64);
        let mut submission = submission(skew);
        submission.name = format!("w{number}");
        let now = after(number as u64);
        submission.at = now.shifted(skew);
        inputs::submit(&mut engine, run, submission, now);
    }
    for number in 0..4 {
        assert_eq!(engine.wake_at(), Some(after(10 + number)), "in the order they came");
        let outcome = engine.handle(Input::Tick, after(10 + number));
        let starts = outcome.orders.iter().filter(|order| matches!(order, Order::Start { .. })).count();
        assert_eq!(starts, 1);
    }
}
