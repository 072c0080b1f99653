//! `octoflow server`: keeps the house open and answers requests until it is told to stop.

use anyhow::Result;
use octoflow_server::{Config, Error, serve};

use super::Context;
use crate::{cli::Server, config, exit::Exit, local, node};

pub(crate) fn server(args: &Server, context: &Context) -> Result<Exit> {
    super::run::refuse_missing_runtimes(args.runtime)?;
    let config = Config {
        listen: args.listen,
        house: node::config(args.isolation, args.parallelism, config::egress()?, context)?,
        longest_body: Config::LONGEST_BODY,
        retention: config::retention()?,
    };
    let served = serve(config, |address, notices| {
        notices.iter().for_each(|notice| context.output.talk(notice));
        context.output.talk(&format!("octoflow listens on http://{address}"));
    });
    match served {
        Ok(()) => Ok(Exit::Succeeded),
        Err(Error::House(octoflow_control::Error::Store(error))) => Err(local::explained(error)),
        Err(error) => Err(error.into()),
    }
}
