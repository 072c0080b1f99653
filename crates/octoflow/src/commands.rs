//! The commands, one per file. Each takes its arguments, asks the data directory or a server, and passes the result to
//! `output`.

mod archive;
mod completion;
mod configure;
mod convert;
mod cp;
mod cron;
mod delete;
mod describe;
mod diff;
mod doctor;
mod explain;
mod export;
mod get;
mod hook;
mod kubeconfig;
mod lint;
mod list;
mod logs;
mod metrics;
mod node;
mod node_set;
mod observe;
mod open;
mod pipeline;
mod plan;
mod queue;
mod resubmit;
mod retry;
mod run;
mod schema;
mod server;
mod steer;
mod stored;
mod submit;
mod test;
mod token;
mod version;
mod wait;
mod watch;

pub(crate) use export::FORMAT as EXPORT_FORMAT;
pub(crate) use pipeline::payload;
pub(crate) use stored::address;
pub(crate) use test::TestResult;

use std::path::PathBuf;

use anyhow::Result;
use octoflow_engine::{argo, kinds::Kind};
use octoflow_store::SecretsKey;

use crate::{
    cli::{Cli, Command, NodeCommand, ServerArgs, StoredCommand},
    client::{self, ChosenServer, Client, Endpoint},
    config::{
        self,
        settings::{self, Settings},
    },
    exit::Exit,
    local,
    output::Output,
    source::{LocalSource, ServerSource, Source, remote::Request},
};

/// Context of every command.
#[derive(Debug)]
pub(crate) struct Context {
    pub output: Output,
    pub data_dir: PathBuf,
    /// Key file for the Secrets in the data directory.
    pub secrets_key_file: Option<PathBuf>,
    pub server_args: ServerArgs,
}

impl Context {
    /// Returns the source of runs: the named server or the one that holds the data directory, else the directory
    /// itself.
    pub(crate) fn source(&self) -> Result<Box<dyn Source>> {
        Ok(match self.found()? {
            ChosenServer::Named(endpoint) | ChosenServer::Holder(endpoint) => {
                self.output.detail(&format!("server: {}", endpoint.url));
                Box::new(ServerSource::new(Client::new(endpoint)?, self.output))
            }
            ChosenServer::Assumed(_) => {
                Box::new(LocalSource::open(self.data_dir.clone(), self.secrets_key_file.clone(), self.output)?)
            }
        })
    }

    /// Reads the key for the Secrets in the data directory, if one was named.
    pub(crate) fn secrets_key(&self) -> Result<Option<SecretsKey>> {
        self.secrets_key_file.as_deref().map(SecretsKey::read).transpose().map_err(local::explained)
    }

    /// Returns the server, if one was named or holds the data directory.
    pub(crate) fn named_server(&self) -> Result<Option<Client>> {
        match self.found()? {
            ChosenServer::Named(endpoint) | ChosenServer::Holder(endpoint) => Client::new(endpoint).map(Some),
            ChosenServer::Assumed(_) => Ok(None),
        }
    }

    /// Returns the server as a source, for commands that need one.
    pub(crate) fn source_of_server(&self) -> Result<Box<dyn Source>> {
        Ok(Box::new(ServerSource::new(self.client()?, self.output)))
    }

    /// Returns a constructor for the server as a source on another thread.
    pub(crate) fn server_elsewhere(&self) -> impl Fn() -> Result<Box<dyn Source>> + Send + Sync + use<> {
        let (output, data_dir, server_args) = (self.output, self.data_dir.clone(), self.server_args.clone());
        let context = Self { output, data_dir, secrets_key_file: self.secrets_key_file.clone(), server_args };
        move || context.source_of_server()
    }

    /// Returns a constructor for the data directory as a source on another thread.
    pub(crate) fn directory_elsewhere(&self) -> impl Fn() -> Result<Box<dyn Source>> + Send + Sync + use<> {
        let (data_dir, secrets_key_file, output) = (self.data_dir.clone(), self.secrets_key_file.clone(), self.output);
        move || Ok(Box::new(LocalSource::open(data_dir.clone(), secrets_key_file.clone(), output)?))
    }

    /// Returns the endpoint of the server.
    pub(crate) fn endpoint(&self) -> Result<Endpoint> {
        self.found().map(ChosenServer::endpoint)
    }

