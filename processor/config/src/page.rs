//! The settings as a file, and as docs/configuration.md.

use crate::Config;

/// Columns of a line of comment.
const COLUMNS: usize = 118;

/// A file with every setting, its meaning and what is allowed.
pub fn file(config: &Config) -> String {
    let mut file = "# Every setting of Everlog; see docs/configuration.md.\n".to_owned();
    for section in config.sections() {
        file.push('\n');
        comment(&mut file, &section.about());
        file.push_str(&format!("[{}]\n", section.name()));
        for key in section.keys() {
            comment(&mut file, &format!("{} Allowed: {}.", key.meaning, key.allowed));
            file.push_str(&format!("{} = {}\n", key.name, key.value));
        }
    }
    file
}

fn comment(file: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > COLUMNS {
            file.push_str(&line);
            file.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    file.push_str(&line);
    file.push('\n');
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use expect_test::expect_file;

    use super::*;

    const HEAD: &str = "\
# Configuration

`everlog serve --config everlog.toml` reads a file like [everlog.toml](everlog.toml), which shows every setting with its
default. `everlog dev` needs no file and has the same defaults. `everlog config` shows every setting as it would be used.

What is given later wins: default, file, environment, command line. The variable for the key `partitions` in `[log]` is
`EVERLOG_LOG__PARTITIONS`: the section and the key in capitals, with two underscores between them. A setting that is
unknown or not allowed stops the start with a message that names it and says what is allowed.

Besides, `EVERLOG_LOG` (or `RUST_LOG`) says which log lines are written, and `NO_COLOR` turns colours off.

This page is written from the settings in the code: `UPDATE_EXPECT=1 cargo test -p everlog-config` does it.
";

    fn page() -> String {
        let mut page = HEAD.to_owned();
        for section in Config::default().sections() {
            page.push_str(&format!("\n## [{}]\n\n{}\n\n", section.name(), section.about()));
            page.push_str("| key | default | allowed | meaning |\n|---|---|---|---|\n");
            for key in section.keys() {
                let (name, value, allowed, meaning) = (key.name, key.value, key.allowed, key.meaning);
                page.push_str(&format!("| `{name}` | `{value}` | {allowed} | {meaning} |\n"));
            }
        }
        page
    }

    fn docs() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs")
    }

    #[test]
    fn the_documentation_shows_the_settings_as_they_are() {
        expect_file![docs().join("configuration.md")].assert_eq(&page());
        expect_file![docs().join("everlog.toml")].assert_eq(&file(&Config::default()));
    }

    #[test]
    fn settings_that_are_written_down_read_the_same() {
        let mut config = Config::default();
        config.log.partitions = 16;
        config.server.data_dir = "a \"quoted\" path".into();
        config.tokens.key_file = Some("keys".into());
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("everlog.toml");
        std::fs::write(&path, file(&config)).expect("it can be written");
        assert_eq!(Config::load(Some(&path), &Default::default()).expect("it can be read"), config);
    }
}
