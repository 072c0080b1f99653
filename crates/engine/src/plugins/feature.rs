//! A feature under the compiler: checks all of it, merges selectors, and makes its plugins. Nothing is stored that does
//! not compile.

use std::{collections::BTreeSet, time::Duration};

use octoflow_manifest::{Path, Problem};
use octoflow_model::plugin::{FeatureSecrets, FeatureSpec, LifeState, PluginSpec, PluginType, SelectorSpec};
use serde_json::Value;

use super::selector::JobSelector;
use crate::{admit::code, expr::nearest};

/// Timeout of a call unless the plugin says otherwise, and the longest it may ask for.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
pub const MAX_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_TRIES: u32 = 3;
const MAX_TRIES: u32 = 10;
/// How often an event is sent to a life hook unless it says otherwise, over eight minutes, and at most, over seven hours.
const DEFAULT_HOOK_TRIES: u32 = 10;
const MAX_HOOK_TRIES: u32 = 100;
/// Calls of one plugin that may be under way at once.
const DEFAULT_CONCURRENCY: u32 = 16;
const MAX_CONCURRENCY: u32 = 256;
/// The longest name of a feature or an author; both are part of plugin keys.
const MAX_NAME: usize = 128;
const BUILTIN: &str = "builtin:";

/// A plugin as it is called.
#[derive(Clone, Debug)]
pub struct Plugin {
    /// `{type}.{feature}.{author}`, which identifies it.
    pub key: String,
    pub plugin_type: PluginType,
    pub feature: String,
    pub description: String,
    pub enabled: bool,
    pub address: Address,
    /// The selector as it applies to this plugin, merged with the feature's.
    pub selector_spec: SelectorSpec,
    pub selector: JobSelector,
    /// The states that a life hook hears of.
    pub states: BTreeSet<LifeState>,
    pub timeout: Duration,
    pub tries: u32,
    pub concurrency: u32,
    pub on_failure: OnFailure,
    pub options: Value,
    pub secrets: FeatureSecrets,
}

/// Where a plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Url(String),
    /// Part of this program, by name.
    Builtin(String),
}

impl Address {
    /// Returns the address as it is written.
    pub fn text(&self) -> String {
        match self {
            Self::Url(url) => url.clone(),
            Self::Builtin(name) => format!("{BUILTIN}{name}"),
        }
    }
}

/// What the failure of a plugin means for the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The job fails.
    Fail,
    /// The walk goes on without it. Factor generators only.
    Ignore,
}

/// Returns the key of a plugin.
pub fn key(plugin_type: PluginType, feature: &str, author: &str) -> String {
    format!("{plugin_type}.{feature}.{author}")
}

/// Compiles a feature; on error returns all problems.
pub fn compile(name: &str, spec: &FeatureSpec, secrets: &FeatureSecrets) -> Result<Vec<Plugin>, Vec<Problem>> {
    let mut problems = Vec::new();
    let root = Path::root();
    check_name(name, "name", &root, &mut problems);
    check_name(&spec.author, "author", &root, &mut problems);
    if spec.author.eq_ignore_ascii_case("all") {
        let problem = Problem::error(code::PLUGIN, "`all` cannot be an author: in lists it means every author");
        problems.push(problem.path(root.join("author")));
    }
    let selector = spec.job_selector.as_ref();
    if selector.is_none() {
        let problem = Problem::error(code::REQUIRED, "a feature needs a jobSelector");
        problems.push(problem.path(root.join("jobSelector")).help("to match every job: {\"expression\": \"*\"}"));
    }
    let mut seen = BTreeSet::new();
    let mut plugins = Vec::new();
    for (at, plugin) in spec.plugins.iter().enumerate() {
        let path = root.join("plugins").join(at);
        let Some(plugin_type) = plugin_type(plugin, &path, &mut problems) else { continue };
        if !seen.insert(plugin_type) {
            let message = format!("a feature has at most one {plugin_type}: their keys would be the same");
            problems.push(Problem::error(code::PLUGIN, message).path(path.join("pluginType")));
        }
        let merged = merge(selector, plugin.job_selector.as_ref());
        let at_selector =
            if plugin.job_selector.is_some() { path.join("jobSelector") } else { root.join("jobSelector") };
        let compiled = JobSelector::compile(&merged, &at_selector).map_err(|found| problems.extend(found));
        let states = states(plugin_type, &merged, &at_selector, &mut problems);
        let address = address(plugin, plugin_type, &path, &mut problems);
        let limits = limits(plugin, plugin_type, &path, &mut problems);
        let (Ok(compiled), Some(address)) = (compiled, address) else { continue };
        plugins.push(Plugin {
            key: key(plugin_type, name, &spec.author),
            plugin_type,
            feature: name.to_owned(),
            description: plugin.description.clone(),
            enabled: spec.enabled,
            address,
            selector_spec: merged,
            selector: compiled,
            states,
            timeout: limits.timeout,
            tries: limits.tries,
            concurrency: limits.concurrency,
            on_failure: limits.on_failure,
            options: plugin.options.clone(),
            secrets: secrets.clone(),
        });
    }
    // Also where no plugin uses it: it is what later versions of the feature inherit.
    if let Some(selector) = selector.filter(|_| spec.plugins.is_empty()) {
        problems.extend(JobSelector::compile(selector, &root.join("jobSelector")).err().unwrap_or_default());
    }
    if problems.is_empty() { Ok(plugins) } else { Err(without_repetitions(problems)) }
}

