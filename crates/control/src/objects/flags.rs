//! Flags of a resource template: which object, in which namespace, and how missing objects are treated.

/// Supported flags.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub kind: Option<String>,
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub ignore_not_found: bool,
}

impl Flags {
    pub(super) fn read(words: &[String]) -> Result<Self, String> {
        let mut flags = Self::default();
        let mut words = words.iter().flat_map(|word| word.split_whitespace());
        while let Some(word) = words.next() {
            match word.split_once('=').unwrap_or((word, "")) {
                ("-n" | "--namespace", "") => {
                    flags.namespace = Some(words.next().ok_or("the flag -n needs a namespace")?.to_owned());
                }
                ("-n" | "--namespace", namespace) => flags.namespace = Some(namespace.to_owned()),
                ("--ignore-not-found", value) => flags.ignore_not_found = value != "false",
                // Without effect here: admission always validates, fields have one manager, and answers are always
                // complete.
                ("--validate" | "--force-conflicts" | "--server-side" | "--wait" | "--field-manager", _) => {}
                (flag, _) if flag.starts_with('-') => {
                    return Err(format!(
                        "the flag {flag} has no meaning here; known are: KIND NAME, -n NAMESPACE, --ignore-not-found"
                    ));
                }
                _ => match (&flags.kind, &flags.name, word.split_once('/')) {
                    (None, None, Some((kind, name))) => {
                        (flags.kind, flags.name) = (Some(kind.to_owned()), Some(name.to_owned()));
                    }
                    (None, _, None) => flags.kind = Some(word.to_owned()),
                    (Some(_), None, None) => flags.name = Some(word.to_owned()),
                    _ => return Err(format!("the flags name more than one object: {word}")),
                },
            }
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_in_two_ways() {
        let read = |text: &str| Flags::read(&[text.to_owned()]);
        let both = ["cm/settings -n other", "cm settings --namespace=other"];
        for text in both {
            let flags = read(text).unwrap();
            assert_eq!((flags.kind.as_deref(), flags.name.as_deref()), (Some("cm"), Some("settings")));
            assert_eq!(flags.namespace.as_deref(), Some("other"));
        }
        assert!(read("--ignore-not-found=true").unwrap().ignore_not_found);
        assert!(read("-l app=x").unwrap_err().contains("-l"));
        assert!(read("cm a b").unwrap_err().contains("more than one"));
    }
}
