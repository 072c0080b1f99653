//! From files and directories to cases. Everything wrong with the test files is found before the first case runs.

use std::{
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use octoflow_engine::shape;
use octoflow_manifest::{Document, Path, Problem, Problems};
use serde_json::Value;

use super::{
    format::SUITE,
    reply,
    test_document::{Located, TestDocument},
};
use crate::{exit::Failure, load};

/// The code of a test file whose words are known and make no sense together.
pub(crate) const SENSELESS: &str = "OF1090";

/// Files of a directory with these endings hold tests.
pub(crate) const ENDINGS: [&str; 2] = [".test.yaml", ".test.yml"];

/// The documents of all test files.
#[derive(Debug, Default)]
pub(crate) struct Suites {
    pub sheets: Vec<TestDocument>,
    pub problems: Problems,
}

/// One thing that is tried.
#[derive(Clone, Debug)]
pub(crate) struct Case<'a> {
    pub name: String,
    /// What the whole file says, for what the case leaves open.
    pub suite: Located<'a>,
    /// The same as `suite` in a file with one case only.
    pub own: Located<'a>,
}

impl<'a> Case<'a> {
    /// What the case says, else what the file says.
    pub(crate) fn get(&self, key: &str) -> Option<Located<'a>> {
        self.own.get(key).or_else(|| self.suite.get(key))
    }

    /// What the case says and then what the file says, for what adds up.
    pub(crate) fn all(&self, key: &str) -> Vec<Located<'a>> {
        let own = self.own.get(key);
        let shared = self.suite.get(key).filter(|shared| own.as_ref().is_none_or(|own| own.path != shared.path));
        own.into_iter().chain(shared).collect()
    }

    pub(crate) fn file(&self) -> &'a str {
        self.own.file()
    }

    pub(crate) fn covers(&self) -> Vec<String> {
        self.all("covers").iter().rev().flat_map(Located::texts).collect()
    }
}

/// Reads the test files of these places.
pub(crate) fn read(places: &[PathBuf]) -> Result<Suites> {
    let mut suites = Suites::default();
    for place in places {
        for file in files(place)? {
            match load::read_file(&file)? {
                Ok(documents) if documents.is_empty() => {
                    let text = format!("there is nothing in `{}`", file.display());
                    return Err(Failure::new(crate::exit::Exit::InvalidManifest, text).into());
                }
                Ok(documents) => documents.into_iter().for_each(|document| suites.take_in(document)),
                Err(problems) => suites.problems.extend(problems),
            }
        }
    }
    suites.problems.0.sort_by(|one, other| place(one).cmp(&place(other)));
    suites.problems.0.dedup_by(|one, other| place(one) == place(other) && one.message == other.message);
    Ok(suites)
}

fn place(problem: &Problem) -> (Option<&str>, Option<usize>) {
    (problem.source.as_ref().map(|source| source.name()), problem.span.map(|span| span.offset))
}

/// The cases of a document, in order.
pub(crate) fn cases(test_document: &TestDocument) -> Vec<Case<'_>> {
    let suite = test_document.root();
    let Some(list) = suite.get("cases") else {
        return vec![Case { name: name(&suite, || stem(suite.file())), own: suite.clone(), suite }];
    };
    let numbered = list.items().enumerate();
    numbered
        .map(|(index, own)| Case { name: name(&own, || format!("case {}", index + 1)), own, suite: suite.clone() })
        .collect()
}

fn name(located: &Located<'_>, otherwise: impl FnOnce() -> String) -> String {
    located.text_of("name").filter(|name| !name.is_empty()).unwrap_or_else(otherwise)
}

fn stem(file: &str) -> String {
    let file = FilePath::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy());
    let ending = ENDINGS.iter().copied().chain([".yaml", ".yml", ".json"]).find(|ending| file.ends_with(ending));
    file.strip_suffix(ending.unwrap_or_default()).unwrap_or(&file).to_owned()
}

/// A file is taken whatever its name; in directories the ending tells.
fn files(place: &FilePath) -> Result<Vec<PathBuf>> {
    let found = load::below(place)?;
    if found.len() == 1 && found[0] == place {
        return Ok(found);
    }
    let tests: Vec<PathBuf> = found.into_iter().filter(|file| is_test(file)).collect();
    if tests.is_empty() {
        let text = format!("there are no tests in `{}`", place.display());
        return Err(Failure::usage(text).help("files ending in .test.yaml or .test.yml are looked for").into());
    }
    Ok(tests)
}

/// Whether a file of a directory holds tests rather than manifests.
pub(crate) fn is_test(file: &FilePath) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

impl Suites {
    fn take_in(&mut self, document: Document) {
        let checked = shape::check(&document.value, &SUITE);
        let locate = |problem: Problem| {
            let path = problem.path.clone().unwrap_or_default();
            let at_key = problem.code == shape::code::UNKNOWN_FIELD;
            if at_key { problem.at_key(&document, &path) } else { problem.at_value(&document, &path) }
        };
        let wrong = !checked.problems.is_empty();
        self.problems.extend(checked.problems.into_iter().map(locate));
        let test_document = TestDocument { value: checked.value, document: Arc::new(document) };
        // What makes no sense is only worth telling of what is well formed.
        if !wrong {
            self.problems.extend(nonsense(&test_document));
        }
        self.sheets.push(test_document);
    }
}

