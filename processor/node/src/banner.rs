//! What `everlog dev` prints when it serves: the addresses, and what to try next.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

/// The addresses of a node.
#[derive(Clone, Copy)]
pub struct Addresses {
    /// For SDKs.
    pub calls: SocketAddr,
    /// For metrics and health.
    pub metrics: SocketAddr,
    /// For schemas, and commands over HTTP.
    pub face: SocketAddr,
}

/// The content of the banner.
pub struct Banner<'a> {
    /// The addresses.
    pub addresses: Addresses,
    /// The brokers of the log and the prefix of its topics; none for the embedded log.
    pub kafka: Option<(&'a str, &'a str)>,
    /// The data directory.
    pub data_dir: &'a Path,
    /// The directory is removed at the end.
    pub ephemeral: bool,
    /// Appends are synced to the disk.
    pub synced: bool,
    /// Partitions.
    pub partitions: u32,
}

impl Banner<'_> {
    /// The text, with colours or without.
    pub fn render(&self, coloured: bool) -> String {
        let paint = |code: &str, text: &str| {
            if coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
        };
        let Self { addresses, kafka, data_dir, ephemeral, synced, partitions } = self;
        let Addresses { calls: address, metrics, face } = addresses;
        let fate = if *ephemeral { "removed at the end" } else { "stays" };
        let sync = if *synced { "every write synced" } else { "writes not synced" };
        let start = format!(
            "temporal workflow start --address {address} --task-queue greetings --type Greeting --input '\"world\"'"
        );
        let log_option = match kafka {
            Some((brokers, _)) => format!("--kafka-bootstrap {brokers}"),
            None => format!("--http-address {face}"),
        };
        let events = format!("everlog events tail --from-beginning {log_option}");
        let face_remark = if kafka.is_some() { "" } else { "and POST /commands" };
        let log = kafka.map(|(brokers, prefix)| {
            ("Kafka", brokers.to_owned(), format!("topics {prefix}*, {partitions} partitions"))
        });
        let kept = match kafka {
            Some(_) => format!("{fate}, a copy of what is on Kafka"),
            None => format!("{fate}, {partitions} partitions, {sync}"),
        };
        let data = ("data", data_dir.display().to_string(), kept);
        let where_it_is = [
            ("gRPC", address.to_string(), "namespace \"default\"".to_owned()),
            ("metrics", format!("http://{metrics}/metrics"), "and /health/ready".to_owned()),
            ("schemas", format!("http://{face}/subjects"), face_remark.to_owned()),
        ];
        let where_it_is: Vec<_> = where_it_is.into_iter().chain(log).chain([data]).collect();
        let width = where_it_is.iter().map(|(_, place, _)| place.chars().count()).max().unwrap_or(0);
        let mut text = format!("\n  {} {}\n\n", paint("1", "Everlog"), env!("CARGO_PKG_VERSION"));
        for (name, place, remark) in &where_it_is {
            let gap = " ".repeat(width - place.chars().count());
            let (name, place, remark) =
                (paint("2", &format!("{name:<8}")), paint("36", place), paint("2", remark));
            writeln!(text, "  {name} {place}{gap}   {remark}").expect("into memory");
        }
        text.push_str("\n  Try next\n");
        let tries = [
            ("worker", "python greeting.py, from the quick start in README.md"),
            ("start", &start),
            ("events", &events),
        ];
        for (name, line) in tries {
            writeln!(text, "  {} {line}", paint("2", &format!("{name:<8}"))).expect("into memory");
        }
        writeln!(text, "\n  {}\n", paint("2", "Ctrl-C stops it.")).expect("into memory");
        text
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn banner(data_dir: &Path) -> Banner<'_> {
        Banner {
            addresses: Addresses {
                calls: SocketAddr::from(([127, 0, 0, 1], 7233)),
                metrics: SocketAddr::from(([127, 0, 0, 1], 9233)),
                face: SocketAddr::from(([127, 0, 0, 1], 7234)),
            },
            kafka: None,
            data_dir,
            ephemeral: false,
            synced: true,
            partitions: 8,
        }
    }

    #[test]
    fn the_banner_says_where_everything_is_and_what_to_try_next() {
        let text = banner(Path::new("./everlog-data")).render(false);
        // A margin, because an expected text may not be indented as a whole.
        let lines: Vec<String> = text.lines().map(|line| format!("|{line}")).collect();
        expect![[r#"
            |
            |  Everlog 0.1.0
            |
            |  gRPC     127.0.0.1:7233                   namespace "default"
            |  metrics  http://127.0.0.1:9233/metrics    and /health/ready
            |  schemas  http://127.0.0.1:7234/subjects   and POST /commands
            |  data     ./everlog-data                   stays, 8 partitions, every write synced
            |
            |  Try next
            |  worker   python greeting.py, from the quick start in README.md
            |  start    temporal workflow start --address 127.0.0.1:7233 --task-queue greetings --type Greeting --input '"world"'
            |  events   everlog events tail --from-beginning --http-address 127.0.0.1:7234
            |
            |  Ctrl-C stops it.
            |"#]]
        .assert_eq(&lines.join("\n"));
    }

    #[test]
    fn on_kafka_the_banner_shows_the_brokers_and_the_data_directory() {
        let banner =
            Banner { kafka: Some(("localhost:9092", "everlog.")), partitions: 16, ..banner(Path::new("x")) };
        let text = banner.render(false);
        assert!(text.contains("Kafka    localhost:9092"), "{text}");
        assert!(text.contains("topics everlog.*, 16 partitions"), "{text}");
        assert!(text.contains("data     x ") && text.contains("stays, a copy of what is on Kafka"), "{text}");
        assert!(text.contains("events tail --from-beginning --kafka-bootstrap localhost:9092"), "{text}");
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let banner = banner(Path::new("./everlog-data"));
        let mut plain = String::new();
        for part in banner.render(true).split('\x1b') {
            plain.push_str(
                part.strip_prefix('[').and_then(|rest| rest.split_once('m')).map_or(part, |(_, text)| text),
            );
        }
        assert_eq!(plain, banner.render(false));
    }
}
