//! What holds for every line of Rust, read as Rust and not as text.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item};

use crate::patience::PATIENCE;
use crate::tree::{File, files, none, ratchet};

const FUNCTION_WALL_LINES: usize = 70;
/// Functions beyond the wall, as `file: name`, with their lines. May only shrink.
const LONG_FUNCTIONS: &[(&str, usize)] = &[];

/// The only files that may hold unsafe code.
const UNSAFE_LEAVES: &[&str] =
    &["processor/log-kafka/src/client/librdkafka.rs", "processor/node/src/observe/memory.rs"];

/// A word, a sign or a bracket of a Rust file. `::` is one sign.
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// Reads a file as Rust.
pub fn parse(file: &File) -> syn::File {
    syn::parse_file(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.path))
}

/// Whether `words` come right after the token at `at`.
pub fn follows(tokens: &[Token], at: usize, words: &[&str]) -> bool {
    words.iter().enumerate().all(|(n, word)| tokens.get(at + 1 + n).is_some_and(|token| token.text == *word))
}

/// All tokens but those of test modules and test functions.
pub fn tokens_outside_tests(file: &syn::File) -> Vec<Token> {
    let mut tokens = Vec::new();
    split(&file.items, &mut tokens, &mut Vec::new());
    tokens
}

/// Parts items into what is shipped and what is only for tests.
fn split(items: &[Item], shipped: &mut Vec<Token>, tests: &mut Vec<Token>) {
    for item in items {
        let attributes = attributes_of(item);
        match item {
            _ if attributes.iter().any(is_for_tests) => flatten(item.to_token_stream(), tests),
            Item::Mod(module) if module.content.is_some() => {
                let (_, inner) = module.content.as_ref().expect("looked at in the line above");
                split(inner, shipped, tests);
            }
            _ => flatten(item.to_token_stream(), shipped),
        }
    }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, `#[cfg(all(test, ...))]`.
fn is_for_tests(attribute: &Attribute) -> bool {
    let is_test = attribute.path().segments.last().is_some_and(|segment| segment.ident == "test");
    let mut words = Vec::new();
    if attribute.path().is_ident("cfg") {
        flatten(attribute.meta.to_token_stream(), &mut words);
    }
    is_test || (words.iter().any(|w| w.text == "test") && !words.iter().any(|w| w.text == "not"))
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(Token { text: open.to_owned(), line });
                flatten(group.stream(), tokens);
                tokens.push(Token { text: close.to_owned(), line: group.span_close().start().line });
            }
            TokenTree::Punct(sign)
                if sign.as_char() == ':' && tokens.last().is_some_and(|t| t.text == ":") =>
            {
                tokens.last_mut().expect("looked at in the line above").text.push(':');
            }
            other => tokens.push(Token { text: other.to_string(), line }),
        }
    }
}

/// A Rust file, as tokens that are shipped and tokens that only its tests are built from.
pub struct Parted {
    pub path: String,
    pub shipped: Vec<Token>,
    tests: Vec<Token>,
}

/// All Rust files of the clone.
pub fn parted() -> Vec<Parted> {
    let files: Vec<File> = files().into_iter().filter(File::is_rust).collect();
    let test_modules: BTreeSet<String> = files.iter().flat_map(test_modules_of).collect();
    let mut parted = Vec::new();
    for file in files {
        let (mut shipped, mut tests) = (Vec::new(), Vec::new());
        split(&parse(&file).items, &mut shipped, &mut tests);
        let stem = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
        if file.is_test() || test_modules.iter().any(|m| stem == m || stem.starts_with(&format!("{m}/"))) {
            tests.append(&mut shipped);
        }
        parted.push(Parted { path: file.path, shipped, tests });
    }
    parted
}

/// The modules that a file declares for tests and keeps in files of their own, as paths without `.rs`.
fn test_modules_of(file: &File) -> Vec<String> {
    let (folder, name) = file.path.rsplit_once('/').expect("no Rust file lies in the root");
    let stem = name.trim_end_matches(".rs");
    let home =
        if ["lib", "main", "mod"].contains(&stem) { folder.to_owned() } else { format!("{folder}/{stem}") };
    let declared = parse(file).items.into_iter().filter_map(|item| match item {
        Item::Mod(m) if m.content.is_none() && m.attrs.iter().any(is_for_tests) => Some(m.ident.to_string()),
        _ => None,
    });
    declared.map(|name| format!("{home}/{name}")).collect()
}

