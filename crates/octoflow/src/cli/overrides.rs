//! Options that override parts of a workflow: arguments, entrypoint, name. Shared by `run`, `plan` and `submit`.

use std::path::PathBuf;

use clap::Args;

use super::format::key_value;
use crate::load::adjust::Overrides;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OverrideArgs {
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

impl OverrideArgs {
    /// Returns the overrides, without those of the parameter file.
    pub(crate) fn overrides(&self, namespace: Option<&str>) -> Overrides {
        Overrides {
            parameters: self.parameters.clone(),
            entrypoint: self.entrypoint.clone(),
            namespace: namespace.map(str::to_owned),
            ..Overrides::default()
        }
    }
}
