//! Escapes foreign text for log lines and terminals: characters that are not visible are spelled out.

use std::borrow::Cow;
use std::fmt::Write;

use everlog_engine::hidden::is_hidden;

/// For a line, or a part of one.
pub fn line(text: &str) -> Cow<'_, str> {
    spelled(text, is_hidden, in_text)
}

/// For several lines, with tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    spelled(text, |letter| is_hidden(letter) && letter != '\n' && letter != '\t', in_text)
}

/// For JSON, whose meaning stays: hidden characters are in its strings only.
pub fn json(json: &str) -> Cow<'_, str> {
    spelled(json, is_hidden, in_json)
}

fn in_text(letter: char, to: &mut String) {
    match letter {
        '\n' | '\r' | '\t' => to.extend(letter.escape_default()),
        other => to.extend(other.escape_unicode()),
    }
}

fn in_json(letter: char, to: &mut String) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        // Writing to a string cannot fail.
        let _ = write!(to, "\\u{unit:04x}");
    }
}

fn spelled(text: &str, is_out: impl Fn(char) -> bool, spell: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.chars().any(&is_out) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_out(letter) {
            true => spell(letter, &mut plain),
            false => plain.push(letter),
        }
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_be_seen_is_spelled_out() {
        assert_eq!(line("order-1 äЖ日"), "order-1 äЖ日");
        assert_eq!(line("a\u{1b}[2Jb\nc\u{202e}"), r"a\u{1b}[2Jb\nc\u{202e}");
        assert_eq!(lines("a\tb\n\u{9b}1m"), "a\tb\n\\u{9b}1m");
    }

    #[test]
    fn json_says_the_same_afterwards() {
        let text = "a\u{7f}\u{9b}31m\u{2028}\u{200d}\u{e0001}\u{1b}\"";
        let written = serde_json::to_string(text).expect("JSON");
        let plain = json(&written);
        assert!(!plain.chars().any(is_hidden), "{plain}");
        assert_eq!(serde_json::from_str::<String>(&plain).expect("JSON"), text);
    }
}
