//! Scenarios as data: a spec, what its tasks do, and what must be seen at the end.
//!
//! Two YAML documents. The first is the spec. The second has `answers` (by display, full or template name), and any of
//! `phase`, `message`, `progress`, `nodes` (name → phase), `messages` (name → part of the message), `all` (full name →
//! "Type Phase", exactly all nodes), `said` (name → last argument), `absent` (names).

use serde_json::Value;

use crate::{
    answer::{Answer, Ending, Script},
    done::Done,
    play::Play,
    text::{complete, yaml},
};

pub(crate) fn check(text: &str) -> Done {
    let mut documents = yaml(text);
    assert_eq!(documents.len(), 2, "a scenario is a spec and what is expected of it");
    let expected = documents.remove(1);
    let done = Play::of(complete(documents.remove(0)), script(&expected["answers"])).finish();
    compare(&done, &expected);
    done
}

pub(crate) fn script(answers: &Value) -> Script {
    let entries = answers.as_object().into_iter().flatten();
    entries.fold(Script::default(), |script, (name, answer)| script.on(name, read_answer(answer)))
}

fn read_answer(answer: &Value) -> Answer {
    let number = |field: &str| answer[field].as_i64().map(|number| number as i32);
    let text = |field: &str| answer[field].as_str().map(str::to_owned);
    let ending = match (number("signal"), text("notStarted"), text("surroundings"), text("lost")) {
        (Some(signal), ..) => Ending::Signal(signal),
        (_, Some(why), ..) => Ending::NotStarted(why),
        (_, _, Some(why), _) => Ending::Catalog(why),
        (.., Some(why)) => Ending::Lost(why),
        _ if answer["never"] == true => Ending::Never,
        _ => Ending::Exit(answer.as_i64().map(|code| code as i32).or(number("exit")).unwrap_or(0)),
    };
    let mut made = Answer::ends(ending).after(answer["after"].as_u64().unwrap_or(1));
    made.result = text("result");
    let parameters = answer["parameters"].as_object().into_iter().flatten();
    made.parameters = parameters.map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned))).collect();
    made.no_artifacts = answer["noArtifacts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let containers = answer["containers"].as_object().into_iter().flatten();
    made.containers = containers.map(|(name, code)| (name.clone(), code.as_i64().map(|code| code as i32))).collect();
    made
}

pub(crate) fn compare(done: &Done, expected: &Value) {
    const KNOWN: [&str; 9] = ["answers", "phase", "message", "progress", "nodes", "messages", "all", "said", "absent"];
    for field in expected.as_object().expect("expectations are a mapping").keys() {
        assert!(KNOWN.contains(&field.as_str()), "no expectation is called {field}");
    }
    let entries = |field: &str| -> Vec<(String, String)> {
        let entries = expected[field].as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{field} has texts")).to_owned();
        entries.map(|(name, value)| (name.clone(), text(value))).collect()
    };
    if let Some(all) = expected["all"].as_object() {
        let all = all.iter().map(|(name, what)| (name.clone(), what.as_str().unwrap_or_default().to_owned())).collect();
        pretty_assertions(&done.phases(), &all);
    }
    for (name, phase) in entries("nodes") {
        assert_eq!(
            done.node_phase(&name),
            phase,
            "phase of {name}: {}\n{:#?}",
            done.node_message(&name),
            done.phases()
        );
    }
    for (name, part) in entries("messages") {
        assert!(done.node_message(&name).contains(&part), "message of {name} is {:?}", done.node_message(&name));
    }
    for (name, said) in entries("said") {
        assert_eq!(done.said(&name), said, "what {name} said");
    }
    for name in expected["absent"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("names are texts");
        assert!(done.find(name).is_none(), "{name} should not be there: {:#?}", done.phases());
    }
    if let Some(phase) = expected["phase"].as_str() {
        assert_eq!(done.phase(), phase, "phase of the run: {}\n{:#?}", done.message(), done.phases());
    }
    if let Some(message) = expected["message"].as_str() {
        assert_eq!(done.message(), message, "message of the run");
    }
    if let Some(progress) = expected["progress"].as_str() {
        assert_eq!(done.status()["progress"], progress, "progress of the run");
    }
}

fn pretty_assertions(
    found: &std::collections::BTreeMap<String, String>,
    wanted: &std::collections::BTreeMap<String, String>,
) {
    assert_eq!(found, wanted, "found {found:#?}");
}
