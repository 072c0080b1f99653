//! Loads documents from files, directories and standard input, with their places in the text. It reads and sorts;
//! admission validates.

pub(crate) mod adjust;
pub(crate) mod names;
pub(crate) mod validate;

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use octoflow_engine::kinds::{self, Kind};
use octoflow_manifest::{Document, Limits, Path, Problem, Problems, read, read_each};
use serde_json::Value;

use crate::{exit::Failure, logic::is_test, source::workflow::text};

/// Extensions of manifests in a directory.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// One object of a file: a document, or an item of a `List`.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    document: Arc<Document>,
    /// Its path in the document.
    base: Path,
    pub value: Value,
}

impl Loaded {
    /// Returns the object's `kind`.
    pub(crate) fn kind(&self) -> &str {
        text(&self.value, "kind")
    }

    /// Returns its kind by group and name; `None` if it is unknown.
    pub(crate) fn known(&self) -> Option<&'static Kind> {
        kinds::of_manifest(&self.value).ok()
    }

    /// Makes an object that is embedded in another file.
    pub(crate) fn within(document: Arc<Document>, base: Path, value: Value) -> Self {
        Self { document, base, value }
    }

    /// Returns `file:line`, for messages about the whole object.
    pub(crate) fn place(&self) -> String {
        let line =
            if self.base.is_root() { self.document.line } else { self.document.source_map.value(&self.base).line };
        format!("{}:{line}", self.document.source.name())
    }

    /// Locates a problem, whose path begins at the object, in the text.
    pub(crate) fn locate(&self, problem: Problem) -> Problem {
        let full = self.base.concat(problem.path.as_ref().unwrap_or(&Path::root()));
        if problem.span.is_some() {
            return problem.path(full);
        }
        // An unknown field is located at its name; everything else at the value.
        let at_key = problem.code == octoflow_engine::shape::code::UNKNOWN_FIELD;
        if at_key { problem.at_key(&self.document, &full) } else { problem.at_value(&self.document, &full) }
    }

    /// Returns the original text of a value, if it is still the one from the file.
    pub(crate) fn written(&self, path: &Path) -> Option<&str> {
        self.document.text(&self.base.concat(path))
    }
}

/// Loads everything in the files, in order. Problems of all texts are returned together; an unreadable file is an
/// error.
pub(crate) fn load(places: &[PathBuf]) -> Result<Result<Vec<Loaded>, Problems>> {
    let gathered = gather(places, files)?;
    Ok(if gathered.problems.is_empty() { Ok(gathered.objects) } else { Err(gathered.problems) })
}

/// Reads the documents of one file, or the problems of its text.
pub(crate) fn read_file(file: &FilePath) -> Result<Result<Vec<Document>, Problems>> {
    let bytes = File::open(file).and_then(bounded).map_err(|error| unreadable(file, &error))?;
    Ok(read(&file.display().to_string(), &bytes, &Limits::default()))
}

/// Returns a file itself, or the manifests and tests of a directory, recursively.
pub(crate) fn below(place: &FilePath) -> Result<Vec<PathBuf>> {
    tree_of(place, is_readable)
}

/// Objects of all valid texts, and the problems of the others.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub objects: Vec<Loaded>,
    pub problems: Problems,
}

/// Like [`load`], but one bad text does not hide the others, directories are searched recursively, and a file named
/// twice is read once.
pub(crate) fn load_trees(places: &[PathBuf]) -> Result<Gathered> {
    let mut seen = HashSet::new();
    gather(places, |place| {
        let mut found = tree(place)?;
        found.retain(|file| seen.insert(fs::canonicalize(file).unwrap_or_else(|_| file.clone())));
        Ok(found)
    })
}

