//! What `everlog dev` prints when it serves: the addresses, and what to try next.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

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

/// What `everlog dev` knows and its settings do not.
#[derive(Debug)]
pub struct DevBanner {
    /// The file of the authority that was made for development, with `--tls`.
    pub authority: Option<PathBuf>,
}

/// The content of the banner.
pub struct Banner<'a> {
    /// The addresses.
    pub addresses: Addresses,
    /// Clients speak TLS.
    pub over_tls: bool,
    /// The file of the authority that clients must trust, where it was made for development.
    pub authority: Option<&'a Path>,
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
        let Self { addresses, over_tls, authority, kafka, data_dir, ephemeral, synced, partitions } = self;
        let Addresses { calls: address, metrics, face } = addresses;
        let fate = if *ephemeral { "removed at the end" } else { "stays" };
        let sync = if *synced { "every write synced" } else { "writes not synced" };
        let scheme = if *over_tls { "https" } else { "http" };
        let trust =
            |option: &str| authority.map(|file| format!(" {option} {}", file.display())).unwrap_or_default();
        let temporal_options = match authority {
            None if *over_tls => " --tls".to_owned(),
            _ => trust("--tls-ca-path"),
        };
        let start = format!(
            "temporal workflow start --address {address}{temporal_options} --task-queue greetings --type Greeting --input \
             '\"world\"'"
        );
        let log_option = match kafka {
            Some((brokers, _)) => format!("--kafka-bootstrap {brokers}"),
            None if *over_tls => format!("--http-address https://{face}{}", trust("--ca-file")),
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
            ("schemas", format!("{scheme}://{face}/subjects"), face_remark.to_owned()),
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
        text.push_str(&self.trust(paint));
        text.push_str("\n  Try next\n");
        let worker = match over_tls {
            true => {
                "greeting.py of README.md with Client.connect(**ClientConfig.load_client_connect_config()), of \
                 temporalio.envconfig"
            }
            false => "python greeting.py, from the quick start in README.md",
        };
        let tries = [("worker", worker), ("start", &start), ("events", &events)];
        for (name, line) in tries {
            writeln!(text, "  {} {line}", paint("2", &format!("{name:<8}"))).expect("into memory");
        }
        writeln!(text, "\n  {}\n", paint("2", "Ctrl-C stops it.")).expect("into memory");
        text
    }

    /// How clients trust the authority that was made for development, if there is one.
    fn trust(&self, paint: impl Fn(&str, &str) -> String) -> String {
        let Some(authority) = self.authority.map(Path::display) else { return String::new() };
        let mut text = "\n  Clients speak TLS\n".to_owned();
        for (name, line) in [
            ("trust", authority.to_string()),
            ("SDKs", format!("export TEMPORAL_ADDRESS={} TEMPORAL_TLS=true", self.addresses.calls)),
            ("", format!("export TEMPORAL_TLS_SERVER_CA_CERT_PATH={authority}")),
            ("everlog", format!("export EVERLOG_CA_FILE={authority}")),
        ] {
            writeln!(text, "  {} {line}", paint("2", &format!("{name:<8}"))).expect("into memory");
        }
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
            over_tls: false,
            authority: None,
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
    fn with_tls_the_banner_says_what_clients_need() {
        let authority = Some(Path::new("/srv/everlog-data/tls/ca.pem"));
        let text = Banner { over_tls: true, authority, ..banner(Path::new("./everlog-data")) }.render(false);
        let lines: Vec<String> = text.lines().map(|line| format!("|{line}")).collect();
        expect![[r#"
            |
            |  Everlog 0.1.0
            |
            |  gRPC     127.0.0.1:7233                    namespace "default"
            |  metrics  http://127.0.0.1:9233/metrics     and /health/ready
            |  schemas  https://127.0.0.1:7234/subjects   and POST /commands
            |  data     ./everlog-data                    stays, 8 partitions, every write synced
            |
            |  Clients speak TLS
            |  trust    /srv/everlog-data/tls/ca.pem
            |  SDKs     export TEMPORAL_ADDRESS=127.0.0.1:7233 TEMPORAL_TLS=true
            |           export TEMPORAL_TLS_SERVER_CA_CERT_PATH=/srv/everlog-data/tls/ca.pem
            |  everlog  export EVERLOG_CA_FILE=/srv/everlog-data/tls/ca.pem
            |
            |  Try next
            |  worker   greeting.py of README.md with Client.connect(**ClientConfig.load_client_connect_config()), of temporalio.envconfig
            |  start    temporal workflow start --address 127.0.0.1:7233 --tls-ca-path /srv/everlog-data/tls/ca.pem --task-queue greetings --type Greeting --input '"world"'
            |  events   everlog events tail --from-beginning --http-address https://127.0.0.1:7234 --ca-file /srv/everlog-data/tls/ca.pem
            |
            |  Ctrl-C stops it.
            |"#]]
        .assert_eq(&lines.join("\n"));
        let own = Banner { over_tls: true, ..banner(Path::new("./everlog-data")) }.render(false);
        assert!(own.contains("--address 127.0.0.1:7233 --tls --task-queue"), "{own}");
        assert!(own.contains("--http-address https://127.0.0.1:7234\n"), "{own}");
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
