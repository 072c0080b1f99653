//! What answers of plugins mean, and what of them reaches a user.

use octoflow_model::{
    Time,
    plugin::{Factors, PluginType},
    request::{Answer, HttpResponse},
    submitted::{GateVerdict, WalkFact},
};
use serde_json::{Value, json};

use crate::dialects::submission::{
    answer::{self, Asked, CallError},
    decide,
};

fn respond(status: u16, body: &str) -> Result<Value, CallError> {
    answer::document(Answer::Http(HttpResponse { status, headers: Vec::new(), body: body.to_owned() }), false)
}

fn read(stage: PluginType, job: &Value, answer: Value) -> Result<WalkFact, String> {
    let (factors, now) = (Factors::new(), Time(0));
    let asked = Asked { stage, job, factors: &factors, earlier: &[], least_recheck: decide::least_recheck(0), now };
    answer::read(&asked, answer)
}

#[test]
fn only_what_may_pass_by_itself_is_tried_again() {
    for (status, passing) in [(500, true), (503, true), (400, false), (404, false), (302, false)] {
        let error = respond(status, "a secret").unwrap_err();
        assert_eq!(error.passing, passing, "{status}");
        assert!(error.why.contains(&status.to_string()), "{}", error.why);
        assert!(!error.why.contains("secret"), "the body stays where it is: {}", error.why);
    }
    for body in ["", "not json", "{\"a\":", "{\"secret\": 1, \"secret\": 2}", "{} trailing"] {
        let error = respond(200, body).unwrap_err();
        assert!(!error.passing && !error.why.contains("secret"), "{}", error.why);
    }
    assert!(answer::document(Answer::Refused("it did not answer within 5 s".to_owned()), false).unwrap_err().passing);
    assert!(!answer::document(Answer::Refused("no such option".to_owned()), true).unwrap_err().passing);
    assert_eq!(respond(201, "{}"), Ok(json!({})));
}

#[test]
fn factors_come_alone_or_in_a_list_and_those_that_say_nothing_are_left_out() {
    let advised = |answer: Value| match read(PluginType::FactorGenerator, &Value::Null, answer) {
        Ok(WalkFact::Advised { factors, .. }) => {
            Ok(factors.into_iter().map(|one| (one.topic, one.advice)).collect::<Vec<_>>())
        }
        Ok(other) => panic!("{other:?}"),
        Err(why) => Err(why),
    };
    let pair = |topic: &str, advice: &str| (topic.to_owned(), advice.to_owned());
    assert_eq!(advised(json!({"topic": "priority", "advice": 10})), Ok(vec![pair("priority", "10")]));
    let several = json!([{"topic": "a", "advice": {"x": 1}}, {"topic": "", "advice": "1"}, {"topic": "b"}, {}]);
    assert_eq!(advised(several), Ok(vec![pair("a", "{\"x\":1}")]));
    assert_eq!(advised(json!([])), Ok(Vec::new()));
    for wrong in [json!("high"), json!(null), json!([1])] {
        assert!(advised(wrong).is_err());
    }
}

#[test]
fn gates_know_three_words() {
    let judged = |answer: Value| match read(PluginType::AccessGate, &Value::Null, answer)? {
        WalkFact::Judged { verdict, recheck, .. } => Ok((verdict, recheck.map(|at| at.since(Time(0)).as_secs()))),
        other => Err(format!("{other:?}")),
    };
    assert_eq!(judged(json!({"decision": "pass", "recheckAfter": 5})), Ok((GateVerdict::Pass, None)));
    assert_eq!(judged(json!({"decision": "suspend", "recheckAfter": 0.01})), Ok((GateVerdict::Suspend, Some(1))));
    assert_eq!(judged(json!({"decision": "suspend", "recheckAfter": null})), Ok((GateVerdict::Suspend, None)));
    assert_eq!(judged(json!({"decision": "stop"})), Ok((GateVerdict::Stop, None)));
    for word in ["maybe", "PASS", " pass", "1"] {
        let why = judged(json!({"decision": word})).unwrap_err();
        assert!(why.contains(word), "PL-23: {why}");
    }
    for wrong in [json!({}), json!("pass"), json!({"decision": "suspend", "recheckAfter": -1}), json!([])] {
        assert!(judged(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn a_decorator_that_takes_something_away_is_told_where() {
    let job = json!({"kind": "TaskSet", "spec": {"roles": [{"name": "worker", "replicas": 2}]}});
    let mut less = job.clone();
    less["spec"]["roles"][0]["replicas"] = json!(3);
    let why = read(PluginType::TemplateDecorator, &job, less).unwrap_err();
    assert!(why.contains("spec.roles[0]"), "{why}");
    let mut more = job.clone();
    more["spec"]["added"] = json!(true);
    assert!(matches!(read(PluginType::TemplateDecorator, &job, more), Ok(WalkFact::Extended { .. })));
}
