//! JSONPath templates of `-o jsonpath=…` and of outputs with `jsonPath`: `{.status.phase}`, `{range .items[*]}…{end}`,
//! `{.nodes[?(@.phase=="Failed")].name}`. Parses and evaluates only; missing values render as nothing, as in kubectl.

mod parse;
mod walk;

use serde_json::Value;

use crate::expr::budget::BYTES_A_STEP;
use parse::Piece;

/// A parsed template.
#[derive(Clone, Debug)]
pub struct Template {
    pieces: Vec<Piece>,
}

/// A syntax error in a template, and its column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub what: String,
    /// Counted in characters from 1.
    pub column: usize,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at column {} of the path", self.what, self.column)
    }
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parse::template(text).map(|pieces| Self { pieces })
    }

    /// Returns the values that the first path of the template matches.
    pub fn values<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        let path = self.pieces.iter().find_map(|piece| match piece {
            Piece::Path(path) => Some(path),
            Piece::Text(_) | Piece::Range(..) => None,
        });
        let mut left = u64::MAX;
        path.and_then(|path| walk::find(path, root, root, &mut left)).unwrap_or_default()
    }

    pub fn render(&self, root: &Value) -> String {
        let mut left = u64::MAX;
        self.render_within(root, &mut left).expect("nobody takes so many steps")
    }

    /// Renders within a step budget, from which the steps used are subtracted; `None` if it was not enough. Nested
    /// ranges could otherwise produce unbounded text from a small object.
    pub(crate) fn render_within(&self, root: &Value, left: &mut u64) -> Option<String> {
        let mut text = String::new();
        render(&self.pieces, root, root, &mut text, left).map(|()| text)
    }
}

/// The text of a value: a string as it is, nothing for null, everything else as JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Renders pieces. Nesting is bounded by the parser, so recursion is safe.
fn render(pieces: &[Piece], root: &Value, current: &Value, text: &mut String, left: &mut u64) -> Option<()> {
    for piece in pieces {
        match piece {
            Piece::Text(literal) => {
                *left = left.checked_sub(1 + literal.len() as u64 / BYTES_A_STEP)?;
                text.push_str(literal);
            }
            Piece::Path(path) => {
                for (place, value) in walk::find(path, root, current, left)?.into_iter().enumerate() {
                    let value = plain(value);
                    *left = left.checked_sub(value.len() as u64 / BYTES_A_STEP)?;
                    if place > 0 {
                        text.push(' ');
                    }
                    text.push_str(&value);
                }
            }
            Piece::Range(path, body) => {
                for item in walk::find(path, root, current, left)? {
                    render(body, root, item, text, left)?;
                }
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn show(template: &str) -> String {
        let object = json!({
            "kind": "Workflow",
            "metadata": {"name": "w", "labels": {"workflows.argoproj.io/phase": "Failed"}},
            "status": {"phase": "Failed", "count": 3, "none": null, "nodes": {
                "a": {"name": "a", "phase": "Succeeded", "n": 1},
                "b": {"name": "b", "phase": "Failed", "n": 20}}},
            "items": [{"x": 1, "y": "p"}, {"x": 2, "y": "q"}, {"x": 3}]
        });
        match Template::parse(template) {
            Ok(template) => template.render(&object),
            Err(wrong) => panic!("{template}: {wrong}"),
        }
    }

    #[test]
    fn paths_lead_to_values() {
        let table = [
            ("{.status.phase}", "Failed"),
            ("{$.metadata.name}", "w"),
            ("{.metadata['name']}", "w"),
            (r"{.metadata.labels.workflows\.argoproj\.io/phase}", "Failed"),
            ("{.metadata.labels['workflows.argoproj.io/phase']}", "Failed"),
            ("{.items[0].x}", "1"),
            ("{.items[-1].x}", "3"),
            ("{.items[0:2].x}", "1 2"),
            ("{.items[0,2].x}", "1 3"),
            ("{.items[::2].x}", "1 3"),
            ("{.items[*].y}", "p q"),
            ("{.status.nodes.*.phase}", "Succeeded Failed"),
            ("{..y}", "p q"),
            ("{.status.nodes.a}", r#"{"n":1,"name":"a","phase":"Succeeded"}"#),
            ("{.nothing.at.all}", ""),
            ("{.status.none}", ""),
        ];
        for (template, expected) in table {
            assert_eq!(show(template), expected, "{template}");
        }
    }

    #[test]
    fn text_around_paths_stays() {
        assert_eq!(show(r#"name={.metadata.name}{"\n"}{'it\'s'}"#), "name=w\nit's");
        assert_eq!(show("plain"), "plain");
    }

    #[test]
    fn a_range_repeats_its_body() {
        assert_eq!(show(r#"{range .items[*]}{.x}:{.y}{"\n"}{end}"#), "1:p\n2:q\n3:\n");
        assert_eq!(show(r#"{range .items[?(@.y)]}[{@.x}{range $.items[0:1]}{.y}{end}]{end}"#), "[1p][2p]");
    }

    #[test]
    fn filters_compare() {
        let table = [
            (r#"{.status.nodes[?(@.phase=="Failed")].name}"#, "b"),
            ("{.items[?(@.x>1)].x}", "2 3"),
            ("{.items[?(@.x<=2)].x}", "1 2"),
            ("{.items[?(@.y!='p')].x}", "2 3"),
            ("{.items[?(@.y)].x}", "1 2"),
            ("{.items[?(@.x==2)].y}", "q"),
        ];
        for (template, expected) in table {
            assert_eq!(show(template), expected, "{template}");
        }
    }

    #[test]
    fn a_wrong_template_says_where() {
        let table = [
            ("{.a", "the `{` is not closed", 1),
            ("{range .a}", "this range has no {end}", 2),
            ("{end}", "there is no range to end", 2),
            ("{.a[}", "a number, a quoted key, `*` or `?(…)` expected", 5),
            ("{.a[?(@.x ~ 1)]}", "one of == != < <= > >= expected", 11),
            ("{name}", "a path starts with `.`, `$`, `@` or `[`", 2),
        ];
        for (template, what, column) in table {
            assert_eq!(
                Template::parse(template).unwrap_err(),
                SyntaxError { what: what.to_owned(), column },
                "{template}"
            );
        }
    }

    #[test]
    fn ranges_inside_of_ranges_come_to_an_end() {
        let object = json!({"items": (0..100).collect::<Vec<_>>()});
        let deep = format!("{}x{}", "{range $.items[*]}".repeat(6), "{end}".repeat(6));
        let template = Template::parse(&deep).unwrap();
        assert_eq!(template.render_within(&object, &mut 100_000), None);
        let mut left = 100_000;
        assert!(Template::parse("{.items[*]}").unwrap().render_within(&object, &mut left).is_some());
        assert!(left > 99_000, "{left}");
        assert_eq!(Template::parse("{..}{..}").unwrap().render_within(&object, &mut 50), None);
    }

    #[test]
    fn nesting_without_end_is_refused() {
        let deep = format!("{}{}", "{range .a}".repeat(1000), "{end}".repeat(1000));
        assert!(Template::parse(&deep).unwrap_err().what.contains("nested"));
    }
}
