//! Attacks on terminals, one by one and made up at random in chunks of any size.

use proptest::prelude::*;

use super::*;

fn streamed(chunks: &[&[u8]], policy: Policy) -> String {
    let mut sanitizer = Sanitizer::new(policy);
    let mut shown = Vec::new();
    for chunk in chunks {
        shown.extend_from_slice(&sanitizer.chunk(chunk));
    }
    shown.extend(sanitizer.finish().into_bytes());
    String::from_utf8(shown).unwrap()
}

fn of(text: &str) -> String {
    streamed(&[text.as_bytes()], Policy::Colours)
}

fn one_line(bytes: &[u8]) -> String {
    String::from_utf8(line(bytes, Policy::Colours).into_owned()).unwrap()
}

#[test]
fn sequences_are_removed_and_the_text_around_them_stays() {
    let attacks = [
        ("clipboard", "\x1b]52;c;cm0gLXJmIC8=\x07"),
        ("clipboard, ended by ST", "\x1b]52;c;cm0gLXJmIC8=\x1b\\"),
        ("title", "\x1b]0;you are root\x07"),
        ("title of screen", "\x1bkyou are root\x1b\\"),
        ("hyperlink", "\x1b]8;;http://evil.example\x1b\\"),
        ("clear screen", "\x1b[2J\x1b[3J\x1b[H"),
        ("clear line", "\x1b[2K"),
        ("cursor up", "\x1b[5A"),
        ("cursor to a place", "\x1b[1;1H"),
        ("alternate screen", "\x1b[?1049h"),
        ("mouse reports", "\x1b[?1003h"),
        ("bracketed paste off", "\x1b[?2004l"),
        ("keyboard modes, which end in m", "\x1b[>4;1m"),
        ("a question that ends in m", "\x1b[?4m"),
        ("device attributes, which the terminal answers as if typed", "\x1b[c\x1b[>c\x1b[=c"),
        ("position report", "\x1b[6n"),
        ("window report", "\x1b[21t"),
        ("answerback", "\x05"),
        ("DCS", "\x1bP$q\"p\x1b\\"),
        ("DCS, user defined keys", "\x1bP0;1|17/6c73\x1b\\"),
        ("SOS", "\x1bXhidden\x1b\\"),
        ("PM", "\x1b^hidden\x1b\\"),
        ("APC", "\x1b_Gi=1,a=q;AAAA\x1b\\"),
        ("reset of the terminal", "\x1bc"),
        ("character set", "\x1b(0"),
        ("double height", "\x1b#3"),
        ("save and restore", "\x1b7\x1b8"),
        ("scroll region", "\x1b[1;2r"),
        ("intermediates", "\x1b[0 q"),
        ("backspaces", "\x08\x08"),
        ("bell", "\x07"),
        ("shift out", "\x0e\x0f"),
        ("form feed and vertical tab", "\x0c\x0b"),
        ("NUL and DEL", "\0\x7f"),
        ("many escapes", "\x1b\x1b\x1b[2J"),
        ("cancelled", "\x1b]0;x\x18"),
    ];
    for (what, attack) in attacks {
        assert_eq!(of(&format!("a{attack}b")), "ab", "{what}");
        assert_eq!(one_line(format!("a{attack}b").as_bytes()), "ab", "{what} in a line");
        for at in 0..attack.len() {
            let (one, other) = attack.as_bytes().split_at(at);
            assert_eq!(streamed(&[b"a", one, other, b"b"], Policy::Colours), "ab", "{what}, cut at {at}");
        }
        let quoted = escaped(attack, true);
        assert!(!quoted.contains(|letter: char| letter.is_control()), "{what}: {quoted:?}");
    }
}

#[test]
fn colours_stay_and_are_ended_with_their_line() {
    assert_eq!(of("\x1b[1;31mred\x1b[0m plain"), "\x1b[1;31mred\x1b[0m plain");
    assert_eq!(of("\x1b[38;5;208morange"), "\x1b[38;5;208morange\x1b[0m");
    assert_eq!(of("\x1b[38:2::1:2:3mx\x1b[m"), "\x1b[38:2::1:2:3mx\x1b[m");
    assert_eq!(of("\x1b[31mred\nnext"), "\x1b[31mred\x1b[0m\nnext");
    assert_eq!(one_line(b"\x1b[7minverse"), "\x1b[7minverse\x1b[0m");
    assert_eq!(streamed(&[b"\x1b[3", b"1mx"], Policy::Colours), "\x1b[31mx\x1b[0m");
    assert_eq!(streamed(&[b"\x1b[31mx\x1b[0m"], Policy::Plain), "x");
    let long = format!("\x1b[{}m", "1;".repeat(MAX_SGR));
    assert_eq!(of(&format!("a{long}b")), "ab");
}

#[test]
fn a_sequence_without_an_end_does_not_hide_the_rest() {
    assert_eq!(of("a\x1b]52;c;AAAA\nnext line"), "a\nnext line");
    let long = format!("\x1b]0;{}end", "x".repeat(MAX_STRING));
    assert!(of(&long).ends_with("end"), "{}", of(&long));
    let long = format!("\x1b[{}end", "1".repeat(MAX_SEQUENCE + 1));
    assert!(of(&long).ends_with("nd"), "{}", of(&long));
    assert_eq!(of("a\x1b[12\nb"), "a\nb");
    assert_eq!(of("a\x1b"), "a");
}

