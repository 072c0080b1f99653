//! Arguments of the commands about the program itself and the machine it is on.

use clap::Args;

use super::format::{Format, ObjectFormats, one_of};

#[derive(Debug, Args)]
pub(crate) struct Completion {
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct Version {
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}
