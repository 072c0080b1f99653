//! What a workflow may be given on the way: arguments, another entrypoint, a name. `run`, `plan` and `submit` share it.

use std::path::PathBuf;

use clap::Args;

use super::format::key_value;
use crate::adjust::Wishes;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Wished {
    /// Set a parameter of the workflow
    #[arg(short = 'p', long = "parameter", value_name = "NAME=VALUE", value_parser = key_value)]
    pub parameters: Vec<(String, String)>,
    /// Set parameters from a YAML or JSON file with names and values
    #[arg(long, value_name = "FILE")]
    pub parameter_file: Option<PathBuf>,
    /// Start at this template instead
    #[arg(long, value_name = "TEMPLATE")]
    pub entrypoint: Option<String>,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Naming {
    /// Call the run this
    #[arg(long)]
    pub name: Option<String>,
    /// Begin the run's name with this and add letters that make it unique
    #[arg(long, value_name = "PREFIX", conflicts_with = "name")]
    pub generate_name: Option<String>,
}

impl Wished {
    /// What is to be changed in the workflows, without what stands in the file of parameters.
    pub(crate) fn wishes(&self, namespace: Option<&str>) -> Wishes {
        Wishes {
            parameters: self.parameters.clone(),
            entrypoint: self.entrypoint.clone(),
            namespace: namespace.map(str::to_owned),
            ..Wishes::default()
        }
    }
}
