//! `octoflow server`: serves the controller's API until it is stopped.

use anyhow::Result;
use octoflow_control::Place;
use octoflow_server::{Config, Error, serve, start_log};

use super::Context;
use crate::{
    cli::Server,
    config::{self, node, system},
    exit::{Exit, Failure},
    local,
};

pub(crate) fn server(args: &Server, context: &Context) -> Result<Exit> {
    super::run::refuse_missing_runtimes(args.execution.runtime)?;
    system::limit_malloc_arenas();
    let lines =
        start_log(args.log_format.into(), &args.log_filter).map_err(|error| Failure::usage(error.to_string()))?;
    let mut controller = node::config(&args.execution, config::server_egress()?, context)?;
    if let Place::Processes(processes) = &mut controller.place {
        processes.plugin_egress = config::plugin_egress(args.listen)?;
        processes.host_paths = config::host_paths(&args.allow_host_path)?;
    }
    let config = Config {
        longest_body: args.max_body,
        limits: args.limits(),
        tls: args.tls(),
        admin_token_file: args.admin_token_file.clone(),
        allow_default_password: args.allow_default_password,
        insecure: args.insecure,
        metrics_open: args.metrics_open,
        public_names: args.public_name.clone(),
        retention: config::retention()?,
        log_thread: Some(lines.thread()),
        ..Config::new(args.listen, controller)
    };
    let served = serve(config, |started| {
        started.notices.iter().for_each(|notice| context.output.talk(notice));
        if let Some(fingerprint) = started.fingerprint {
            context.output.talk(&format!("the certificate has the SHA-256 fingerprint {fingerprint}"));
        }
        context.output.talk(&format!("octoflow listens on {}", started.url));
    });
    match served {
        Ok(()) => Ok(Exit::Succeeded),
        Err(Error::Controller(octoflow_control::Error::Store(error))) => Err(local::explained(error)),
        Err(error @ Error::Unsafe { .. }) => Err(Failure::usage(error.to_string()).into()),
        Err(error) => Err(error.into()),
    }
}
