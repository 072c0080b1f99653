//! Arguments of `octoflow convert`.

use std::path::PathBuf;

use clap::Args;

use super::format::{Format, ObjectFormats, one_of};

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// What to convert; `-` is standard input, a directory means its .yaml, .yml and .json files
    #[arg(value_name = "FILE|DIR|-", required = true)]
    pub manifests: Vec<PathBuf>,
    /// How to print the result
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "yaml|json", default_value = "yaml")]
    pub output: Format,
}
