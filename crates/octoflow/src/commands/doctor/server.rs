//! The checks of a named server for `octoflow doctor`: reachability, access and health.

use anyhow::Error;
use octoflow_control::now;
use octoflow_model::Time;
use serde_json::Value;

use super::{Finding, LITTLE_SPACE, NO_SPACE};
use crate::{
    client::{Address, Client},
    exit::{self, Exit, Failure},
    source::workflow::{list, text},
};

/// Certificates, expiring tokens and schedules depend on the clock.
const SKEW_FELT_SECONDS: u64 = 5;
const SKEW_HARMFUL_SECONDS: u64 = 60;

pub(super) fn findings(client: &Client) -> Vec<Finding> {
    let asked = now();
    let health = match client.get(&Address::of(&["api", "octoflow", "v1", "health"])) {
        Ok(health) => health,
        Err(error) => return vec![unanswered(&error, client.url())],
    };
    let answered = now();
    let mut findings = vec![Finding::ok("server", format!("{} answers and writes to its disk", client.url()))];
    findings.push(version(text(&health, "version")));
    findings.push(clock(text(&health, "time"), asked, answered));
    findings.push(token(&health["caller"], health["defaultPasswordOverTcp"] == true));
    findings.push(space(health["diskFreeBytes"].as_u64()));
    if health["runsOpen"].is_null() {
        // A token confined to namespaces does not see the load of others.
        return findings;
    }
    let number = |name: &str| health[name].as_u64().unwrap_or_default();
    let load = format!(
        "{} open runs, {} of {} slots in use, {} tasks wait",
        number("runsOpen"),
        number("slotsUsed"),
        number("slots"),
        number("tasksWaiting")
    );
    findings.push(Finding::ok("load", load));
    findings
}

fn unanswered(error: &Error, url: &str) -> Finding {
    let told = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    let advice =
        error.downcast_ref::<Failure>().and_then(Failure::advice).unwrap_or("is it running, and is this its address?");
    match exit::of(error) {
        Exit::Denied => Finding::fail("token", format!("{url} does not let us in: {told}"), advice),
        _ => Finding::fail("server", told, advice),
    }
}

fn version(theirs: &str) -> Finding {
    let ours = env!("CARGO_PKG_VERSION");
    if theirs == ours {
        return Finding::ok("version", format!("both are {ours}"));
    }
    let found = format!("the server is {theirs}, this command is {ours}");
    Finding::warn("version", found, "use the same version where you can")
}

fn clock(theirs: &str, asked: Time, answered: Time) -> Finding {
    let Some(theirs) = Time::parse(theirs) else {
        return Finding::warn("clock", "the server does not tell the time", "use the same version where you can");
    };
    // The round trip time does not count as a difference.
    let apart = theirs.since(answered).max(asked.since(theirs)).as_secs();
    let found = format!("the clocks are {apart} seconds apart");
    match apart {
        0..SKEW_FELT_SECONDS => Finding::ok("clock", "the clocks agree"),
        SKEW_FELT_SECONDS..SKEW_HARMFUL_SECONDS => Finding::warn("clock", found, "let both machines set their clocks"),
        _ => Finding::fail("clock", found, "let both machines set their clocks; certificates and schedules go by them"),
    }
}

fn token(caller: &Value, default: bool) -> Finding {
    let privileges: Vec<&str> = list(&caller["privileges"]).iter().filter_map(Value::as_str).collect();
    let namespaces: Vec<&str> = list(&caller["namespaces"]).iter().filter_map(Value::as_str).collect();
    let only = if namespaces.is_empty() { String::new() } else { format!(" in {}", namespaces.join(",")) };
    let found = format!("we are `{}` and have {}{only}", text(caller, "name"), privileges.join(","));
    if default {
        return Finding::warn(
            "token",
            format!("{found}; the admin's password is the one everybody knows"),
            "everybody who reaches the server is admin; change it with: octoflow token set-admin -",
        );
    }
    Finding::ok("token", found)
}

fn space(free: Option<u64>) -> Finding {
    let Some(free) = free else {
        return Finding::warn("server's disk", "the server cannot tell how much is free", "look at its machine");
    };
    let found = format!("{} MiB free", free >> 20);
    match free {
        0..NO_SPACE => Finding::fail("server's disk", found, "make room before the database cannot be written"),
        NO_SPACE..LITTLE_SPACE => Finding::warn("server's disk", found, "logs and artifacts will soon fail"),
        _ => Finding::ok("server's disk", found),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::CheckStatus, *};

    #[test]
    fn clocks_are_compared_without_the_time_of_the_way() {
        let at = |seconds| Time::from_secs(1_700_000_000 + seconds);
        let status = |seconds: i64| clock(&at(seconds).to_string(), at(0), at(10)).status;
        assert_eq!(status(0), CheckStatus::Ok);
        assert_eq!(status(10), CheckStatus::Ok);
        assert_eq!(status(-20), CheckStatus::Warn);
        assert_eq!(status(30), CheckStatus::Warn);
        assert_eq!(status(300), CheckStatus::Fail);
        assert_eq!(clock("soon", at(0), at(1)).status, CheckStatus::Warn);
    }

    #[test]
    fn a_full_disk_and_a_known_password_are_told() {
        assert_eq!(space(Some(1 << 20)).status, CheckStatus::Fail);
        assert_eq!(space(Some(1 << 40)).status, CheckStatus::Ok);
        let caller = serde_json::json!({"name": "admin", "privileges": ["read_job"]});
        assert_eq!(token(&caller, true).status, CheckStatus::Warn);
        assert_eq!(token(&caller, false).status, CheckStatus::Ok);
        assert_eq!(version("0.0.0").status, CheckStatus::Warn);
    }
}
