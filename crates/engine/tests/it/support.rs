//! The support list in the documentation is made from the table of fields; this keeps it so.
//! `UPDATE=1` writes it anew.

use std::{collections::HashMap, env, fmt::Write, fs, path::Path};

use octoflow_engine::{
    kinds::loadable,
    shape::{Field, Shape, Support},
};

const BEGIN: &str = "<!-- fields: made from the table in crates/engine/src/";
const MADE: &str = ", do not edit -->";
const END: &str = "<!-- end of fields -->";
const REFRESH: &str = "UPDATE=1 cargo nextest run -p octoflow-engine documented";

/// The page of a dialect, the position of its table, and the keys of the kinds it covers.
const PAGES: [(&str, &str, &[&str]); 7] = [
    (
        "argo.md",
        "dialects/argo/fields",
        &[
            "Workflow",
            "WorkflowTemplate",
            "ClusterWorkflowTemplate",
            "CronWorkflow",
            "WorkflowEventBinding",
            "ConfigMap",
            "Secret",
            "PersistentVolumeClaim",
        ],
    ),
    ("taskset.md", "dialects/taskset/fields.rs", &["TaskSet"]),
    ("kubernetes-job.md", "dialects/kubejob/fields.rs", &["KubeJob", "CronJob"]),
    ("volcano.md", "dialects/volcano/fields.rs", &["VolcanoJob", "VolcanoCommand"]),
    ("jobflow.md", "dialects/jobflow/fields.rs", &["JobFlow", "JobTemplate"]),
    ("submission.md", "dialects/submission/fields.rs", &["SubmittedJob", "Feature"]),
    ("scheduling.md", "kinds/scheduling/fields.rs", &["Queue", "PodGroup", "PriorityClass"]),
];

#[test]
fn every_field_is_documented_as_it_is_supported() {
    for (page, table, kinds) in PAGES {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dialects").join(page);
        let text = fs::read_to_string(&file).expect("the dialect has its page");
        let begin = format!("{BEGIN}{table}{MADE}");
        let (before, rest) = text.split_once(&begin).expect("the page says where the list begins");
        let (_, after) = rest.split_once(END).expect("the page says where the list ends");
        let fresh = format!("{before}{begin}\n{}\n{END}{after}", list(kinds));
        if env::var_os("UPDATE").is_some_and(|wish| wish == "1") {
            fs::write(&file, fresh).expect("the page can be written");
            continue;
        }
        let line =
            text.lines().zip(fresh.lines()).position(|(old, new)| old != new).map_or(text.lines().count(), |at| at + 1);
        assert!(text == fresh, "docs/dialects/{page} is out of date from line {line} on; refresh it with: {REFRESH}");
    }
}

#[test]
fn every_kind_is_on_a_page() {
    let told: Vec<&str> = PAGES.iter().flat_map(|(_, _, kinds)| *kinds).copied().collect();
    let missing: Vec<&str> = loadable().map(|kind| kind.key).filter(|key| !told.contains(key)).collect();
    assert_eq!(missing, [] as [&str; 0], "kinds without a page");
    assert_eq!(told.len(), loadable().count(), "every kind is on one page: {told:?}");
}

fn list(kinds: &[&str]) -> String {
    let mut text = String::new();
    let mut places = HashMap::new();
    for kind in loadable().filter(|kind| kinds.contains(&kind.key)) {
        let _ = write!(text, "\n### {}\n\n| Field | Support | What it is |\n| --- | --- | --- |\n", kind.name);
        rows(kind.name, kind.shape.expect("only kinds with a shape are listed"), "", &mut places, &mut text);
    }
    text
}

/// The kind and the path under which an object was listed.
type Places = HashMap<*const Shape, (&'static str, String)>;

/// The fields of an object and of those in it. One that was listed already, such as a template in a template, is
/// referred to by where that was.
fn rows(kind: &'static str, shape: &'static Shape, place: &str, places: &mut Places, text: &mut String) {
    for field in shape.fields() {
        let path = if place.is_empty() { field.name.to_owned() } else { format!("{place}.{}", field.name) };
        let (inner, below) = object_in(field.shape, path.clone());
        let listed = places.get(&std::ptr::from_ref(inner)).cloned();
        let alike = match &listed {
            Some((of, listed)) if *of == kind => format!(" (its fields: see `{listed}`)"),
            Some((of, listed)) => format!(" (its fields: see `{listed}` of {of})"),
            None => String::new(),
        };
        let _ = writeln!(text, "| `{path}` | {} | {}{alike} |", word(field), told(field).replace('|', "\\|"));
        if listed.is_none() && inner.fields().next().is_some() {
            places.insert(std::ptr::from_ref(inner), (kind, below.clone()));
            rows(kind, inner, &below, places, text);
        }
    }
}

/// Returns the innermost shape of a list or map, and how its path is written.
fn object_in(shape: &'static Shape, path: String) -> (&'static Shape, String) {
    match shape {
        Shape::List(inner) => object_in(inner, format!("{path}[]")),
        Shape::Map(inner) => object_in(inner, format!("{path}.*")),
        other => (other, path),
    }
}

fn word(field: &Field) -> &'static str {
    match field.support {
        Support::Yes => "supported",
        Support::Ignored(_) => "warns",
        Support::Refused => "refused",
    }
}

fn told(field: &Field) -> String {
    match field.support {
        Support::Ignored(why) => format!("{}; no effect: {why}", field.about),
        Support::Yes | Support::Refused => field.about.to_owned(),
    }
}
