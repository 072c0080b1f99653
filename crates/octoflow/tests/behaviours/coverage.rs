//! Which numbered behaviours have a scenario.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

use serde_json::Value;

use crate::{files, home, scenario::documents, short};

type Number = (String, u32);

#[test]
fn the_list_of_covered_behaviours_is_up_to_date() {
    let mut covered: BTreeMap<Number, BTreeSet<String>> = BTreeMap::new();
    for ending in [".test.yaml", ".process.yaml", ".command.yaml"] {
        for file in files(ending) {
            let name = short(&file);
            let mut any = false;
            for document in documents(&file) {
                let cases = document["cases"].as_array().cloned().unwrap_or_default();
                for number in [document].iter().chain(&cases).flat_map(covers) {
                    any = true;
                    covered.entry(number).or_default().insert(name.clone());
                }
            }
            assert!(any, "{name} does not say which behaviours it covers");
        }
    }
    let mut text = format!("# Behaviours with a scenario\n\n{} behaviours.\n\n", covered.len());
    for ((letters, number), files) in &covered {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let _ = writeln!(text, "- {letters}{number}: {}", files.join(", "));
    }
    let list = home().join("covered.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&list, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&list).unwrap_or_default(), text, "refresh covered.md with UPDATE=1");
}

fn covers(value: &Value) -> Vec<Number> {
    let list = value["covers"].as_array().into_iter().flatten();
    list.map(|number| {
        let text = number.as_str().unwrap();
        let digits = text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len());
        let (letters, number) = text.split_at(digits);
        let number = number.parse().unwrap_or_else(|_| panic!("`{text}` is no number of a behaviour, such as A1"));
        (letters.to_owned(), number)
    })
    .collect()
}