/// What the tables cannot say.
fn nonsense(test_document: &TestDocument) -> Vec<Problem> {
    let root = test_document.root();
    let mut found = Vec::new();
    let cases = cases(test_document);
    if root.get("cases").is_some() && cases.is_empty() {
        found.push(root.problem(SENSELESS, "there are no cases").help("write at least one entry under `cases`"));
    }
    let mut names = std::collections::HashSet::new();
    for case in &cases {
        if !names.insert(case.name.clone()) {
            found.push(case.own.problem(SENSELESS, format!("two cases are called `{}`", case.name)));
        }
        let subject = ["file", "files", "workflow", "manifests"].iter().any(|key| case.get(key).is_some());
        if !subject {
            let problem = case.own.problem(SENSELESS, "the case says nothing of what is under test");
            found.push(problem.help("name a manifest with `file:`, or write one down with `workflow:`"));
        }
        for located in case.all("file").into_iter().chain(case.all("files")) {
            let named = if located.value.is_array() { located.items().collect() } else { vec![located] };
            for located in named.into_iter().filter(|located| !beside(case, &located.text()).is_file()) {
                found.push(
                    located
                        .problem(SENSELESS, format!("there is no file `{}`", beside(case, &located.text()).display())),
                );
            }
        }
        if case.get("expect").is_none() && case.get("skip").is_none() {
            let problem = case.own.problem(SENSELESS, "the case expects nothing, so it cannot fail");
            found.push(problem.help("say at least `expect: {phase: Succeeded}`"));
        }
        if case.own.path.is_root() {
            continue;
        }
        spots(&case.own, &mut found);
    }
    spots(&root, &mut found);
    found
}

fn spots(case: &Located<'_>, found: &mut Vec<Problem>) {
    for stub in case.items_of("stubs") {
        stubbed(&stub, found);
    }
    for command in case.items_of("commands") {
        commanded(&command, found);
    }
    if let Some(expect) = case.get("expect") {
        expected(&expect, found);
        expect.entries_of("runs").for_each(|(_, below)| expected(&below, found));
        for moment in expect.items_of("moments") {
            timed(&moment, found);
        }
    }
}

fn stubbed(stub: &Located<'_>, found: &mut Vec<Problem>) {
    if !["template", "node", "image", "run"].iter().any(|key| stub.get(key).is_some()) {
        let problem = stub.problem(SENSELESS, "the stub does not say which tasks it is for");
        found.push(problem.help("add `template`, `node` or `image`; `template: \"*\"` is for all"));
    }
    if let (Some(_), Some(calls)) = (stub.get("attempts"), stub.get("calls")) {
        found.push(calls.problem(SENSELESS, "a stub counts either `attempts` or `calls`, not both"));
    }
    for key in ["attempts", "calls"] {
        if let Some(empty) = stub.get(key).filter(|list| list.items().next().is_none()) {
            found.push(empty.problem(SENSELESS, format!("there is nothing in `{key}`")));
        }
    }
    let answers = [stub.clone()].into_iter().chain(stub.items_of("attempts")).chain(stub.items_of("calls"));
    for answer in answers {
        let endings = ["exit", "signal", "lost", "notStarted", "broken", "never"];
        let mut said = endings.iter().chain(&reply::WORDS).filter_map(|key| Some((*key, answer.get(key)?)));
        if let (Some((first, _)), Some((second, located))) = (said.next(), said.next()) {
            found.push(located.problem(SENSELESS, format!("a task cannot end in two ways, `{first}` and `{second}`")));
        }
    }
}

fn commanded(command: &Located<'_>, found: &mut Vec<Problem>) {
    let Some(action) = command.text_of("do") else {
        found.push(
            command.problem(SENSELESS, "the command does not say what is done").help("add `do: stop` or another"),
        );
        return;
    };
    for (key, of) in [("nodes", "resume"), ("outputs", "resume"), ("manifest", "put")] {
        if let Some(located) = command.get(key).filter(|_| action != of) {
            found.push(located.problem(SENSELESS, format!("`{key}` is for `do: {of}`, not for `do: {action}`")));
        }
    }
    if action == "put" && command.get("manifest").is_none() {
        found.push(command.problem(SENSELESS, "`put` needs a `manifest`: the ConfigMap or Secret"));
    }
    timed(command, found);
}

fn timed(located: &Located<'_>, found: &mut Vec<Problem>) {
    if located.get("at").is_none() {
        found.push(located.problem(SENSELESS, "it does not say when").help("add `at: 10s`"));
    }
}

fn expected(expect: &Located<'_>, found: &mut Vec<Problem>) {
    if let Some(rejected) = expect.get("rejected").filter(|rejected| rejected.value != &Value::Bool(false)) {
        for (key, located) in expect.entries().filter(|(key, _)| !matches!(*key, "rejected" | "warnings")) {
            let text = format!("what is rejected does not run, so `{key}` cannot be expected as well");
            found.push(located.problem(SENSELESS, text));
        }
        if rejected.value.as_array().is_some_and(Vec::is_empty) {
            found.push(rejected.problem(SENSELESS, "an empty list expects nothing").help("write `rejected: true`"));
        }
    }
    for order in expect.items_of("order") {
        for (_, names) in order.entries().filter(|(_, names)| names.items().count() < 2) {
            found.push(names.problem(SENSELESS, "an order needs two names at least"));
        }
    }
}

/// A file beside the test file.
pub(crate) fn beside(case: &Case<'_>, name: &str) -> PathBuf {
    let folder = FilePath::new(case.file()).parent().unwrap_or(FilePath::new(""));
    folder.join(name)
}

/// Where an inline object stands.
pub(crate) fn inline(located: &Located<'_>) -> (Arc<Document>, Path) {
    (Arc::clone(&located.test_document.document), located.path.clone())
}
