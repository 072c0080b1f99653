//! Lists the fields of http, resource and data templates, which send a request instead of running a container.

use super::{container::CONFIG_KEY, data::ARGUMENT_ARTIFACT};
use crate::admit::shape::{ANY, BOOL, Field, INT_OR_TEXT, SCALAR, Shape, TEXT, TEXTS};

pub(super) static HTTP: Shape = Shape::Object(&[&[
    Field::yes("url", &TEXT, "Where to"),
    Field::yes("method", &TEXT, "The method; GET when left out"),
    Field::yes("headers", &HEADERS, "Lines of the request's head"),
    Field::yes("body", &SCALAR, "What is sent"),
    Field::yes("bodyFrom", &BODY_FROM, "What is sent, as bytes"),
    Field::yes("timeoutSeconds", &INT_OR_TEXT, "How long the exchange may take; 30 when left out"),
    Field::yes("successCondition", &TEXT, "An expression over `request` and `response`; any 2xx when left out"),
    Field::yes("insecureSkipVerify", &BOOL, "Do not check the server's certificate"),
]]);

static HEADERS: Shape = Shape::List(&HEADER);
static HEADER: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The header's name"),
    Field::yes("value", &SCALAR, "Its value"),
    Field::yes("valueFrom", &HEADER_FROM, "Where its value comes from"),
]]);
static HEADER_FROM: Shape = Shape::Object(&[&[Field::yes("secretKeyRef", &CONFIG_KEY, "A key of a Secret")]]);
static BODY_FROM: Shape = Shape::Object(&[&[Field::yes("bytes", &TEXT, "The bytes, as base64")]]);

pub(super) static RESOURCE: Shape = Shape::Object(&[&[
    Field::yes("action", &TEXT, "What is done: get, create, apply, delete, replace or patch"),
    Field::yes("manifest", &TEXT, "The object, or the change to it, as YAML or JSON"),
    Field::yes("manifestFrom", &MANIFEST_FROM, "The artifact that holds the manifest"),
    Field::yes("mergeStrategy", &TEXT, "Of patch: strategic, merge or json"),
    Field::yes("setOwnerReference", &BOOL, "The object belongs to the run: it is stopped and deleted with it"),
    Field::yes("successCondition", &TEXT, "Wait until all of this holds, such as `status.phase == Succeeded`"),
    Field::yes("failureCondition", &TEXT, "Fail as soon as any of this holds; looked at first"),
    Field::yes("flags", &TEXTS, "More of the command line: `KIND NAME`, `-n NAMESPACE`, `--ignore-not-found`"),
]]);

static MANIFEST_FROM: Shape =
    Shape::Object(&[&[Field::yes("artifact", &ARGUMENT_ARTIFACT, "An input artifact by its name, or raw data")]]);

pub(super) static DATA: Shape = Shape::Object(&[&[
    Field::yes("source", &SOURCE, "Where the list comes from"),
    Field::yes("transformation", &TRANSFORMATION, "Expressions, each over the `data` the one before it made"),
]]);

static SOURCE: Shape =
    Shape::Object(&[&[Field::yes("artifactPaths", &ANY, "The keys below a key of the artifact repository")]]);
static TRANSFORMATION: Shape = Shape::List(&STEP);
static STEP: Shape = Shape::Object(&[&[Field::yes("expression", &TEXT, "An expression over `data`")]]);
