//! The decorator that tells every container of a TaskSet the names of its peers.

use serde_json::Value;

use super::{Question, settings::Settings, templates};

/// Limit of replicas, as a variable must not grow without end.
const MAX_PEERS: u64 = 4_000;

/// Which names are told, under which variables.
pub(super) struct Naming {
    prefix: String,
}

impl Naming {
    pub(super) fn read(settings: &Settings<'_>) -> Result<Self, String> {
        settings.only(&["prefix"])?;
        let prefix = settings.text("prefix")?.unwrap_or("PEERS");
        let is_name = prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if prefix.is_empty() || !is_name || prefix.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(settings.wrong("prefix", "the beginning of a variable's name, such as PEERS"));
        }
        Ok(Self { prefix: prefix.to_owned() })
    }
}

pub(super) fn decorate(question: &Question<'_>, naming: &Naming) -> Result<Value, String> {
    let mut job = question.job.clone();
    let roles = job["spec"]["roles"].as_array();
    let roles = roles.ok_or("only the replicas of TaskSets have names for each other, and the job has no roles")?;
    let counts: Vec<(String, u64)> = roles
        .iter()
        .map(|role| (role["name"].as_str().unwrap_or_default().to_owned(), role["replicas"].as_u64().unwrap_or(0)))
        .collect();
    if counts.iter().map(|(_, count)| *count).fold(0, u64::saturating_add) > MAX_PEERS {
        return Err(format!("the TaskSet has more than {MAX_PEERS} replicas, too many to list"));
    }
    let names = |(role, count): &(String, u64)| (0..*count).map(|index| format!("{role}-{index}")).collect::<Vec<_>>();
    let all: Vec<String> = counts.iter().flat_map(names).collect();
    let prefix = &naming.prefix;
    let mut variables = vec![(prefix.clone(), all.join(","))];
    variables
        .extend(counts.iter().map(|role| (format!("{prefix}_{}", role.0.to_ascii_uppercase()), names(role).join(","))));
    templates::each(&mut job, |_, template| {
        templates::containers(template, |container| templates::add_env(container, variables.clone()))
    })?;
    Ok(job)
}
