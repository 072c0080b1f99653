//! Collects the errors and warnings of an admission with their paths. A path is a chain of borrowed steps that is
//! materialised only when something is reported, so that a correct manifest costs nothing.

use octoflow_manifest::{Path, Problem, Problems, Segment};

use crate::admit::{code, shape::MAX_PROBLEMS};

/// Position of a call in its template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallPosition {
    Step { group: usize, step: usize },
    Task(usize),
}

/// A path into the manifest, as a borrowed chain.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    up: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Base(&'a Path),
    Key(&'a str),
    Index(usize),
    Call(CallPosition),
    /// A substring of the text at the path.
    Part(&'a str),
}

impl<'a> At<'a> {
    pub(crate) fn base(path: &'a Path) -> Self {
        Self { up: None, step: Step::Base(path) }
    }

    pub(crate) fn key<'b>(&'b self, key: &'b str) -> At<'b> {
        At { up: Some(self), step: Step::Key(key) }
    }

    pub(crate) fn index(&self, index: usize) -> At<'_> {
        At { up: Some(self), step: Step::Index(index) }
    }

    pub(crate) fn call(&self, site: CallPosition) -> At<'_> {
        At { up: Some(self), step: Step::Call(site) }
    }

    /// Points at a substring of the text at this path.
    pub(crate) fn part<'b>(&'b self, part: &'b str) -> At<'b> {
        At { up: Some(self), step: Step::Part(part) }
    }

    fn within(&self) -> Option<String> {
        let Step::Part(part) = self.step else { return None };
        Some(part.to_owned())
    }

    pub(crate) fn path(&self) -> Path {
        let mut path = self.up.map(At::path).unwrap_or_default();
        match self.step {
            Step::Base(base) => path.0.extend(base.segments().iter().cloned()),
            Step::Key(key) => path.push(key),
            Step::Index(index) => path.push(index),
            Step::Part(_) => {}
            Step::Call(CallPosition::Step { group, step }) => {
                path.0.extend([Segment::from("steps"), Segment::from(group), Segment::from(step)]);
            }
            Step::Call(CallPosition::Task(task)) => {
                path.0.extend([Segment::from("dag"), Segment::from("tasks"), Segment::from(task)]);
            }
        }
        path
    }
}

/// Errors and warnings found so far.
#[derive(Default)]
pub(crate) struct Findings {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Findings {
    pub(crate) fn new(problems: Vec<Problem>, warnings: Vec<Problem>) -> Self {
        Self { problems, warnings }
    }

    pub(crate) fn error(&mut self, at: &At<'_>, code: &'static str, message: impl FnOnce() -> String) {
        self.error_with(at, code, || (message(), None));
    }

    /// Adds an error with a help text, if there is one.
    pub(crate) fn error_with(
        &mut self,
        at: &At<'_>,
        code: &'static str,
        tell: impl FnOnce() -> (String, Option<String>),
    ) {
        if self.is_full() {
            return;
        }
        let (message, help) = tell();
        let mut problem = Problem::error(code, message).path(at.path());
        problem.help = help;
        problem.within = at.within();
        self.problems.push(problem);
    }

    /// Moves problems to the paths the rule returns, where a user can see them, and prefixes each with its origin.
    pub(crate) fn relocate(&mut self, rule: impl Fn(&Path) -> Option<(Path, String)>) {
        for problem in self.problems.iter_mut().chain(&mut self.warnings) {
            // A problem that is already there needs no origin.
            let moved = problem.path.as_ref().and_then(|path| rule(path).filter(|(place, _)| place != path));
            if let Some((place, origin)) = moved {
                problem.message.insert_str(0, &origin);
                problem.path = Some(place);
                problem.within = None;
            }
        }
    }

    /// Returns everything as warnings.
    pub(crate) fn softened(self) -> Vec<Problem> {
        let mut all = self.problems;
        all.extend(self.warnings);
        all.iter_mut().for_each(|problem| problem.severity = octoflow_manifest::Severity::Warning);
        all
    }

    /// Adds the findings of another check.
    pub(crate) fn absorb(&mut self, problems: Vec<Problem>, warnings: Vec<Problem>) {
        let room = MAX_PROBLEMS.saturating_sub(self.problems.len());
        self.problems.extend(problems.into_iter().take(room));
        self.warnings.extend(warnings);
    }

    /// Reports whether the limit is reached and further errors are dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    pub(crate) fn warn(&mut self, at: &At<'_>, code: &'static str, message: impl FnOnce() -> String) {
        self.warn_with(at, code, || (message(), None));
    }

    /// Adds a warning with a help text, if there is one.
    pub(crate) fn warn_with(
        &mut self,
        at: &At<'_>,
        code: &'static str,
        tell: impl FnOnce() -> (String, Option<String>),
    ) {
        if self.warnings.len() < MAX_PROBLEMS {
            let (message, help) = tell();
            let mut problem = Problem::warning(code, message).path(at.path());
            problem.help = help;
            problem.within = at.within();
            self.warnings.push(problem);
        }
    }

    /// Returns the warnings of an admissible manifest, or all errors of another one, followed by its warnings.
    pub(crate) fn verdict(mut self) -> Result<Vec<Problem>, Problems> {
        if self.problems.is_empty() {
            return Ok(self.warnings);
        }
        if self.is_full() {
            let message = format!("only the first {MAX_PROBLEMS} problems are shown, there may be more");
            self.problems.push(Problem::error(code::UNTOLD, message).help("fix these and try again"));
        }
        self.problems.append(&mut self.warnings);
        Err(Problems(self.problems))
    }
}
