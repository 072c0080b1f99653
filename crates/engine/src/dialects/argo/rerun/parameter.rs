//! Checks the arguments of a rerun like those of a submission, before anything is changed. The old run's object says
//! which values are allowed.

use octoflow_model::scalar::Text;
use serde_json::Value;

use super::RerunRefusal;

/// Refuses values that the parameter's `enum` does not list. Values with variables are only known at run time.
pub fn allows(object: &Value, parameters: &[(String, String)]) -> Result<(), RerunRefusal> {
    for (name, value) in parameters {
        let Some(choices) = choices(object, name) else { continue };
        if !value.contains("{{") && !choices.contains(value) {
            return Err(RerunRefusal::NotAllowed { name: name.clone(), value: value.clone(), choices });
        }
    }
    Ok(())
}

/// Returns the `enum` of a parameter. The stored spec includes what the referenced templates say.
fn choices(object: &Value, name: &str) -> Option<Vec<String>> {
    let specs = [&object["status"]["storedWorkflowTemplateSpec"], &object["spec"]];
    specs.into_iter().find_map(|spec| {
        let parameters = spec["arguments"]["parameters"].as_array()?;
        let parameter = parameters.iter().find(|parameter| parameter["name"] == name)?;
        let list = parameter["enum"].as_array()?;
        let text = |one: &Value| serde_json::from_value::<Text>(one.clone()).map(|text| text.0).ok();
        Some(list.iter().filter_map(text).collect())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_an_enum_lists_may_be_put_in_its_place() {
        let object = json!({
            "spec": {"arguments": {"parameters": [
                {"name": "size", "value": 1, "enum": [1, 2]}, {"name": "free", "value": "x"},
            ]}},
            "status": {"storedWorkflowTemplateSpec": {"arguments": {"parameters": [
                {"name": "colour", "value": "red", "enum": ["red", "blue"]},
            ]}}},
        });
        let given = |name: &str, value: &str| allows(&object, &[(name.to_owned(), value.to_owned())]);
        for (name, value) in
            [("size", "2"), ("colour", "blue"), ("free", "y"), ("new", "z"), ("size", "{{workflow.name}}")]
        {
            assert_eq!(given(name, value), Ok(()), "{name}={value}");
        }
        let refused = given("colour", "green").unwrap_err().to_string();
        assert_eq!(refused, "the parameter 'colour' cannot be 'green'; its enum allows: 'red', 'blue'");
        assert!(given("size", "3").unwrap_err().to_string().contains("'size'"));
    }
}
