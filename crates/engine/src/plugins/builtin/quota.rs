//! The quota gate: a user has so many jobs running at once; further ones wait and are asked about again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Context, Question, settings::Settings};

const DEFAULT_RECHECK: u32 = 10;
const MAX_RECHECK: u32 = 86_400;

pub(super) struct Quota {
    most: u32,
    /// Users with another limit.
    of_users: BTreeMap<String, u32>,
    /// In seconds.
    recheck: u32,
}

impl Quota {
    pub(super) fn read(settings: &Settings<'_>) -> Result<Self, String> {
        settings.only(&["maxRunningPerUser", "users", "recheckSeconds"])?;
        let most = settings.number("maxRunningPerUser", 0, u32::MAX)?;
        let most = most.ok_or("quota needs the option `maxRunningPerUser`: a whole number")?;
        let mut of_users = BTreeMap::new();
        if let Some(users) = settings.get("users") {
            let wanted = || settings.wrong("users", "a map from user to a whole number");
            for (user, limit) in users.as_object().ok_or_else(wanted)? {
                let limit = limit.as_u64().and_then(|limit| u32::try_from(limit).ok()).ok_or_else(wanted)?;
                of_users.insert(user.clone(), limit);
            }
        }
        let recheck = settings.number("recheckSeconds", 1, MAX_RECHECK)?.unwrap_or(DEFAULT_RECHECK);
        Ok(Self { most, of_users, recheck })
    }
}

pub(super) fn decide(question: &Question<'_>, quota: &Quota, context: &Context) -> Value {
    let user = question.header("userID");
    let (most, running) = (quota.of_users.get(user).copied().unwrap_or(quota.most), context.running);
    if running < most {
        return json!({"decision": "pass", "reason": format!("{running} of {most} jobs of user {user} run")});
    }
    json!({
        "decision": "suspend",
        "reason": format!("user {user} has {running} jobs running, and may have {most}"),
        "recheckAfter": quota.recheck,
    })
}
