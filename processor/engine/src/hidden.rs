//! Characters that show nothing, or change how those around them are shown.

/// Whether a reader of a text would not see this character for what it is: control characters, separators of lines, what
/// turns the direction of writing, and what has no width.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_hidden_and_letters_of_all_languages_are_not() {
        for hidden in
            "\0\t\n\r\u{1b}\u{7f}\u{85}\u{9b}\u{200b}\u{200d}\u{202e}\u{2028}\u{2066}\u{2069}\u{feff}".chars()
        {
            assert!(is_hidden(hidden), "{hidden:?}");
        }
        for shown in "aZ 09-_.:/äßЖ日本語한국어العربية עברית ไทย 🦀é".chars() {
            assert!(!is_hidden(shown), "{shown:?}");
        }
    }
}
