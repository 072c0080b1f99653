//! Reading the settings of a built-in plugin: every wrong one is refused with its name.

use serde_json::{Map, Value};

pub(super) struct Settings<'a> {
    plugin: &'a str,
    members: Option<&'a Map<String, Value>>,
}

impl<'a> Settings<'a> {
    pub(super) fn new(plugin: &'a str, options: &'a Value) -> Result<Self, String> {
        match options {
            Value::Null => Ok(Self { plugin, members: None }),
            Value::Object(members) => Ok(Self { plugin, members: Some(members) }),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(format!("the options of {plugin} must be an object"))
            }
        }
    }

    /// Refuses options that the plugin does not have.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), String> {
        match self.all().find(|(name, _)| !known.contains(name)) {
            None => Ok(()),
            Some((name, _)) if known.is_empty() => {
                Err(format!("{} has no options, and `{name}` is given", self.plugin))
            }
            Some((name, _)) => Err(format!("{} has no option `{name}`; it has {}", self.plugin, known.join(", "))),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.members.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.members?.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        self.get(name).map(|value| value.as_str().ok_or_else(|| self.wrong(name, "a text"))).transpose()
    }

    pub(super) fn required(&self, name: &str) -> Result<&'a str, String> {
        let text = self.text(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| format!("{} needs the option `{name}`", self.plugin))
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        self.get(name).map(|value| value.as_bool().ok_or_else(|| self.wrong(name, "true or false"))).transpose()
    }

    /// Returns a whole number within limits.
    pub(super) fn number(&self, name: &str, least: u32, most: u32) -> Result<Option<u32>, String> {
        let wrong = || self.wrong(name, &format!("a whole number from {least} to {most}"));
        let read = |value: &Value| {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            number.filter(|number| (least..=most).contains(number)).ok_or_else(wrong)
        };
        self.get(name).map(read).transpose()
    }

    pub(super) fn wrong(&self, name: &str, wanted: &str) -> String {
        format!("the option `{name}` of {} must be {wanted}", self.plugin)
    }
}
