//! `octoflow config view|set|path`: the settings file.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::{
    cli::ConfigCommand,
    config::settings::{self, KEYS, Settings},
    exit::{Exit, Failure},
    output::{
        Output,
        json::objects,
        table::{Cell, Table},
    },
};

pub(crate) fn configure(command: &ConfigCommand, output: &Output) -> Result<Exit> {
    let path = place()?;
    match command {
        ConfigCommand::Path => output.data(&format!("{}\n", path.display()))?,
        ConfigCommand::Set { key, value } => {
            let mut settings = Settings::load(&path)?;
            settings.set(key, value)?;
            settings.save(&path)?;
        }
        ConfigCommand::View { output: format } => {
            let settings = Settings::load(&path)?;
            let shown = |key: &str| settings.get(key).map(|value| if key == "token" { "***" } else { value });
            let values: Map<String, Value> =
                KEYS.iter().filter_map(|(key, _)| Some(((*key).to_owned(), json!(shown(key)?)))).collect();
            let values = Value::Object(values);
            if let Some(text) = format.as_ref().and_then(|format| objects(format, std::slice::from_ref(&values), false))
            {
                output.data(&text)?;
                return Ok(Exit::Succeeded);
            }
            let mut table = Table::new(&["SETTING", "VALUE", "MEANING"]);
            for (key, meaning) in KEYS {
                table.push(vec![Cell::new(key), Cell::new(shown(key).unwrap_or("-")), Cell::new(meaning)]);
            }
            output.text(&table.render(output.paint()))?;
        }
    }
    Ok(Exit::Succeeded)
}

fn place() -> Result<PathBuf> {
    settings::path().ok_or_else(|| {
        Failure::usage("there is no place for settings: neither OCTOFLOW_CONFIG nor XDG_CONFIG_HOME nor HOME is set")
            .into()
    })
}
