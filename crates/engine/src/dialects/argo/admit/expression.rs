//! Checks expressions: they parse, and what they refer to can exist.
//! An expression that handles missing values is accepted.

use super::{
    code,
    findings::{At, Findings},
    scope::{Found, StaticScope},
};
use crate::{
    admit::shape::short,
    expr::{
        Error,
        lang::{self, Expression},
        nearest,
    },
};

/// Root names that an expression can refer to.
const ROOTS: [&str; 11] =
    ["inputs", "outputs", "workflow", "steps", "tasks", "item", "retries", "lastRetry", "pod", "node", "sprig"];

/// Checks an expression that fills a whole field. One with variables is only known at run time.
pub(super) fn field(
    report: &mut Findings,
    at: &At<'_>,
    scope: &StaticScope<'_>,
    text: &str,
    tasks: &mut dyn FnMut(&mut Findings, &At<'_>, usize),
) {
    if !text.contains("{{") {
        check(report, at, scope, text, &lang::parse(text), tasks);
    }
}

/// Reports what is wrong with an expression. References to tasks of the DAG go to `tasks`.
pub(super) fn check(
    report: &mut Findings,
    at: &At<'_>,
    scope: &StaticScope<'_>,
    text: &str,
    parsed: &Result<Expression, Error>,
    tasks: &mut dyn FnMut(&mut Findings, &At<'_>, usize),
) {
    let program = match parsed {
        Ok(program) => program,
        Err(error) => {
            report.error(at, code::EXPRESSION, || {
                format!(
                    "the expression `{}` is wrong at character {}: {}",
                    short(text.trim()),
                    error.column,
                    error.message
                )
            });
            return;
        }
    };
    for flaw in program.flaws() {
        report.error(at, code::EXPRESSION, || {
            format!("the expression `{}` is wrong at character {}: {}", short(text.trim()), flaw.column, flaw.message)
        });
    }
    let prepared = ["??", "?.", "nil"].iter().any(|sign| text.contains(sign));
    for reference in program.roots() {
        let shown = reference.path.join(".");
        match scope.find_path(&reference.path) {
            Found::Unknown if !prepared => report.error_with(at, code::UNRESOLVED, || {
                let message =
                    format!("unknown name `{}` (character {} of the expression)", short(&shown), reference.column);
                (format!("failed to resolve {{{{={}}}}}: {message}", short(text)), scope.help(&shown))
            }),
            // A submission may add arguments; all other names are written in the manifest.
            Found::Unknown if reference.root() != "workflow" => report.warn_with(at, code::UNRESOLVED, || {
                let message = format!("`{}` can never exist, so it is always nil", short(&shown));
                (message, scope.help(&shown))
            }),
            Found::Unfilled(why) => {
                report.warn(at, code::UNRESOLVED, || format!("`{}` has no value: {why}", short(&shown)))
            }
            Found::Task(task) if !prepared => tasks(report, at, task),
            Found::Known | Found::Task(_) | Found::Unknown | Found::Foreign => {}
        }
        if !ROOTS.contains(&reference.root())
            && let Some(near) = nearest(reference.root(), ROOTS)
        {
            report.warn(at, code::UNRESOLVED, || format!("the expression refers to `{shown}`; did you mean `{near}`?"));
        }
    }
}
