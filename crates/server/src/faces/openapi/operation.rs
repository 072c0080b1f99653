//! Description of a route for the OpenAPI document: summary, request and response. Path, privilege and errors come from
//! the table of routes and are not repeated here.

use serde_json::{Map, Value, json};

use crate::route::Route;

/// Description of one route.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operation {
    pub summary: String,
    pub query: Vec<Parameter>,
    pub body: Option<Body>,
    /// Successful responses by status.
    pub answers: Vec<(u16, Content)>,
    /// Extensions such as `x-kubernetes-action`.
    pub extensions: Map<String, Value>,
    /// True if the route only answers that a feature is not supported; it is then not in the document.
    pub refuses: bool,
}

/// Query parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub name: &'static str,
    pub form: ParameterForm,
    pub about: &'static str,
}

/// Type of a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParameterForm {
    Text,
    Word(&'static [&'static str]),
    Flag,
    /// Non-negative integer.
    Count,
    /// RFC 3339.
    Time,
    /// Repeatable text.
    Texts,
}

pub(crate) const fn text(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, form: ParameterForm::Text, about }
}

pub(crate) const fn flag(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, form: ParameterForm::Flag, about }
}

pub(crate) const fn count(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, form: ParameterForm::Count, about }
}

pub(crate) const fn time(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, form: ParameterForm::Time, about }
}

pub(crate) const fn texts(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, form: ParameterForm::Texts, about }
}

pub(crate) const fn word(name: &'static str, words: &'static [&'static str], about: &'static str) -> Parameter {
    Parameter { name, form: ParameterForm::Word(words), about }
}

impl Parameter {
    pub(crate) fn schema(&self) -> Value {
        match self.form {
            ParameterForm::Text => json!({"type": "string"}),
            ParameterForm::Word(words) => json!({"type": "string", "enum": words}),
            ParameterForm::Flag => json!({"type": "boolean"}),
            ParameterForm::Count => json!({"type": "integer", "format": "int64", "minimum": 0}),
            ParameterForm::Time => json!({"type": "string", "format": "date-time"}),
            ParameterForm::Texts => json!({"type": "array", "items": {"type": "string"}}),
        }
    }

    pub(crate) fn document(&self) -> Value {
        json!({"name": self.name, "in": "query", "required": false, "description": self.about, "schema": self.schema()})
    }
}

/// Request body.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub required: bool,
    pub content: Content,
}

/// Media types, each with its schema; no schema for streams and bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content(pub Vec<(&'static str, Option<Value>)>);

impl Content {
    pub(crate) fn json(schema: Value) -> Self {
        Self(vec![("application/json", Some(schema))])
    }

    pub(crate) fn text() -> Self {
        Self(vec![("text/plain", Some(json!({"type": "string"})))])
    }

    /// Adds an alternative media type.
    pub(crate) fn or(mut self, media: &'static str, schema: Option<Value>) -> Self {
        self.0.push((media, schema));
        self
    }

    pub(crate) fn document(&self) -> Value {
        let one = |(media, schema): &(&'static str, Option<Value>)| {
            let value = schema.as_ref().map_or_else(|| json!({}), |schema| json!({ "schema": schema }));
            ((*media).to_owned(), value)
        };
        Value::Object(self.0.iter().map(one).collect())
    }
}

/// Returns a reference to a schema of the document.
pub(crate) fn refer(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

impl Route {
    /// Sets the one-line summary.
    pub(crate) fn about(&mut self, summary: impl Into<String>) -> &mut Self {
        self.operation.summary = summary.into();
        self
    }

    pub(crate) fn query(&mut self, parameters: &[Parameter]) -> &mut Self {
        self.operation.query.extend_from_slice(parameters);
        self
    }

    /// Declares a required body.
    pub(crate) fn takes(&mut self, content: Content) -> &mut Self {
        self.operation.body = Some(Body { required: true, content });
        self
    }

    /// Declares an optional body.
    pub(crate) fn may_take(&mut self, content: Content) -> &mut Self {
        self.operation.body = Some(Body { required: false, content });
        self
    }

    pub(crate) fn gives(&mut self, content: Content) -> &mut Self {
        self.gives_as(200, content)
    }

    pub(crate) fn gives_as(&mut self, status: u16, content: Content) -> &mut Self {
        self.operation.answers.push((status, content));
        self
    }

    pub(crate) fn extension(&mut self, name: &str, value: Value) -> &mut Self {
        self.operation.extensions.insert(name.to_owned(), value);
        self
    }

    /// Marks a route that only answers that a feature is not supported.
    pub(crate) fn refuses(&mut self) -> &mut Self {
        self.operation.refuses = true;
        self
    }
}
