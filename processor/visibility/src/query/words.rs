//! Words of texts: what `=` on an attribute of type Text compares.
//!
//! A text is cut by the rules of Unicode for words, and again at each character that is neither letter nor number; words
//! are lower-cased. A query's text is cut at blanks first: the words of one piece are a phrase and must follow each other.

use unicode_segmentation::UnicodeSegmentation;

/// Words that must follow each other; never empty in a resolved filter.
pub type Phrase = Vec<String>;

/// The words of a text, lower-cased, in their order.
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_separator = |char: char| !char.is_alphanumeric();
    let parts = text.unicode_words().flat_map(move |word| word.split(is_separator));
    parts.filter(|part| !part.is_empty()).map(str::to_lowercase)
}

/// The phrases of a query's text: one of each piece between blanks that has a word.
pub fn phrases(text: &str) -> Vec<Phrase> {
    text.split(' ')
        .map(|piece| words(piece).collect::<Phrase>())
        .filter(|phrase| !phrase.is_empty())
        .collect()
}

/// True if some phrase stands in the text.
pub(crate) fn has_phrase(text: &str, phrases: &[Phrase]) -> bool {
    let words: Vec<_> = words(text).collect();
    phrases.iter().any(|phrase| !phrase.is_empty() && words.windows(phrase.len()).any(|part| part == phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_into_lower_cased_words() {
        let cut = |text| words(text).collect::<Vec<_>>().join("|");
        assert_eq!(cut("Order-4711 was SHIPPED, can't wait"), "order|4711|was|shipped|can|t|wait");
        assert_eq!(cut("3.14 foo_bar"), "3|14|foo|bar");
        assert_eq!(cut("Straße ÄÖÜ"), "straße|äöü");
        assert_eq!(cut("北京"), "北|京");
        assert_eq!(cut(" -- !\u{0}"), "");
    }

    #[test]
    fn any_phrase_of_a_query_matches_and_its_words_follow_each_other() {
        let matches = |text, query| has_phrase(text, &phrases(query));
        assert!(matches("a quick Brown fox", "cat brown"));
        assert!(matches("order-4711 shipped", "ORDER-4711"));
        assert!(matches("order 4711 shipped", "order-4711"));
        assert!(!matches("order shipped 4711", "order-4711"));
        assert!(!matches("brownish", "brown"));
        assert!(!matches("", "brown"));
        assert_eq!(phrases(" -- "), Vec::<Phrase>::new());
    }
}