/// The same problem of a shared selector is found for every plugin that uses it.
fn without_repetitions(problems: Vec<Problem>) -> Vec<Problem> {
    let mut told = BTreeSet::new();
    let place = |problem: &Problem| (problem.path.as_ref().map(ToString::to_string), problem.message.clone());
    problems.into_iter().filter(|problem| told.insert(place(problem))).collect()
}

fn check_name(name: &str, field: &str, root: &Path, problems: &mut Vec<Problem>) {
    if name.is_empty() {
        problems.push(Problem::error(code::REQUIRED, format!("a feature needs a {field}")).path(root.join(field)));
        return;
    }
    let message = match name {
        _ if name.len() > MAX_NAME => format!("the {field} is longer than {MAX_NAME} bytes"),
        _ if name.chars().any(|c| c.is_control() || c == '/' || c == '\\') => {
            format!("the {field} has a slash, a backslash or a control character, which a path cannot hold")
        }
        "." | ".." => format!("`{name}` is no {field}: a path cannot hold it"),
        _ => return,
    };
    problems.push(Problem::error(code::PLUGIN, message).path(root.join(field)));
}

fn plugin_type(plugin: &PluginSpec, path: &Path, problems: &mut Vec<Problem>) -> Option<PluginType> {
    let known = PluginType::of_word(&plugin.plugin_type);
    if known.is_none() {
        let words = PluginType::ALL.map(PluginType::word);
        let problem = Problem::error(code::PLUGIN_TYPE, format!("`{}` is no type of plugin", plugin.plugin_type));
        let help = match nearest(&plugin.plugin_type, words.iter().copied()) {
            Some(near) => format!("did you mean {near}? The types are {}", words.join(", ")),
            None => format!("the types are {}", words.join(", ")),
        };
        problems.push(problem.path(path.join("pluginType")).help(help));
    }
    known
}

/// Merges a plugin's selector over the feature's: conditions of the plugin win, the feature's others are added, and an
/// empty expression or an empty list of states is the feature's.
pub fn merge(global: Option<&SelectorSpec>, local: Option<&SelectorSpec>) -> SelectorSpec {
    let Some(local) = local else { return global.cloned().unwrap_or_default() };
    let mut merged = local.clone();
    let Some(global) = global else { return merged };
    let own: BTreeSet<&str> = local.conditions.iter().map(|condition| condition.name.as_str()).collect();
    let others = global.conditions.iter().filter(|condition| !own.contains(condition.name.as_str()));
    merged.conditions.extend(others.cloned());
    if merged.expression.trim().is_empty() {
        merged.expression.clone_from(&global.expression);
    }
    if merged.states.is_empty() {
        merged.states.clone_from(&global.states);
    }
    merged
}

fn states(
    plugin_type: PluginType,
    selector: &SelectorSpec,
    path: &Path,
    problems: &mut Vec<Problem>,
) -> BTreeSet<LifeState> {
    let path = path.join("states");
    if plugin_type != PluginType::LifeHook {
        return BTreeSet::new();
    }
    if selector.states.is_empty() {
        let problem = Problem::error(code::REQUIRED, "a life hook needs the states that it wants to hear of");
        problems.push(problem.path(path).help("`[\"*\"]` means all of them"));
        return BTreeSet::new();
    }
    let mut states = BTreeSet::new();
    for (at, word) in selector.states.iter().enumerate() {
        if word == "*" {
            states.extend(LifeState::ALL);
        } else if let Some(state) = state_of(word) {
            states.insert(state);
        } else {
            let words = LifeState::ALL.map(LifeState::word).join(", ");
            let problem = Problem::error(code::PLUGIN, format!("`{word}` is no state of a job"));
            problems.push(problem.path(path.join(at)).help(format!("the states are {words}, and `*` for all")));
        }
    }
    states
}

