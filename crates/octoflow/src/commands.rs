//! One file a command. Each takes its arguments, asks the data directory, and hands the result to `output`.

mod completion;
mod delete;
mod describe;
mod doctor;
mod explain;
mod get;
mod kubeconfig;
mod lint;
mod list;
mod logs;
mod metrics;
mod plan;
mod run;
mod schema;
mod server;
mod steer;
mod test;
mod version;

pub(crate) use test::Tried;

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    cli::{Cli, Command, Target},
    config,
    exit::Exit,
    output::Output,
    remote::Request,
};

/// What every command has at hand.
#[derive(Debug)]
pub(crate) struct Context {
    pub output: Output,
    pub data_dir: PathBuf,
}

/// Does what was asked for.
pub(crate) fn dispatch(cli: Cli, output: Output) -> Result<Exit> {
    let command = match cli.command {
        Command::Completion(args) => return completion::completion(&args, &output),
        Command::Kubeconfig(args) => return kubeconfig::kubeconfig(&args, &output),
        Command::Lint(args) => return lint::lint(&args, &output),
        Command::Schema(args) => return schema::schema(&args, &output),
        Command::Test(args) => return test::test(&args, &output),
        Command::Version(args) => return version::version(&args, &output),
        command => command,
    };
    let context = Context { output, data_dir: config::data_dir(cli.global.data_dir)? };
    context.output.detail(&format!("data directory: {}", context.data_dir.display()));
    match command {
        Command::Run(args) => run::run(&args, &context),
        Command::Server(args) => server::server(&args, &context),
        Command::Plan(args) => plan::plan(&args, &context),
        Command::List(args) => list::list(&args, &context),
        Command::Get(args) => get::get(&args, &context),
        Command::Describe(args) => describe::describe(&args, &context),
        Command::Logs(args) => logs::logs(&args, &context),
        Command::Explain(args) => explain::explain(&args, &context),
        Command::Metrics => metrics::metrics(&context),
        Command::Delete(args) => delete::delete(&args, &context),
        Command::Stop(target) => steer(&target, &Request::Stop, &context),
        Command::Terminate(target) => steer(&target, &Request::Terminate, &context),
        Command::Suspend(target) => steer(&target, &Request::Suspend, &context),
        Command::Resume(args) => {
            let supplied = args.output_parameters.iter().cloned().collect();
            steer(&args.target, &Request::Resume { selector: args.node_field_selector, supplied }, &context)
        }
        Command::Doctor(args) => doctor::doctor(&args, &context),
        Command::Completion(_)
        | Command::Kubeconfig(_)
        | Command::Lint(_)
        | Command::Schema(_)
        | Command::Test(_)
        | Command::Version(_) => unreachable!("these need no data directory and are done above"),
    }
}

fn steer(target: &Target, request: &Request, context: &Context) -> Result<Exit> {
    steer::steer(target, request, context)
}
