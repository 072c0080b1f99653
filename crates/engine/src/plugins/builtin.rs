//! The plugins that are part of this program. Each is a pure function of what a plugin over the network is sent, the
//! settings of its feature, and what is known of the user's other jobs; it answers the same documents.

mod form;
mod gang;
mod history;
mod hours;
mod kubeflow;
mod mpi;
mod peers;
mod pytorch;
mod quota;
mod settings;
mod templates;
mod tensorflow;
mod user;
mod volume;

use octoflow_model::Time;
use serde_json::Value;

use settings::Settings;

/// How many of a user's last jobs count as the history.
pub const HISTORY: usize = 20;

/// What a plugin is told of the world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    pub now: Time,
    /// Jobs of the same user that hold a place: they run, or are past the gates. Without the one that asks.
    pub running: u32,
    /// How the user's last jobs ended, the newest first: true if they succeeded. At most [`HISTORY`].
    pub history: Vec<bool>,
}

/// Which part of a [`Context`] a plugin reads, so that nobody looks up the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextNeed {
    /// No more than the time.
    Time,
    Running,
    History,
}

/// Returns what a built-in plugin needs to know.
pub fn need(name: &str) -> ContextNeed {
    match name {
        "quota" => ContextNeed::Running,
        "priority-by-history" => ContextNeed::History,
        _ => ContextNeed::Time,
    }
}

/// What a plugin is asked about: the parts of what a plugin over the network is sent.
struct Question<'a> {
    factors: &'a Value,
    header: &'a Value,
    job: &'a Value,
}

impl Question<'_> {
    fn header(&self, name: &str) -> &str {
        self.header[name].as_str().unwrap_or_default()
    }
}

/// Asks a built-in plugin. `input` is `{factors, header, job}`. On error returns why it cannot answer.
pub fn answer(name: &str, input: &Value, options: &Value, context: &Context) -> Result<Value, String> {
    let question = Question { factors: &input["factors"], header: &input["header"], job: &input["job"] };
    let settings = Settings::new(name, options)?;
    match name {
        "tfjob" => none(&settings).and_then(|()| tensorflow::translate(&question)),
        "pytorchjob" => none(&settings).and_then(|()| pytorch::translate(&question)),
        "mpijob" => none(&settings).and_then(|()| mpi::translate(&question)),
        "job-form" => none(&settings).and_then(|()| form::translate(&question)),
        "priority-by-user" => Ok(user::advise(&question, &user::Priorities::read(&settings)?)),
        "priority-by-history" => Ok(history::advise(&history::Scale::read(&settings)?, context)),
        "quota" => Ok(quota::decide(&question, &quota::Quota::read(&settings)?, context)),
        "working-hours" => Ok(hours::decide(&hours::Hours::read(&settings)?, context)),
        "shared-volume" => volume::decorate(&question, &volume::SharedVolume::read(&settings)?),
        "peer-discovery" => peers::decorate(&question, &peers::Naming::read(&settings)?),
        "gang" => gang::bind(&question, &gang::GangSettings::read(&settings)?),
        other => Err(format!("there is no built-in plugin `{other}`")),
    }
}

/// Checks the settings of a built-in plugin, as they are written in its feature.
pub fn check_options(name: &str, options: &Value) -> Result<(), String> {
    let settings = Settings::new(name, options)?;
    match name {
        "tfjob" | "pytorchjob" | "mpijob" | "job-form" => none(&settings),
        "priority-by-user" => user::Priorities::read(&settings).map(drop),
        "priority-by-history" => history::Scale::read(&settings).map(drop),
        "quota" => quota::Quota::read(&settings).map(drop),
        "working-hours" => hours::Hours::read(&settings).map(drop),
        "shared-volume" => volume::SharedVolume::read(&settings).map(drop),
        "peer-discovery" => peers::Naming::read(&settings).map(drop),
        "gang" => gang::GangSettings::read(&settings).map(drop),
        other => Err(format!("there is no built-in plugin `{other}`")),
    }
}

fn none(settings: &Settings<'_>) -> Result<(), String> {
    settings.only(&[])
}

#[cfg(test)]
mod tests;
