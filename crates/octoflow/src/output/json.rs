//! Objects as JSON, YAML, names or by a path, for programs. One object is printed as itself, several as a list.

use octoflow_manifest::to_yaml;
use serde_json::{Value, json};

use crate::{cli::Format, source::workflow::Workflow};

/// Formats objects; `None` if the format is not for programs.
pub(crate) fn objects(format: &Format, objects: &[Value], as_list: bool) -> Option<String> {
    match format {
        Format::Json => Some(match objects {
            [one] if !as_list => pretty(one),
            many => pretty(&Value::Array(many.to_vec())),
        }),
        Format::Yaml => Some(match objects {
            [one] if !as_list => to_yaml(one),
            many if as_list => to_yaml(&Value::Array(many.to_vec())),
            many => many.iter().map(to_yaml).collect::<Vec<_>>().join("---\n"),
        }),
        Format::Name => Some(objects.iter().map(|object| format!("{}\n", Workflow::new(object).name())).collect()),
        Format::JsonPath(template) => Some(match objects {
            [one] if !as_list => template.render(one),
            many => template.render(&json!({"items": many})),
        }),
        Format::Wide | Format::Short | Format::Raw => None,
    }
}

pub(crate) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_object_is_itself_and_several_are_a_list() {
        let one = json!({"metadata": {"name": "a"}});
        let two = json!({"metadata": {"name": "b"}});
        let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(read(objects(&Format::Json, std::slice::from_ref(&one), false).unwrap()), one);
        assert_eq!(read(objects(&Format::Json, std::slice::from_ref(&one), true).unwrap()), json!([one]));
        assert_eq!(read(objects(&Format::Json, &[one.clone(), two.clone()], false).unwrap()), json!([one, two]));
        assert_eq!(objects(&Format::Name, &[one.clone(), two.clone()], false).unwrap(), "a\nb\n");
        let yaml = objects(&Format::Yaml, &[one.clone(), two.clone()], false).unwrap();
        assert_eq!(yaml.matches("---\n").count(), 1, "{yaml}");
        let names: Format = "jsonpath={.items[*].metadata.name}".parse().unwrap();
        assert_eq!(objects(&names, &[one, two], true).unwrap(), "a b");
        assert!(objects(&Format::Wide, &[], false).is_none());
    }
}
