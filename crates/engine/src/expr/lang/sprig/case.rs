//! Case conversions: upper, lower, `FirstName`, `first_name`, `first-name`.

/// Converts the first letter of every word to upper case.
pub(super) fn title(text: &str) -> String {
    initials(text, |c| c.to_uppercase().collect())
}

/// Converts the first letter of every word to lower case.
pub(super) fn untitle(text: &str) -> String {
    initials(text, |c| c.to_lowercase().collect())
}

pub(super) fn swap(text: &str) -> String {
    text.chars()
        .flat_map(|c| -> Box<dyn Iterator<Item = char>> {
            if c.is_uppercase() { Box::new(c.to_lowercase()) } else { Box::new(c.to_uppercase()) }
        })
        .collect()
}

pub(super) fn snake(text: &str) -> String {
    words(text).join("_")
}

pub(super) fn kebab(text: &str) -> String {
    words(text).join("-")
}

pub(super) fn camel(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let mut letters = word.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            format!("{first}{}", letters.as_str())
        })
        .collect()
}

fn initials(text: &str, change: fn(char) -> String) -> String {
    let mut inside = false;
    text.chars()
        .map(|c| {
            let first = !inside && c.is_alphanumeric();
            inside = c.is_alphanumeric() || c == '_' || (inside && c == '\'');
            if first { change(c) } else { c.to_string() }
        })
        .collect()
}

/// Splits a text into words. They end at anything but letters and digits, before an upper case letter after a lower
/// case one, and before the last of several upper case letters when a lower case one follows: `HTTPServer2Go` is `http
/// server2 go`.
fn words(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut words: Vec<String> = vec![String::new()];
    for (index, &c) in letters.iter().enumerate() {
        if !c.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = index.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(index + 1);
        let rises = before.is_some_and(|b| b.is_lowercase() || b.is_numeric());
        let falls = before.is_some_and(|b| b.is_uppercase()) && after.is_some_and(|a| a.is_lowercase());
        if c.is_uppercase() && (rises || falls) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_case() {
        for (text, snaked) in [
            ("FirstName", "first_name"),
            ("HTTPServer", "http_server"),
            ("no-https", "no_https"),
            ("a b  c", "a_b_c"),
            ("v2Beta", "v2_beta"),
            ("", ""),
        ] {
            assert_eq!(snake(text), snaked);
        }
        assert_eq!(kebab("FirstName"), "first-name");
        assert_eq!(camel("http_server"), "HttpServer");
        assert_eq!(title("hello wide-world it's"), "Hello Wide-World It's");
        assert_eq!(untitle("Hello World"), "hello world");
        assert_eq!(swap("aBc"), "AbC");
    }
}
