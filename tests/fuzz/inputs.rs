//! Inputs: those of a corpus, changed in a few places. `EVERLOG_FUZZ_INPUTS` says how many each target gets; the seed is that of the
//! commit, or `EVERLOG_FUZZ_SEED`.

use everlog_tests::dice::seed_of_the_commit;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::{BoxedStrategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Inputs of a target, unless the variable says otherwise.
const INPUTS: usize = 1_500;
/// Inputs between two looks at the server.
pub const BATCH: usize = 100;

/// How many batches of inputs a target gets.
pub fn batches() -> usize {
    let wanted = std::env::var("EVERLOG_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(INPUTS).div_ceil(BATCH)
}

/// The bytes that a line has in hexadecimal.
pub fn of_hex(line: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    line.as_bytes().chunks(2).filter_map(byte).collect()
}

/// What is put between: what parsers of text and of protobuf look for.
const WORDS: &[&[u8]] = &[
    b"'",
    b"\"",
    b"\\",
    b"(",
    b")",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b":",
    b"=",
    b"<",
    b">",
    b"!=",
    b" AND ",
    b" OR ",
    b" NOT ",
    b" IN ",
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xc3\x28",
    b"\xe2\x80\xae",
    b"9223372036854775808",
    b"-1",
    b"1e999",
    b"null",
    b"true",
    b"%00",
    b"../",
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 18446744073709551616\r\n",
];

/// A change of an input.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    /// The rest is that of another input.
    Join(Index, Index),
}

fn change() -> impl Strategy<Value = Change> {
    let word = proptest::sample::select(WORDS).prop_map(<[u8]>::to_vec);
    prop_oneof![
        3 => (any::<Index>(), any::<u8>()).prop_map(|(at, bit)| Change::Flip(at, bit)),
        3 => (any::<Index>(), word).prop_map(|(at, word)| Change::Insert(at, word)),
        1 => (any::<Index>(), vec(any::<u8>(), 1..16)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (any::<Index>(), 1_usize..24).prop_map(|(at, len)| Change::Remove(at, len)),
        1 => (any::<Index>(), 1_usize..24, 1_usize..400).prop_map(|(at, len, times)| Change::Repeat(at, len, times)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(at, other)| Change::Join(at, other)),
    ]
}

impl Change {
    fn apply(&self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let len = input.len();
        let place = |at: &Index| at.index(len + 1);
        match self {
            Self::Flip(at, bit) => {
                let at = place(at);
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Self::Insert(at, bytes) => {
                let at = place(at);
                input.splice(at..at, bytes.iter().copied());
            }
            Self::Remove(at, count) => {
                let at = place(at);
                input.drain(at..len.min(at + count));
            }
            Self::Repeat(at, count, times) => {
                let at = place(at);
                let part = input[at..len.min(at + count)].repeat(*times);
                input.splice(at..at, part);
            }
            Self::Join(at, other) => {
                let at = place(at);
                let other = &corpus[other.index(corpus.len())];
                input.truncate(at);
                input.extend_from_slice(&other[at.min(other.len())..]);
            }
        }
    }
}

/// Inputs without an end.
pub struct Inputs {
    runner: TestRunner,
    strategy: BoxedStrategy<Vec<u8>>,
}

impl Inputs {
    /// Changes of the inputs of a corpus. Some are unchanged.
    pub fn of(corpus: Vec<Vec<u8>>) -> Self {
        let given = std::env::var("EVERLOG_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&given.unwrap_or_else(seed_of_the_commit).to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let first = proptest::sample::select(corpus.clone());
        let strategy = (first, vec(change(), 0..6)).prop_map(move |(mut input, changes)| {
            for change in &changes {
                change.apply(&mut input, &corpus);
            }
            input
        });
        Self { runner: TestRunner::new_with_rng(Config::default(), rng), strategy: strategy.boxed() }
    }

    pub fn next(&mut self) -> Vec<u8> {
        let tree = self.strategy.new_tree(&mut self.runner).expect("nothing is filtered out");
        tree.current()
    }
}
