//! Priority by history: the share of a user's last jobs that succeeded.

use serde_json::{Value, json};

use super::{Context, settings::Settings};

const DEFAULT_BEST: u32 = 10;
const MAX_BEST: u32 = 1_000_000;

/// The priority of a user all of whose jobs succeeded.
pub(super) struct Scale {
    best: u32,
}

impl Scale {
    pub(super) fn read(settings: &Settings<'_>) -> Result<Self, String> {
        settings.only(&["best"])?;
        Ok(Self { best: settings.number("best", 1, MAX_BEST)?.unwrap_or(DEFAULT_BEST) })
    }
}

/// Without any job that ended the advice is empty, which counts as none.
pub(super) fn advise(scale: &Scale, context: &Context) -> Value {
    let (all, good) = (context.history.len() as u64, context.history.iter().filter(|good| **good).count() as u64);
    let (advice, reason) = match all {
        0 => (String::new(), "the user has no jobs yet".to_owned()),
        // Rounded to the nearest.
        all => (
            ((2 * good * u64::from(scale.best) + all) / (2 * all)).to_string(),
            format!("{good} of the user's last {all} jobs succeeded"),
        ),
    };
    json!({"topic": "priority", "advice": advice, "reason": reason})
}
