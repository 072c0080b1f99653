//! Lists the fields of memoization.

use crate::admit::shape::{BOOL, Field, INT_OR_TEXT, Shape, TEXT};

pub(super) static MEMOIZE: Shape = Shape::Object(&[&[
    Field::yes("key", &TEXT, "What the outputs depend on; calls with the same key share them"),
    Field::yes("cache", &CACHE, "Where the outputs are kept"),
    Field::yes("maxAge", &INT_OR_TEXT, "Outputs older than this are made anew, a duration"),
]]);

static CACHE: Shape = Shape::Object(&[&[Field::yes("configMap", &MAP, "The ConfigMap that is the cache")]]);
static MAP: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "Its name; it is made when it is not there"),
    Field::yes("key", &TEXT, "Not used: the entries are named by the keys"),
    Field::yes("optional", &BOOL, "Not used: a missing cache is made"),
]]);
