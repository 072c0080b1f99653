//! Aligned columns of text. Colours do not count as width, and no line ends in spaces.

use super::colour::{Colour, Paint, one_line, width};

/// Spaces between columns.
const GAP: usize = 2;

#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// Pieces of text, each with its colour.
    pieces: Vec<(String, Colour)>,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self::coloured(text, Colour::Plain)
    }

    pub(crate) fn coloured(text: impl AsRef<str>, colour: Colour) -> Self {
        Self { pieces: vec![(one_line(text.as_ref()), colour)] }
    }

    /// Makes a cell from pieces that are already safe to print, such as box lines and icons.
    pub(crate) fn pieces(pieces: Vec<(String, Colour)>) -> Self {
        Self { pieces }
    }

    fn width(&self) -> usize {
        self.pieces.iter().map(|(text, _)| width(text)).sum()
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    header: Option<Vec<Cell>>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { header: Some(header.iter().map(|title| Cell::new(*title)).collect()), rows: Vec::new() }
    }

    /// Makes a table without titles.
    pub(crate) fn bare() -> Self {
        Self::default()
    }

    #[must_use]
    pub(crate) fn without_header(mut self, without: bool) -> Self {
        if without {
            self.header = None;
        }
        self
    }

    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    pub(crate) fn render(&self, paint: Paint) -> String {
        self.lines(paint).into_iter().fold(String::new(), |mut text, line| {
            text.push_str(&line);
            text.push('\n');
            text
        })
    }

    pub(crate) fn lines(&self, paint: Paint) -> Vec<String> {
        let all = || self.header.iter().chain(&self.rows);
        let columns = all().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| all().filter_map(|row| row.get(column)).map(Cell::width).max().unwrap_or(0))
            .collect();
        all().map(|row| line(row, &widths, paint)).collect()
    }
}

fn line(row: &[Cell], widths: &[usize], paint: Paint) -> String {
    let mut text = String::new();
    let mut owed = 0;
    for (cell, column) in row.iter().zip(widths) {
        let taken = cell.width();
        if taken > 0 {
            text.extend(std::iter::repeat_n(' ', owed));
            owed = 0;
            for (piece, colour) in &cell.pieces {
                text.push_str(&paint.paint(piece, *colour));
            }
        }
        owed += column - taken + GAP;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_without_spaces() {
        let mut table = Table::new(&["NAME", "STATUS", "MESSAGE"]);
        table.push(vec!["a".into(), Cell::coloured("Succeeded", Colour::Green), "".into()]);
        table.push(vec!["longer-name".into(), "Failed".into(), "exit\ncode 1".into()]);
        let expected = "NAME         STATUS     MESSAGE\n\
                        a            Succeeded\n\
                        longer-name  Failed     exit code 1\n";
        assert_eq!(table.render(Paint::OFF), expected);
    }

    #[test]
    fn colours_do_not_shift_columns() {
        let mut table = Table::bare();
        table.push(vec![Cell::coloured("ok", Colour::Green), "x".into()]);
        table.push(vec!["fail".into(), "y".into()]);
        assert_eq!(table.render(Paint::ON), "\x1b[32mok\x1b[0m    x\nfail  y\n");
    }
}
