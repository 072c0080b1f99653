//! Following submitted runs: watching, waiting, printing logs, and the final summary.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use octoflow_store::RunRow;
use serde_json::Value;

use super::{
    Context,
    get::{self, View},
    logs::{self, LogOptions},
};
use crate::{
    cli::{After, Format},
    exit::{Exit, Failure},
    output::{clock, colour::phase_colour, remote_progress::RemoteProgress},
    source::{LogQuery, Source, below, workflow::Workflow},
};

/// Prints submitted runs, and follows them if requested.
pub(crate) fn handed_over(
    made: &[Value],
    verb: &str,
    after: &After,
    output: Option<&Format>,
    context: &Context,
) -> Result<Exit> {
    if !after.stays() {
        if output.is_some() {
            return get::print(made, &View { output, ..View::default() }, &context.output);
        }
        made.iter()
            .map(Workflow::new)
            .try_for_each(|one| context.output.line(&format!("{} {} {verb}", one.noun(), one.name())))?;
        return Ok(Exit::Succeeded);
    }
    let source = context.source_of_server()?;
    let until = after.timeout.map(|span| Instant::now() + span);
    let mut finals = Vec::new();
    let mut late = false;
    for one in made {
        let workflow = Workflow::new(one);
        context.output.talk(&format!("{} {} {verb}", workflow.noun(), workflow.name()));
        let row = source.find(workflow.namespace(), &format!("{}/{}", workflow.noun(), workflow.name()))?;
        let form = if after.log {
            Form::Log { to_stderr: output.is_some(), raw: after.raw }
        } else if after.watch {
            Form::Watch
        } else {
            Form::Wait
        };
        match until_over(&*source, &row, form, until, made.len() > 1, context)? {
            Some(object) => finals.push(object),
            None => {
                late = true;
                finals.push(source.object(&row)?);
            }
        }
    }
    match output {
        Some(format) => {
            let view = View { output: Some(format), ..View::default() };
            get::print(&finals, &view, &context.output)?;
        }
        None => finals.iter().try_for_each(|object| context.output.line(&verdict(object, context)))?,
    }
    Ok(if late { Exit::TimedOut } else { finals.iter().map(ending).fold(Exit::Succeeded, Exit::worse) })
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Watch,
    Wait,
    Log { to_stderr: bool, raw: bool },
}

/// Follows a run and returns its final object; `None` if the deadline passed first.
pub(crate) fn until_over(
    source: &dyn Source,
    row: &RunRow,
    form: Form,
    until: Option<Instant>,
    several: bool,
    context: &Context,
) -> Result<Option<Value>> {
    let mut news = RemoteProgress::new(context.output, several);
    let mut last = None;
    let reading = match form {
        Form::Log { to_stderr, raw } => {
            let query = LogQuery { follow: true, ..LogQuery::default() };
            let owner = several.then(|| row.name.clone());
            let options = LogOptions { query, to_stderr, owner, raw, ..LogOptions::default() };
            let (output, row, source) = (context.output, row.clone(), context.server_elsewhere());
            Some(thread::spawn(move || logs::print_whole(&*source()?, &source, &row, &options, &output)))
        }
        Form::Watch | Form::Wait => None,
    };
    source.watch(row, until, &mut |object| {
        if matches!(form, Form::Watch) {
            if below::may_have(row) {
                news.tell(&below::with_nodes_below(source, row, object.clone())?);
            } else {
                news.tell(object);
            }
        }
        let over = Workflow::new(object).finished().is_some();
        last = over.then(|| object.clone());
        Ok(if over { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) })
    })?;
    // The log is printed completely before the end is reported; after the deadline there is no end to wait for.
    if let (Some(reading), true) = (reading, last.is_some()) {
        reading.join().expect("printing lines does not panic")?;
    }
    Ok(last)
}

/// Returns the summary line, such as `name Succeeded (2/2 in 3s)`, as `run` prints it.
pub(crate) fn verdict(object: &Value, context: &Context) -> String {
    let workflow = Workflow::new(object);
    let phase = context.output.paint().paint(workflow.phase(), phase_colour(workflow.phase()));
    let message = match workflow.message() {
        "" => String::new(),
        message => format!(": {}", crate::output::colour::one_line(&workflow.readable(message))),
    };
    let progress = workflow.status()["progress"].as_str().unwrap_or_default();
    let took = match (workflow.started(), workflow.finished()) {
        (Some(began), Some(ended)) => format!(" in {}", clock::short(ended.since(began))),
        _ => String::new(),
    };
    format!("{} {phase}{message} ({progress}{took})", workflow.name())
}

pub(crate) fn ending(object: &Value) -> Exit {
    if Workflow::new(object).succeeded() { Exit::Succeeded } else { Exit::Failed }
}

pub(crate) fn deadline(span: Option<Duration>) -> Option<Instant> {
    span.map(|span| Instant::now() + span)
}

pub(crate) fn too_late(name: &str) -> anyhow::Error {
    Failure::new(Exit::TimedOut, format!("run `{name}` is not over yet")).into()
}
