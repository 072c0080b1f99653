//! Suggests the known name a misspelt word most likely meant. It only suggests: nothing may act on a suggestion.

/// Longer words are compared by their first characters only; mistyped names are short.
const MAX_WORD: usize = 64;

/// Returns the known name nearest to `word` by edit distance (insert, delete, replace, transpose), if it is near enough
/// to suggest: at most one edit in three characters. The first of several equally near names wins.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = fold(word);
    let tolerated = (wanted.len() / 3).max(1);
    let mut best: Option<(usize, &'a str)> = None;
    for name in known {
        let candidate = fold(name);
        if candidate.is_empty() || candidate.len().abs_diff(wanted.len()) > tolerated {
            continue;
        }
        let distance = edits(&wanted, &candidate);
        // A one-letter word is one edit away from every other; only a difference in case is worth suggesting.
        let near = distance <= tolerated && (distance < wanted.len() || distance == 0);
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

fn fold(word: &str) -> Vec<char> {
    word.chars()
        .take(MAX_WORD)
        .map(|c| match c.to_ascii_lowercase() {
            '_' => '-',
            lower => lower,
        })
        .collect()
}

fn edits(left: &[char], right: &[char]) -> usize {
    let width = right.len() + 1;
    let mut older: Vec<usize> = vec![0; width];
    let mut old: Vec<usize> = (0..width).collect();
    for (row, &a) in left.iter().enumerate() {
        let mut new = vec![row + 1; width];
        for (column, &b) in right.iter().enumerate() {
            let replaced = old[column] + usize::from(a != b);
            let mut least = replaced.min(old[column + 1] + 1).min(new[column] + 1);
            if row > 0 && column > 0 && a == right[column - 1] && left[row - 1] == b {
                least = least.min(older[column - 1] + 1);
            }
            new[column + 1] = least;
        }
        older = old;
        old = new;
    }
    old[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_by_edits() {
        let known = ["inputs", "outputs", "workflow", "item", "tasks"];
        for (word, expected) in [
            ("input", Some("inputs")),
            ("imputs", Some("inputs")),
            ("wrokflow", Some("workflow")),
            ("ITEM", Some("item")),
            ("taks", Some("tasks")),
            ("banana", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }

    #[test]
    fn a_one_letter_word_suggests_only_its_other_case() {
        assert_eq!(nearest("a", ["b", "c"]), None);
        assert_eq!(nearest("a", ["b", "A"]), Some("A"));
    }
}
