//! Every numbered behaviour has a scenario or a test that carries its number.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

use serde_json::Value;

use crate::{files, home, scenario::Scenario};

/// How many behaviours each section has.
const SECTIONS: [(char, u32); 10] =
    [('A', 15), ('B', 12), ('C', 28), ('D', 5), ('E', 18), ('F', 15), ('G', 15), ('H', 11), ('I', 17), ('J', 30)];

/// Behaviours that need a clock of the test's own, several runs, or a controller that lives on: shown by tests of a crate,
/// which carry the number in their names, as in `fn j05_…`.
const TESTED: [(&[&str], &str); 4] = [
    (&["J5", "J6", "J7", "J8", "J9", "J10"], "crates/control/tests/it/cron.rs"),
    (&["J11", "J12", "J13", "J14"], "crates/engine/tests/it/rerun.rs"),
    (&["J20"], "crates/control/tests/it/expire.rs"),
    (&["J21"], "crates/control/tests/it/events.rs"),
];

fn shown(scenario: &Scenario) -> Vec<Number> {
    let cases = scenario.value()["cases"].as_array().into_iter().flatten();
    [scenario.value()].into_iter().chain(cases).flat_map(covers).collect()
}

#[test]
fn every_behaviour_is_shown() {
    let mut covered: BTreeMap<Number, BTreeSet<String>> = BTreeMap::new();
    for ending in [".test.yaml", ".process.yaml", ".command.yaml"] {
        for scenario in files(ending).iter().flat_map(|file| Scenario::all(file)) {
            let numbers = shown(&scenario);
            assert!(!numbers.is_empty(), "{} does not say which behaviours it covers", scenario.file);
            for number in numbers {
                covered.entry(number).or_default().insert(scenario.file.clone());
            }
        }
    }
    for (numbers, file) in TESTED {
        let text = fs::read_to_string(home().join("../../../..").join(file)).unwrap();
        for number in numbers.iter().map(|number| Number::read(number)) {
            let name = format!("fn {}{:02}_", number.section.to_ascii_lowercase(), number.number);
            assert!(text.contains(&name), "no test in {file} carries the number {number}");
            covered.entry(number).or_default().insert(file.to_owned());
        }
    }
    let known: BTreeSet<Number> = SECTIONS
        .iter()
        .flat_map(|(section, count)| (1..=*count).map(|number| Number { section: *section, number }))
        .collect();
    let mut wrong = Vec::new();
    for number in covered.keys().filter(|number| !known.contains(number)) {
        wrong.push(format!("{number} is the number of no behaviour"));
    }
    for number in known.iter().filter(|number| !covered.contains_key(number)) {
        wrong.push(format!("{number} is not shown"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    compare(&listed(&covered));
}

fn listed(covered: &BTreeMap<Number, BTreeSet<String>>) -> String {
    let mut text = format!("# Where each behaviour is shown\n\nAll {} behaviours.\n\n", covered.len());
    for (number, files) in covered {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let _ = writeln!(text, "- {number}: {}", files.join(", "));
    }
    text
}

fn compare(text: &str) {
    let list = home().join("covered.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&list, text).unwrap();
    }
    assert_eq!(fs::read_to_string(&list).unwrap_or_default(), text, "refresh covered.md with UPDATE=1");
}

/// A behaviour, such as A1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    section: char,
    number: u32,
}

impl Number {
    fn read(text: &str) -> Self {
        let mut letters = text.chars();
        let number = letters.next().zip(letters.as_str().parse().ok());
        let (section, number) = number.unwrap_or_else(|| panic!("`{text}` is no number of a behaviour, such as A1"));
        Self { section, number }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.section, self.number)
    }
}

fn covers(value: &Value) -> Vec<Number> {
    let list = value["covers"].as_array().into_iter().flatten();
    list.map(|number| Number::read(number.as_str().unwrap())).collect()
}
