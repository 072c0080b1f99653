//! Converts a shape to a JSON Schema (draft 2020-12), so that editors complete and check what admission will. It
//! contains what the table says and no more: how fields combine is left to admission.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use super::{Field, Shape, Support};

/// The closed schema of an object. The `fixed` fields must be there and say exactly this.
///
/// A field may be null wherever a field may be left out. Refused fields are not in it.
pub fn schema(title: &str, root: &'static Shape, fixed: &[(&str, &str)]) -> Value {
    let mut writer = Writer::default();
    let mut schema = writer.object(root, title);
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!(title));
    schema.insert("type".to_owned(), json!("object"));
    if !fixed.is_empty() {
        schema.insert("required".to_owned(), fixed.iter().map(|(name, _)| *name).collect());
    }
    let mut definitions = Map::new();
    while let Some((name, shape)) = writer.waiting.pop_front() {
        let body = writer.object(shape, &name);
        definitions.insert(name, Value::Object(body));
    }
    schema.insert("$defs".to_owned(), Value::Object(definitions));
    let mut schema = Value::Object(schema);
    for (name, text) in fixed {
        if let Some(property) = schema["properties"][*name].as_object_mut() {
            property.remove("type");
            property.insert("const".to_owned(), json!(text));
        }
    }
    schema
}

/// Writes each object once and refers to it by name, so that recursive shapes terminate.
#[derive(Default)]
struct Writer {
    names: HashMap<*const Shape, String>,
    taken: HashSet<String>,
    waiting: VecDeque<(String, &'static Shape)>,
}

impl Writer {
    fn object(&mut self, shape: &'static Shape, name: &str) -> Map<String, Value> {
        let mut properties = Map::new();
        for field in shape.fields() {
            let mut schema = match field.support {
                Support::Refused => continue,
                Support::Ignored(_) => Map::new(),
                Support::Yes => self.value(field.shape, true, field.name, name),
            };
            schema.insert("description".to_owned(), json!(described(field)));
            properties.insert(field.name.to_owned(), Value::Object(schema));
        }
        let mut object = typed(&["object"], true);
        object.insert("properties".to_owned(), Value::Object(properties));
        object.insert("additionalProperties".to_owned(), json!(false));
        object
    }

    /// Returns the schema of a value; `name` and `owner` name its definition.
    fn value(&mut self, shape: &'static Shape, may_be_null: bool, name: &str, owner: &str) -> Map<String, Value> {
        match shape {
            Shape::Object(_) if shape.fields().next().is_none() => {
                let mut empty = typed(&["object"], may_be_null);
                empty.insert("additionalProperties".to_owned(), json!(false));
                empty
            }
            Shape::Object(_) => {
                // The definition allows null; a value that must not be null says so next to the reference.
                let mut place = if may_be_null { Map::new() } else { typed(&["object"], false) };
                let name = self.definition(shape, name, owner);
                place.insert("$ref".to_owned(), json!(format!("#/$defs/{name}")));
                place
            }
            Shape::List(inner) => {
                let mut list = typed(&["array"], may_be_null);
                list.insert("items".to_owned(), Value::Object(self.value(inner, false, singular(name), owner)));
                list
            }
            Shape::Map(inner) => {
                let mut map = typed(&["object"], may_be_null);
                let values = self.value(inner, true, singular(name), owner);
                map.insert("additionalProperties".to_owned(), Value::Object(values));
                map
            }
            Shape::Text => typed(&["string"], may_be_null),
            Shape::Word(words) => {
                let null = may_be_null.then_some(Value::Null);
                Map::from_iter([("enum".to_owned(), words.iter().map(|word| json!(word)).chain(null).collect())])
            }
            Shape::Bool => typed(&["boolean"], may_be_null),
            Shape::Int { least, most } => {
                let mut number = typed(&["integer"], may_be_null);
                if *least != i64::MIN {
                    number.insert("minimum".to_owned(), json!(least));
                }
                if *most != i64::MAX {
                    number.insert("maximum".to_owned(), json!(most));
                }
                number
            }
            Shape::IntOrText => typed(&["integer", "string"], may_be_null),
            Shape::Scalar => typed(&["string", "number", "boolean"], may_be_null),
            Shape::Quantity => {
                let mut quantity = typed(&["string", "number"], may_be_null);
                quantity.insert("pattern".to_owned(), json!(QUANTITY_PATTERN));
                quantity.insert("minimum".to_owned(), json!(0));
                quantity
            }
            Shape::Like { .. } => typed(&["string", "number", "boolean"], may_be_null),
            Shape::Either(short, full) => {
                let forms = [self.value(short, may_be_null, name, owner), self.value(full, false, name, owner)];
                Map::from_iter([("anyOf".to_owned(), forms.into_iter().map(Value::Object).collect())])
            }
            Shape::Any => Map::new(),
        }
    }

    /// Returns the name of an object among the definitions: that of the field it was first seen at, made longer where
    /// it is taken.
    fn definition(&mut self, shape: &'static Shape, name: &str, owner: &str) -> String {
        if let Some(known) = self.names.get(&std::ptr::from_ref(shape)) {
            return known.clone();
        }
        let longer = format!("{owner}.{name}");
        let numbered = (2..).map(|number| format!("{longer}-{number}"));
        let chosen = [name.to_owned(), longer.clone()]
            .into_iter()
            .chain(numbered)
            .find(|candidate| !self.taken.contains(candidate))
            .expect("numbers have no end");
        self.taken.insert(chosen.clone());
        self.names.insert(std::ptr::from_ref(shape), chosen.clone());
        self.waiting.push_back((chosen.clone(), shape));
        chosen
    }
}

/// Matches a text with variables, or a number with a unit or an exponent.
const QUANTITY_PATTERN: &str = "\\{\\{|^\\+?([0-9]+\\.?[0-9]*|\\.[0-9]+)\
    ([numkMGTPE]|[KMGTPE]i|[eE][+-]?0*([0-9]{1,2}|1[01][0-9]|12[0-7]))?$";

fn typed(names: &[&str], may_be_null: bool) -> Map<String, Value> {
    let types = match names {
        [one] if !may_be_null => json!(one),
        names => names.iter().copied().chain(may_be_null.then_some("null")).collect(),
    };
    Map::from_iter([("type".to_owned(), types)])
}

fn described(field: &Field) -> String {
    match field.support {
        Support::Ignored(why) => format!("{}. Accepted but without effect: {why}.", field.about),
        Support::Yes | Support::Refused => format!("{}.", field.about),
    }
}

/// Returns the singular of a list's name.
fn singular(name: &str) -> &str {
    name.strip_suffix('s').filter(|rest| !rest.is_empty() && !rest.ends_with('s')).unwrap_or(name)
}