/// Returns the state that a word means. The finer words of the first implementations mean the state that has them.
pub fn state_of(word: &str) -> Option<LifeState> {
    let word = word.to_ascii_lowercase();
    match word.as_str() {
        "preparing" | "pending" => Some(LifeState::Waiting),
        "completed" => Some(LifeState::Succeeded),
        other => LifeState::of_word(other),
    }
}

fn address(plugin: &PluginSpec, plugin_type: PluginType, path: &Path, problems: &mut Vec<Problem>) -> Option<Address> {
    let options = path.join("options");
    let (text, path) = (plugin.call_address.trim(), path.join("callAddress"));
    let refused = |message: String| Problem::error(code::PLUGIN, message).path(path.clone());
    if let Some(name) = text.strip_prefix(BUILTIN) {
        if super::builtin_type(name) == Some(plugin_type) {
            if let Err(why) = super::builtin::check_options(name, &plugin.options) {
                problems.push(Problem::error(code::PLUGIN, why).path(options));
            }
            return Some(Address::Builtin(name.to_owned()));
        }
        let names: Vec<&str> = super::builtins(plugin_type).collect();
        let known = if names.is_empty() { "there are none of this type".to_owned() } else { names.join(", ") };
        problems.push(refused(format!("there is no built-in {plugin_type} `{name}`")).help(format!("known: {known}")));
        return None;
    }
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match host {
        _ if text.is_empty() => {
            problems.push(Problem::error(code::REQUIRED, "a plugin needs its callAddress").path(path.clone()));
        }
        None => {
            let problem = refused(format!("`{text}` is no address of a plugin"));
            problems.push(problem.help("write http://HOST:PORT/PATH, https://…, or builtin:NAME"));
        }
        Some(host) if host.is_empty() || host.contains(char::is_whitespace) => {
            problems.push(refused(format!("`{text}` names no host")));
        }
        Some(host) if host.contains('@') => {
            let problem = refused("an address holds no credentials: they would be read back".to_owned());
            problems.push(problem.help("give them as the feature's `authorization`"));
        }
        Some(_) if text.chars().any(|c| c.is_control() || c.is_whitespace()) || text.len() > 2048 => {
            problems.push(refused("the address has blanks or control characters, or is too long".to_owned()));
        }
        Some(_) => return Some(Address::Url(text.to_owned())),
    }
    None
}

struct Limits {
    timeout: Duration,
    tries: u32,
    concurrency: u32,
    on_failure: OnFailure,
}

fn limits(plugin: &PluginSpec, plugin_type: PluginType, path: &Path, problems: &mut Vec<Problem>) -> Limits {
    let mut within = |field: &str, value: Option<u32>, default: u32, most: u32| {
        let value = value.unwrap_or(default);
        if !(1..=most).contains(&value) {
            let message = format!("{field} is {value}; it may be 1 to {most}");
            problems.push(Problem::error(code::PLUGIN, message).path(path.join(field)));
        }
        value
    };
    let default = DEFAULT_TIMEOUT.as_secs() as u32;
    let timeout = within("timeoutSeconds", plugin.timeout_seconds, default, MAX_TIMEOUT.as_secs() as u32);
    let (default_tries, max_tries) = match plugin_type {
        PluginType::LifeHook => (DEFAULT_HOOK_TRIES, MAX_HOOK_TRIES),
        PluginType::TemplateTranslator
        | PluginType::FactorGenerator
        | PluginType::AccessGate
        | PluginType::TemplateDecorator
        | PluginType::SchedulerBinder => (DEFAULT_TRIES, MAX_TRIES),
    };
    let tries = within("tries", plugin.tries, default_tries, max_tries);
    let concurrency = within("concurrency", plugin.concurrency, DEFAULT_CONCURRENCY, MAX_CONCURRENCY);
    let on_failure = match plugin.on_failure.as_deref() {
        None | Some("fail") => OnFailure::Fail,
        Some("ignore") if plugin_type == PluginType::FactorGenerator => OnFailure::Ignore,
        Some("ignore") => {
            let message = format!("a {plugin_type} fails closed: only a FactorGenerator's failure can be ignored");
            problems.push(Problem::error(code::PLUGIN, message).path(path.join("onFailure")));
            OnFailure::Fail
        }
        Some(other) => {
            let message = format!("onFailure is `{other}`; it may be `fail` or `ignore`");
            problems.push(Problem::error(code::PLUGIN, message).path(path.join("onFailure")));
            OnFailure::Fail
        }
    };
    Limits { timeout: Duration::from_secs(u64::from(timeout)), tries, concurrency, on_failure }
}