fn gather(places: &[PathBuf], mut files: impl FnMut(&FilePath) -> Result<Vec<PathBuf>>) -> Result<Gathered> {
    let mut gathered = Gathered::default();
    let mut stdin_taken = false;
    for place in places {
        if place.as_os_str() == "-" {
            if std::mem::replace(&mut stdin_taken, true) {
                return Err(Failure::usage("standard input (-) can be read only once").into());
            }
            let bytes = bounded(io::stdin().lock()).context("cannot read standard input")?;
            take_in("<stdin>", &bytes, &mut gathered);
            continue;
        }
        for file in files(place)? {
            let bytes = File::open(&file).and_then(bounded).map_err(|error| unreadable(&file, &error))?;
            take_in(&file.display().to_string(), &bytes, &mut gathered);
        }
    }
    Ok(gathered)
}

fn take_in(name: &str, bytes: &[u8], gathered: &mut Gathered) {
    let (documents, problems) = read_each(name, bytes, &Limits::default());
    documents.into_iter().for_each(|document| gathered.objects.extend(objects(document)));
    gathered.problems.extend(problems);
}

/// Splits a `List` into its objects; anything else is one object.
pub(crate) fn objects(document: Document) -> Vec<Loaded> {
    let document = Arc::new(document);
    let items = match document.value.get("items") {
        Some(Value::Array(items)) if text(&document.value, "kind") == "List" => items.clone(),
        _ => return vec![Loaded { value: document.value.clone(), base: Path::root(), document }],
    };
    let base = Path::root().join("items");
    items
        .into_iter()
        .enumerate()
        .map(|(index, value)| Loaded { document: Arc::clone(&document), base: base.join(index), value })
        .collect()
}

fn files(place: &FilePath) -> Result<Vec<PathBuf>> {
    let about = fs::metadata(place).map_err(|error| unreadable(place, &error))?;
    if !about.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let mut found = entries(place)?;
    found.retain(|path| is_manifest(path));
    if found.is_empty() {
        let text = format!("there are no manifests in `{}`", place.display());
        return Err(Failure::usage(text).help("files ending in .yaml, .yml or .json are looked for").into());
    }
    Ok(found)
}

/// Returns the manifests of a directory, recursively, without hidden ones. Links to directories are not followed: they
/// may be cyclic.
fn tree(place: &FilePath) -> Result<Vec<PathBuf>> {
    tree_of(place, is_manifest)
}

