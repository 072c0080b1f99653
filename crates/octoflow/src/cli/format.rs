//! Argument values: formats, pairs, phases. Parsing only.

use std::str::FromStr;

use octoflow_engine::{
    dialect::PhaseClass,
    jsonpath::Template,
    kinds::{self, Kind},
};

/// Output format.
#[derive(Clone, Debug)]
pub(crate) enum Format {
    Wide,
    Short,
    Name,
    Json,
    Yaml,
    Raw,
    JsonPath(Template),
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("jsonpath=") {
            return Template::parse(path).map(Self::JsonPath).map_err(|wrong| wrong.to_string());
        }
        match text {
            "wide" => Ok(Self::Wide),
            "short" => Ok(Self::Short),
            "name" => Ok(Self::Name),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            "raw" => Ok(Self::Raw),
            "jsonpath" => Err("say which path, like jsonpath='{.status.phase}'".to_owned()),
            _ => Err("unknown format".to_owned()),
        }
    }
}

/// Formats that a command supports.
pub(super) trait Formats {
    const WORDS: &'static [&'static str];
}

macro_rules! formats {
    ($($name:ident: $($word:literal)*;)*) => {$(
        pub(super) struct $name;
        impl Formats for $name {
            const WORDS: &'static [&'static str] = &[$($word),*];
        }
    )*};
}
formats! {
    RunFormats: "json" "yaml" "name" "wide";
    ListFormats: "wide" "name" "json" "yaml" "jsonpath";
    GetFormats: "wide" "short" "name" "json" "yaml" "jsonpath";
    LogFormats: "raw";
    ObjectFormats: "json" "yaml";
    StoredFormats: "wide" "name" "json" "yaml" "jsonpath";
}

pub(super) fn one_of<F: Formats>(text: &str) -> Result<Format, String> {
    let word = text.split('=').next().unwrap_or_default();
    if F::WORDS.contains(&word) {
        return text.parse();
    }
    let words: Vec<String> = F::WORDS
        .iter()
        .map(|word| if *word == "jsonpath" { "jsonpath=…".to_owned() } else { (*word).to_owned() })
        .collect();
    Err(format!("expected {}", words.join(", ")))
}

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as name=value".to_owned()),
    }
}

pub(super) fn phase(text: &str) -> Result<String, String> {
    let stands = [PhaseClass::Waiting, PhaseClass::Running, PhaseClass::Succeeded, PhaseClass::Failed];
    let mut known = Vec::new();
    for stand in stands {
        let phases = kinds::of_runs().filter_map(Kind::dialect).flat_map(|dialect| dialect.phases);
        for phase in phases.filter(|phase| phase.class == stand) {
            if !known.contains(&phase.word) {
                known.push(phase.word);
            }
        }
    }
    known_phase(text, &known)
}

pub(super) fn node_phase(text: &str) -> Result<String, String> {
    known_phase(
        text,
        &["Pending", "Waiting", "Running", "Succeeded", "Skipped", "Failed", "Error", "Omitted", "Stopped"],
    )
}

fn known_phase(text: &str, known: &[&str]) -> Result<String, String> {
    match known.iter().find(|phase| phase.eq_ignore_ascii_case(text)) {
        Some(phase) => Ok((*phase).to_owned()),
        None => Err(format!("expected one of {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_taken_in_any_case() {
        assert_eq!(phase("failed").as_deref(), Ok("Failed"));
        // Grouped by what they mean, whichever dialects bring them: waiting, running, succeeded, failed.
        let refusal = phase("broken").unwrap_err();
        let places = ["Pending", "Running", "Succeeded", "Failed"].map(|word| refusal.find(word).expect(word));
        assert!(places.is_sorted(), "{refusal}");
    }
}