    /// Returns the client of the server, for commands that need one.
    pub(crate) fn client(&self) -> Result<Client> {
        let endpoint = self.found()?.endpoint();
        self.output.detail(&format!("server: {}", endpoint.url));
        Client::new(endpoint)
    }

    fn found(&self) -> Result<ChosenServer> {
        let settings = settings::path().map(|path| Settings::load(&path)).transpose()?.unwrap_or_default();
        client::find(&self.server_args, &settings, &self.data_dir)
    }
}

/// Runs the command.
pub(crate) fn dispatch(cli: Cli, output: Output) -> Result<Exit> {
    let command = match cli.command {
        Command::Completion(args) => return completion::completion(&args, &output),
        Command::Lint(args) => return lint::lint(&args, &output),
        Command::Convert(args) => return convert::convert(&args, &output),
        Command::Schema(args) => return schema::schema(&args, &output),
        Command::Test(args) => return test::test(&args, &output),
        Command::Config(args) => return configure::configure(&args, &output),
        command => command,
    };
    let context = Context {
        output,
        data_dir: config::data_dir(cli.global.data_dir)?,
        // An empty environment variable counts as unset.
        secrets_key_file: cli.global.secrets_key_file.filter(|file| !file.as_os_str().is_empty()),
        server_args: cli.global.server_args,
    };
    context.output.detail(&format!("data directory: {}", context.data_dir.display()));
    match command {
        Command::Run(args) => run::run(&args, &context),
        Command::Submit(args) => submit::submit(&args, &context),
        Command::Server(args) => server::server(&args, &context),
        Command::Plan(args) => plan::plan(&args, &context),
        Command::List(args) => list::list(&args, &context),
        Command::Get(args) => get::get(&args, &context),
        Command::Describe(args) => describe::describe(&args, &context),
        Command::Watch(args) => watch::watch(&args, &context),
        Command::Wait(args) => wait::wait(&args, &context),
        Command::Logs(args) => logs::logs(&args, &context),
        Command::Explain(args) => explain::explain(&args, &context),
        Command::Cron(command) => cron::cron(&command, &context),
        Command::Metrics => metrics::metrics(&context),
        Command::Delete(args) => delete::delete(&args, &context),
        Command::Stop(args) => {
            let request = Request::Stop { selector: args.node_field_selector, message: args.message };
            steer::steer(&args.target, &request, &context)
        }
        Command::Terminate(target) => steer::steer(&target, &Request::Terminate, &context),
        Command::Suspend(target) => steer::steer(&target, &Request::Suspend, &context),
        Command::Resume(args) => {
            let supplied = args.output_parameters.iter().cloned().collect();
            steer::steer(&args.target, &Request::Resume { selector: args.node_field_selector, supplied }, &context)
        }
        Command::Retry(args) => retry::retry(&args, &context),
        Command::Resubmit(args) => resubmit::resubmit(&args, &context),
        Command::Node(NodeCommand::Set(args)) if args.capacity.is_none() => node_set::node_set(&args, &context),
        Command::Node(command) => node::node(&command, &context),
        Command::Queue(command) => queue::queue(&command, &context),
        Command::Feature(command) => pipeline::feature(&command, &context),
        Command::Plugin(command) => pipeline::plugin(&command, &context),
        Command::Job(command) => pipeline::job(&command, &context),
        Command::Hook(command) => hook::hook(&command, &context),
        Command::Cp(args) => cp::cp(&args, &context),
        Command::Diff(args) => diff::diff(&args, &context),
        Command::Export(args) => export::export(&args, &context),
        Command::Open(args) => open::open(&args, &context),
        Command::Template(command) => stored(command, &argo::WORKFLOW_TEMPLATE, &context),
        Command::ClusterTemplate(command) => stored(command, &argo::CLUSTER_TEMPLATE, &context),
        Command::Archive(command) => archive::archive(&command, &context),
        Command::Token(command) => token::token(&command, &context),
        Command::Version(args) => version::version(&args, &context),
        Command::Kubeconfig(args) => kubeconfig::kubeconfig(&args, &context),
        Command::Doctor(args) => doctor::doctor(&args, &context),
        Command::Completion(_)
        | Command::Convert(_)
        | Command::Lint(_)
        | Command::Schema(_)
        | Command::Test(_)
        | Command::Config(_) => {
            unreachable!("these need no data directory and are done above")
        }
    }
}

fn stored(command: StoredCommand, kind: &'static Kind, context: &Context) -> Result<Exit> {
    stored::stored(&command, kind, context)
}
