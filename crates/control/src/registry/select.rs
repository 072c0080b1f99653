//! Selectors of labels and fields as the Kubernetes API writes them. Parsing and matching only.

use octoflow_engine::jsonpath;
use octoflow_store::LabelTest;
use serde_json::Value;

/// Label selector: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. An empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(pub Vec<LabelTest>);

/// Field selector: `metadata.name=x,status.phase!=Running`. An empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(pub Vec<FieldTest>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTest {
    /// The path, such as `metadata.name`.
    pub field: String,
    pub value: String,
    pub equal: bool,
}

/// Labels and fields to match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

/// Part of a selector that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    #[error("`{0}` is not a label selector; write key=value, key!=value, key in (a,b), key notin (a,b), key or !key")]
    Label(String),
    #[error("`{0}` is not a field selector; write field=value or field!=value")]
    Field(String),
}

impl From<SelectorError> for String {
    fn from(error: SelectorError) -> Self {
        error.to_string()
    }
}

impl Selection {
    pub fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }

    pub fn is_empty(&self) -> bool {
        self.labels.0.is_empty() && self.fields.0.is_empty()
    }
}

impl LabelSelector {
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let parts = split_outside_brackets(text).into_iter().map(str::trim).filter(|part| !part.is_empty());
        parts.map(label).collect::<Result<_, _>>().map(Self)
    }

    pub fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let value = |key: &str| labels.get(key).and_then(Value::as_str);
        self.0.iter().all(|test| match test {
            LabelTest::Equals { key, value: wanted } => value(key) == Some(wanted),
            LabelTest::In { key, values } => value(key).is_some_and(|found| values.iter().any(|one| one == found)),
            LabelTest::NotIn { key, values } => !value(key).is_some_and(|found| values.iter().any(|one| one == found)),
            LabelTest::Exists { key } => value(key).is_some(),
            LabelTest::Absent { key } => value(key).is_none(),
        })
    }
}

impl FieldSelector {
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts
            .map(|part| {
                let split = |word| part.split_once(word);
                let (field, value, equal) = match split("!=") {
                    Some((field, value)) => (field, value, false),
                    None => {
                        let (field, value) =
                            split("==").or_else(|| split("=")).ok_or_else(|| SelectorError::Field(part.to_owned()))?;
                        (field, value, true)
                    }
                };
                Ok(FieldTest { field: field.trim().to_owned(), value: value.trim().to_owned(), equal })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns the name that alone can match, if the selector demands one.
    pub fn name(&self) -> Option<&str> {
        self.0.iter().find(|test| test.equal && test.field == "metadata.name").map(|test| test.value.as_str())
    }

    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|test| {
            let found = test.field.split('.').fold(object, |value, step| &value[step]);
            (jsonpath::plain(found) == test.value) == test.equal
        })
    }
}

fn label(part: &str) -> Result<LabelTest, SelectorError> {
    let wrong = || SelectorError::Label(part.to_owned());
    if let Some(key) = part.strip_prefix('!') {
        return Ok(LabelTest::Absent { key: name(key).ok_or_else(wrong)? });
    }
    for (word, negated) in [(" notin ", true), (" in ", false)] {
        if let Some((key, list)) = part.split_once(word) {
            let inner = list.trim().strip_prefix('(').and_then(|list| list.strip_suffix(')')).ok_or_else(wrong)?;
            let values = inner.split(',').map(|value| value.trim().to_owned()).collect();
            let key = name(key).ok_or_else(wrong)?;
            return Ok(if negated { LabelTest::NotIn { key, values } } else { LabelTest::In { key, values } });
        }
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Ok(LabelTest::NotIn { key: name(key).ok_or_else(wrong)?, values: vec![value.trim().to_owned()] });
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(LabelTest::Equals { key: name(key).ok_or_else(wrong)?, value: value.trim().to_owned() });
    }
    Ok(LabelTest::Exists { key: name(part).ok_or_else(wrong)? })
}

fn name(key: &str) -> Option<String> {
    let key = key.trim();
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/');
    (!key.is_empty() && key.chars().all(allowed)).then(|| key.to_owned())
}

fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth <= 0
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_tested_one_by_one() {
        let object = json!({"metadata": {"labels": {"app": "x", "tier": "web"}}});
        let holds = |text: &str| LabelSelector::parse(text).unwrap().matches(&object);
        assert!(holds("") && holds("app=x") && holds("app==x,tier in (web, db)") && holds("app,!team"));
        assert!(holds("team!=a") && holds("team notin (a,b)"));
        assert!(!holds("app=y") && !holds("app!=x") && !holds("!app") && !holds("tier notin (web)"));
        assert!(LabelSelector::parse("a b=c").is_err() && LabelSelector::parse("app in x").is_err());
    }

    #[test]
    fn fields_are_paths() {
        let object = json!({"metadata": {"name": "a"}, "status": {"phase": "Running"}, "spec": {"suspend": true}});
        let holds = |text: &str| FieldSelector::parse(text).unwrap().matches(&object);
        assert!(holds("") && holds("metadata.name=a,status.phase!=Failed") && holds("spec.suspend=true"));
        assert!(holds("status.message=") && !holds("metadata.name=b"));
        assert!(FieldSelector::parse("name").is_err());
        assert_eq!(FieldSelector::parse("metadata.name=a").unwrap().name(), Some("a"));
    }
}