fn tree_of(place: &FilePath, wanted: impl Fn(&FilePath) -> bool) -> Result<Vec<PathBuf>> {
    let about = fs::metadata(place).map_err(|error| unreadable(place, &error))?;
    if !about.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let mut found = Vec::new();
    let mut open = vec![place.to_owned()];
    while let Some(folder) = open.pop() {
        for path in entries(&folder)? {
            let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if path.is_dir() {
                if !hidden && !path.is_symlink() {
                    open.push(path);
                }
            } else if wanted(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Lists a directory in order of name.
fn entries(folder: &FilePath) -> Result<Vec<PathBuf>> {
    let listing = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    let mut found = listing
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|error| unreadable(folder, &error))?;
    found.sort();
    Ok(found)
}

/// Returns whether a file is a manifest. Tests lie beside the manifests they are about, and are not manifests.
fn is_manifest(path: &FilePath) -> bool {
    is_readable(path) && !is_test(path)
}

fn is_readable(path: &FilePath) -> bool {
    path.is_file() && path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

fn unreadable(place: &FilePath, error: &io::Error) -> anyhow::Error {
    let name = place.display();
    let text = match error.kind() {
        io::ErrorKind::NotFound if name.to_string().contains("://") => {
            return Failure::usage(format!("`{name}` is an address; manifests are read from files"))
                .help(format!("fetch it first: curl -L {name} | octoflow run -"))
                .into();
        }
        io::ErrorKind::NotFound => format!("there is no file `{name}`"),
        _ => format!("cannot read `{name}`: {error}"),
    };
    Failure::usage(text).into()
}

/// Reads at most one byte more than a manifest may have, so that the parser can report it and memory stays bounded.
fn bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let limit = Limits::default().bytes as u64 + 1;
    let mut bytes = Vec::new();
    source.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads names and values of a parameter file, in order.
pub(crate) fn parameters(file: &FilePath) -> Result<Result<Vec<(String, String)>, Problems>> {
    let objects = match load(&[file.to_owned()])? {
        Ok(objects) => objects,
        Err(problems) => return Ok(Err(problems)),
    };
    let wrong = || {
        Failure::usage(format!("`{}` must hold one mapping of parameter names to values", file.display()))
            .help("write one `name: value` a line")
    };
    let [object] = objects.as_slice() else { return Err(wrong().into()) };
    let Value::Object(map) = &object.value else { return Err(wrong().into()) };
    let values = map.iter().map(|(name, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            // A number keeps its notation: as text, 1.10 is not 1.1.
            Value::Number(number) => {
                object.written(&Path::root().join(name.as_str())).map_or_else(|| number.to_string(), str::to_owned)
            }
            other => other.to_string(),
        };
        (name.clone(), text)
    });
    Ok(Ok(values.collect()))
}

#[cfg(test)]
mod tests {
    use std::fs::write;

    use octoflow_manifest::Severity;
    use tempfile::tempdir;

    use super::*;
    use crate::exit::{self, Exit};

    #[test]
    fn directories_give_their_manifests_in_order_of_name() {
        let dir = tempdir().unwrap();
        write(dir.path().join("b.yaml"), "kind: B\n---\nkind: C\n").unwrap();
        write(dir.path().join("a.json"), r#"{"kind": "A"}"#).unwrap();
        write(dir.path().join("notes.txt"), "not a manifest: [").unwrap();
        let loaded = load(&[dir.path().to_owned()]).unwrap().unwrap();
        let kinds: Vec<&str> = loaded.iter().map(Loaded::kind).collect();
        assert_eq!(kinds, ["A", "B", "C"]);
    }

    #[test]
    fn the_items_of_a_list_are_objects_with_their_own_places() {
        let dir = tempdir().unwrap();
        let file = dir.path().join("list.yaml");
        write(&file, "kind: List\nitems:\n- kind: ConfigMap\n- kind: Workflow\n  spec:\n    entrypont: a\n").unwrap();
        let loaded = load(std::slice::from_ref(&file)).unwrap().unwrap();
        assert_eq!(loaded.len(), 2);
        let path: Path = "spec.entrypont".parse().unwrap();
        let problem = loaded[1].locate(Problem::error("OF1003", "unknown").path(path));
        assert_eq!(problem.span.map(|span| (span.line, span.column)), Some((6, 5)));
        assert_eq!(problem.path.unwrap().to_string(), "items[1].spec.entrypont");
        assert_eq!(loaded[1].place(), format!("{}:4", file.display()));
    }

    #[test]
    fn problems_of_all_files_come_together() {
        let dir = tempdir().unwrap();
        for name in ["a.yaml", "b.yaml"] {
            write(dir.path().join(name), "a: [1\n").unwrap();
        }
        let problems = load(&[dir.path().to_owned()]).unwrap().unwrap_err();
        let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
        let files: std::collections::BTreeSet<String> =
            errors.filter_map(|problem| problem.source.as_ref().map(|source| source.name().to_owned())).collect();
        assert_eq!(files.len(), 2, "{problems}");
    }

    #[test]
    fn what_is_not_there_is_the_callers_mistake() {
        let error = load(&["/does/not/exist.yaml".into()]).unwrap_err();
        assert_eq!(exit::of(&error), Exit::Usage);
        assert!(error.to_string().contains("there is no file"), "{error}");
        let empty = tempdir().unwrap();
        assert!(load(&[empty.path().to_owned()]).unwrap_err().to_string().contains("no manifests"));
    }

    #[test]
    fn parameter_files_keep_numbers_as_written() {
        let dir = tempdir().unwrap();
        let file = dir.path().join("p.yaml");
        write(&file, "version: 1.10\nname: x\nflag: true\nlist: [1, 2]\n").unwrap();
        let parameters = parameters(&file).unwrap().unwrap();
        let get = |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(
            (get("version"), get("name"), get("flag"), get("list")),
            (Some("1.10"), Some("x"), Some("true"), Some("[1,2]"))
        );
        write(&file, "- not\n- a mapping\n").unwrap();
        assert!(super::parameters(&file).unwrap_err().to_string().contains("one mapping"));
    }
}
