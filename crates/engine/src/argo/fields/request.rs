//! The fields of templates that ask for something instead of running a container.

use super::container::CONFIG_KEY;
use crate::shape::{BOOL, Field, INT_OR_TEXT, SCALAR, Shape, TEXT};

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
static BODY_FROM: Shape = Shape::Object(&[&[Field::yes("bytes", &TEXT, "Base64")]]);