/// All tokens of some code.
pub fn tokens_of(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    flatten(code.parse().expect("it is Rust"), &mut tokens);
    tokens
}

/// Where `rule` holds, for a file's path and a place among its tokens: in shipped code, in tests, or in both.
pub fn found(shipped: bool, tests: bool, rule: impl Fn(&str, &[Token], usize) -> bool) -> Vec<String> {
    let mut problems = Vec::new();
    for file in parted() {
        for (wanted, tokens) in [(shipped, &file.shipped), (tests, &file.tests)] {
            let places = (0..tokens.len()).filter(|at| wanted && rule(&file.path, tokens, *at));
            problems
                .extend(places.map(|at| format!("{}:{}: {}", file.path, tokens[at].line, tokens[at].text)));
        }
    }
    problems
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    let problems = found(true, false, |_, tokens, at| {
        ["unwrap", "unwrap_err"].contains(&tokens[at].text.as_str())
            && at > 0
            && [".", "::"].contains(&tokens[at - 1].text.as_str())
    });
    none(&problems, "outside tests say why it cannot fail, expect(\"...\"), or return an error:");
}

#[test]
fn nothing_is_left_for_later() {
    let problems = found(true, true, |_, tokens, at| {
        let word = tokens[at].text.as_str();
        let unwritten = ["todo", "unimplemented"].contains(&word) && follows(tokens, at, &["!"]);
        let ignored = word == "ignore" && at > 0 && tokens[at - 1].text == "[";
        unwritten || ignored
    });
    none(&problems, "unwritten code or ignored tests:");
}

#[test]
fn no_test_sleeps() {
    let problems = found(false, true, |path, tokens, at| {
        ["sleep", "sleep_until"].contains(&tokens[at].text.as_str())
            && follows(tokens, at, &["("])
            && (at == 0 || ![".", "fn"].contains(&tokens[at - 1].text.as_str()))
            && !PATIENCE.contains(&path)
    });
    none(&problems, "tests that sleep: wait for a condition, with a deadline:");
}

#[test]
fn unsafe_code_stays_in_its_leaves() {
    let problems =
        found(true, true, |path, tokens, at| tokens[at].text == "unsafe" && !UNSAFE_LEAVES.contains(&path));
    none(&problems, "unsafe code outside the named leaves:");
}

#[test]
fn no_function_is_too_long() {
    let mut lengths = BTreeMap::new();
    for file in files().iter().filter(|f| f.is_rust()) {
        let mut functions = Functions { path: &file.path, lengths: &mut lengths };
        functions.visit_file(&parse(file));
    }
    assert!(!lengths.is_empty(), "no function was found");
    let problems = ratchet(&lengths, FUNCTION_WALL_LINES, LONG_FUNCTIONS);
    none(&problems, "functions are too long: name the steps");
}

/// The longest function of each name in a file, from its `fn` to its closing brace.
struct Functions<'a> {
    path: &'a str,
    lengths: &'a mut BTreeMap<String, usize>,
}

impl Functions<'_> {
    fn saw(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let lines = body.span().end().line - signature.fn_token.span.start().line + 1;
        let longest = self.lengths.entry(format!("{}: {}", self.path, signature.ident)).or_default();
        *longest = lines.max(*longest);
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.saw(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.saw(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.saw(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[test]
fn tests_are_told_from_what_is_shipped() {
    let code =
        "fn a() {} #[cfg(test)] mod t { fn b() {} } mod m { #[test] fn c() {} #[cfg(not(test))] fn d() {} }";
    let tokens = tokens_outside_tests(&syn::parse_file(code).expect("it is Rust"));
    let functions = (0..tokens.len()).filter(|at| *at > 0 && tokens[at - 1].text == "fn");
    let names: Vec<&str> = functions.map(|at| tokens[at].text.as_str()).collect();
    assert_eq!(names, ["a", "d"]);
}
