//! Lists the fields of locks, on a workflow or on a template.

use super::container::CONFIG_KEY;
use crate::admit::shape::{BOOL, Field, Shape, TEXT};

pub(super) static SYNCHRONIZATION: Shape = Shape::Object(&[&[
    Field::yes("mutexes", &MUTEXES, "Locks that one may hold at a time"),
    Field::yes("semaphores", &SEMAPHORES, "Locks that a limited number may hold at a time"),
    Field::yes("mutex", &MUTEX, "One mutex, in the older spelling"),
    Field::yes("semaphore", &SEMAPHORE, "One semaphore, in the older spelling"),
]]);

static MUTEXES: Shape = Shape::List(&MUTEX);
static MUTEX: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The lock's name"),
    Field::yes("namespace", &TEXT, "The namespace of the lock, that of the run when left out"),
    Field::yes("database", &BOOL, "Name it among the locks of the lock database, which is the engine's own here"),
]]);

static SEMAPHORES: Shape = Shape::List(&SEMAPHORE);
static SEMAPHORE: Shape = Shape::Object(&[&[
    Field::yes("configMapKeyRef", &CONFIG_KEY, "The key of a ConfigMap that holds the limit"),
    Field::yes("database", &DATABASE, "A semaphore of the lock database, which is the engine's own here"),
    Field::yes("namespace", &TEXT, "The namespace of the lock, that of the run when left out"),
]]);
static DATABASE: Shape = Shape::Object(&[&[Field::yes("key", &TEXT, "The semaphore's name")]]);
