//! The writer of log lines, to the standard error stream. Each stays one line.

use std::io::{self, Write};

use crate::logs::visible;

/// The format of lines.
#[derive(Clone, Copy)]
pub enum LineFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    Plain,
    /// For people, with colours.
    Coloured,
}

impl LineFormat {
    /// A line that is safe to write. Errors and names in it may contain anything.
    fn line(self, line: &str) -> String {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let line = match self {
            Self::Json => visible::json(line).into_owned(),
            Self::Plain => visible::line(line).into_owned(),
            Self::Coloured => coloured(line),
        };
        line + end
    }
}

impl Write for LineFormat {
    /// Called with whole lines.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(self.line(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Keeps colours, which are `ESC [ numbers m`.
fn coloured(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut out = visible::line(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let numbers =
            part.find(|letter: char| !letter.is_ascii_digit() && letter != ';').unwrap_or(part.len());
        let is_colour = part[numbers..].starts_with('m');
        out.push_str(if is_colour { "\u{1b}[" } else { "\\u{1b}[" });
        out.push_str(&visible::line(part));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line_in_which_all_is_seen() {
        let hostile = "gone: x\nINFO all is well\u{1b}[2J\u{9b}\n";
        assert_eq!(LineFormat::Plain.line(hostile), "gone: x\\nINFO all is well\\u{1b}[2J\\u{9b}\n");
        assert_eq!(LineFormat::Json.line("{\"a\":\"\u{9b}\"}\n"), "{\"a\":\"\\u009b\"}\n");
        let mixed = "\u{1b}[32m INFO\u{1b}[0m x\u{1b}[1;31my\u{1b}[2Jz\u{1b}\n";
        assert_eq!(
            LineFormat::Coloured.line(mixed),
            "\u{1b}[32m INFO\u{1b}[0m x\u{1b}[1;31my\\u{1b}[2Jz\\u{1b}\n"
        );
    }
}
