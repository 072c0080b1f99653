//! `octoflow run FILE…`: runs manifests to their end on this machine. Progress goes to standard error, the result to
//! standard output. Prepare, submit, watch, report: one file each.

mod controller;
mod interrupt;
pub(super) mod prepare;
mod progress;
mod report;
mod submit;
mod tail;
mod watch;

use anyhow::Result;
use octoflow_model::RunId;

use super::Context;
use crate::{
    cli::{Run, Runtime},
    exit::{Exit, Failure},
};
use controller::LocalController;
use prepare::Prepared;
use watch::{RunEnding, Watched};

pub(crate) fn run(args: &Run, context: &Context) -> Result<Exit> {
    refuse_missing_runtimes(args.execution.runtime)?;
    // Everything is validated before anything is opened, so that a wrong manifest leaves no trace.
    let prepared = match &args.resume {
        Some(_) => None,
        None => match prepare::prepare(args, context)? {
            Some(prepared) => Some(prepared),
            None => return Ok(Exit::InvalidManifest),
        },
    };
    if args.dry_run {
        let workflows = prepared.into_iter().flat_map(|prepared| prepared.workflows);
        return report::would_run(args, workflows.map(|ready| ready.manifest).collect(), context);
    }
    let controller = LocalController::open(args, context)?;
    let outcome = go(args, prepared, &controller, context);
    // In any case durable data stays and the directory is released.
    match (outcome, controller.close()) {
        (Ok(exit), Ok(())) => Ok(exit),
        (Err(error), _) | (Ok(_), Err(error)) => Err(error),
    }
}

fn go(args: &Run, prepared: Option<Prepared>, controller: &LocalController, context: &Context) -> Result<Exit> {
    let runs = match (&args.resume, prepared) {
        (Some(name), _) => vec![submit::resume(name, args, controller, context)?],
        (None, Some(prepared)) => submit::submit(prepared, controller)?,
        (None, None) => unreachable!("without --resume there are manifests"),
    };
    let watched = watch::watch(args, runs, controller, context)?;
    conclude(args, &watched, controller, context)
}

fn conclude(args: &Run, watched: &Watched, controller: &LocalController, context: &Context) -> Result<Exit> {
    if watched.ending == RunEnding::LeftRunning {
        for run in watched.runs.iter().filter(|run| run.followed.ended.is_none()) {
            context.output.talk(&format!(
                "{1} {0} is left as it is; take it up again with: octoflow run --resume {0}",
                run.name,
                run.followed.noun()
            ));
        }
        return Ok(Exit::Interrupted);
    }
    // The whole object is read only if requested: a run of a million nodes takes gigabytes.
    let read = |run: RunId| if args.output.is_some() { controller.object(run) } else { controller.brief(run) };
    let objects: Vec<_> = watched.runs.iter().map(|run| read(run.id)).collect::<Result<_>>()?;
    report::report(args, watched, &objects, controller, context)?;
    let workload = report::exit(&objects);
    Ok(match watched.ending {
        RunEnding::Natural => workload,
        RunEnding::TimedOut => Exit::TimedOut,
        RunEnding::Interrupted | RunEnding::LeftRunning => Exit::Interrupted,
    })
}

pub(crate) fn refuse_missing_runtimes(runtime: Runtime) -> Result<()> {
    let name = match runtime {
        Runtime::Process => return Ok(()),
        Runtime::Docker => "docker",
        Runtime::Kubernetes => "kubernetes",
    };
    Err(Failure::usage(format!("the {name} runtime is not available yet in this build"))
        .help("leave --runtime out to run the steps as processes of this machine")
        .into())
}