#[test]
fn lines_drawn_over_show_their_last_state_and_streams_show_all() {
    assert_eq!(one_line(b"10%\r50%\r100%"), "100%");
    assert_eq!(one_line(b"done\r"), "done");
    assert_eq!(one_line(b"done\r\x1b[2K"), "done");
    assert_eq!(one_line(b"\r\r"), "");
    // What looks like another step's line stays behind this step's name.
    assert_eq!(one_line(b"x\rother: fine"), "other: fine");
    assert_eq!(of("a\r\nb\r\n"), "a\nb\n");
    assert_eq!(of("\r10%\r20%\r\n"), "10%\n20%\n");
    assert_eq!(streamed(&[b"a\r", b"\nb"], Policy::Colours), "a\nb");
}

#[test]
fn controls_beyond_ascii_are_escaped() {
    assert_eq!(of("a\u{9b}2Jb"), r"a\u009b2Jb");
    assert_eq!(of("a\u{9d}0;title\u{9c}b"), r"a\u009d0;title\u009cb");
    assert_eq!(of("safe\u{202e}gpj.exe\u{2066}"), r"safe\u202egpj.exe\u2066");
    assert_eq!(streamed(&[b"a\x9b2Jb\xc3"], Policy::Colours), "a\u{fffd}2Jb\u{fffd}");
    assert_eq!(streamed(&["é".as_bytes()[..1].as_ref(), &"é".as_bytes()[1..]], Policy::Colours), "é");
    assert_eq!(of("✔ 调度 e\u{301}"), "✔ 调度 e\u{301}");
}

#[test]
fn what_is_verbatim_is_not_touched() {
    let bytes = b"\x1b]52;c;AAAA\x07\x9b\r\n\x08";
    assert_eq!(&*Sanitizer::new(Policy::Verbatim).chunk(bytes), bytes);
    assert_eq!(&*line(bytes, Policy::Verbatim), bytes);
}

#[test]
fn text_of_ours_shows_what_it_quotes() {
    assert_eq!(escaped("no run `a\x1b]0;x\x07b`", true), r"no run `a\u001b]0;x\u0007b`");
    assert_eq!(escaped("\x1b[31merror:\x1b[0m x", true), "\x1b[31merror:\x1b[0m x");
    assert_eq!(escaped("\x1b[31mx", false), r"\u001b[31mx");
    assert_eq!(escaped("\x1b[>4;1mx\x1b[2J", true), r"\u001b[>4;1mx\u001b[2J");
    assert_eq!(escaped("a\r\nb\tc\rd", true), "a\nb\tc\\u000dd");
    assert_eq!(escaped("{\"a\": \"\u{9b}\u{7f}\"}", false), r#"{"a": "\u009b\u007f"}"#);
    assert!(matches!(escaped("plain\n", true), Cow::Borrowed(_)));
    assert_eq!(plain("\x1b[31mred\x1b[0m \x1b]0;x\x07tail"), "red tail");
}

/// Every control in it is a line feed, a tab, or the escape of a well-formed colour.
fn is_harmless(text: &str, colours: bool) -> bool {
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if letter == ESC {
            let Some(length) = colour_at(rest).filter(|_| colours) else { return false };
            rest = &rest[length..];
            continue;
        }
        let direction = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if direction || (letter.is_control() && !matches!(letter, '\n' | '\t')) {
            return false;
        }
        rest = &rest[letter.len_utf8()..];
    }
    true
}

/// Bytes in which sequences, their pieces, and broken letters are likely.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        Just(b"\x1b".to_vec()),
        Just(b"\x1b[".to_vec()),
        Just(b"\x1b]".to_vec()),
        Just(b"\x1b\\".to_vec()),
        Just(b"\x1b[31m".to_vec()),
        Just(b"\x1b[0m".to_vec()),
        Just(b"\r\n".to_vec()),
        Just("\u{9b}".as_bytes().to_vec()),
        Just("\u{202e}".as_bytes().to_vec()),
        "[0-9;:?>m ]{1,6}".prop_map(String::into_bytes),
        "[a-z]{1,5}".prop_map(String::into_bytes),
        "\\PC{1,3}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_harmful_passes_in_any_chunks(bytes in output(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.sort_unstable();
        places.push(bytes.len());
        let mut begin = 0;
        let chunks: Vec<&[u8]> = places.iter().map(|end| { let chunk = &bytes[begin..*end]; begin = *end; chunk }).collect();
        for policy in [Policy::Colours, Policy::Plain] {
            let shown = streamed(&chunks, policy);
            prop_assert!(is_harmless(&shown, policy == Policy::Colours), "{:?}", shown);
            prop_assert_eq!(&shown, &streamed(&[&bytes], policy), "chunks make no difference");
            let one = String::from_utf8(line(&bytes, policy).into_owned()).unwrap();
            prop_assert!(is_harmless(&one, policy == Policy::Colours), "{:?}", one);
        }
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(is_harmless(&escaped(&text, true), true));
        prop_assert!(is_harmless(&escaped(&text, false), false));
        prop_assert!(is_harmless(&plain(&text), false));
    }

    #[test]
    fn ordinary_text_is_not_changed(text in "[ -~\n\té-ɏ一-龥]{0,200}") {
        prop_assert_eq!(streamed(&[text.as_bytes()], Policy::Colours), text.as_str());
        prop_assert_eq!(&*escaped(&text, true), text.as_str());
    }
}
