//! Column headers of tables.

/// The header of a column.
#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    /// The OpenAPI type of its cells.
    pub kind: &'static str,
    pub about: &'static str,
    /// True if shown in wide output only.
    pub wide: bool,
}

pub(crate) const fn text(name: &'static str, about: &'static str) -> Column {
    Column { name, kind: "string", about, wide: false }
}

pub(crate) const fn number(name: &'static str, about: &'static str) -> Column {
    Column { name, kind: "integer", about, wide: false }
}

pub(crate) const fn wide(column: Column) -> Column {
    Column { wide: true, ..column }
}

pub(crate) const NAME: Column = text("Name", "The name of the object");
pub(crate) const AGE: Column = text("Age", "How long ago it was created");
