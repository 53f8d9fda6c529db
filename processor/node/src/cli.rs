//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand};
use everlog_cli::auth::AuthCommand;
use everlog_cli::cluster::ClusterCommand;
use everlog_cli::completions::Completions;
use everlog_cli::doctor::Doctor;
use everlog_cli::man::ManOptions;
use everlog_cli::read::Read;
use everlog_cli::schemas::SchemasCommand;
use everlog_cli::send::SendCommand;
use everlog_cli::state::StateCommand;

/// What a bug report names: the release, the commit, the versions of what is decided and written, and what it is built from.
pub static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}\ncommit {}\nlevel of decisions {}, journal version {}\n{}",
        env!("CARGO_PKG_VERSION"),
        env!("EVERLOG_COMMIT"),
        everlog_engine::level::LATEST,
        everlog_wire::LEVEL_VERSION,
        env!("EVERLOG_BUILT_FROM"),
    )
});

/// A durable workflow engine on a log, for Temporal's SDKs.
#[derive(Debug, Parser)]
#[command(name = "everlog", version, long_version = LONG_VERSION.as_str(), arg_required_else_help = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the binary.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a server for development, without any configuration.
    ///
    /// Environment variables named EVERLOG_SECTION__KEY set everything else. docs/configuration.md lists them.
    ///
    /// In a clone of the sources, `./everlog dev --kafka[=PORT]` starts a Kafka broker first, at port 9092 or at PORT.
    Dev(Dev),
    /// Run a server with the settings of a file and of the environment.
    ///
    /// Environment variables named EVERLOG_SECTION__KEY override the file. docs/configuration.md lists them.
    Serve(Settings),
    /// Print every setting as `serve` would use it.
    Config(Settings),
    /// Create the topics of a log on Kafka, or check them.
    ///
    /// Exit codes: 0: a node can use the topics. 3: a node would refuse them. 1: they could not be checked.
    #[command(subcommand)]
    Topics(TopicsCommand),
    /// Print the events of workflows, one JSON object a line.
    #[command(subcommand)]
    Events(Read),
    /// Print the outcomes of commands, one JSON object a line.
    #[command(subcommand)]
    Replies(Read),
    /// Print the commands that were refused or cannot be decoded, one JSON object a line.
    #[command(subcommand)]
    Rejections(Read),
    /// Send a command to a workflow.
    #[command(subcommand, name = "command")]
    Send(SendCommand),
    /// Register the schemas of the public topics, or check that they are registered.
    #[command(subcommand)]
    Schemas(SchemasCommand),
    /// Show the nodes that share a log on Kafka, drain a node, or move partitions.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Make API keys for clients.
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Check a log and what it depends on, and print how to repair what is wrong.
    ///
    /// Changes nothing, and interrupts no node. Exit codes: 0: no check failed. 3: a check failed. 1: nothing could be
    /// checked.
    Doctor(Doctor),
    /// Export all that a log holds into files, and import it into a new log: backup, another count of partitions, another kind
    /// of log.
    #[command(subcommand)]
    State(StateCommand),
    /// Print a script by which a shell completes this command line.
    Completions(Completions),
    /// Write the man pages of all commands into a folder.
    Man(ManOptions),
}

/// `everlog topics`
#[derive(Debug, Subcommand)]
pub enum TopicsCommand {
    /// Print what `create` would create, and what differs. Changes nothing.
    Plan(TopicsOptions),
    /// Create the missing topics. Existing topics are not changed.
    Create(TopicsOptions),
    /// Print what differs, what it means and how to repair it. Changes nothing.
    Check(TopicsOptions),
}

impl TopicsCommand {
    /// The options, which all three have.
    pub fn options(&self) -> &TopicsOptions {
        match self {
            Self::Plan(options) | Self::Create(options) | Self::Check(options) => options,
        }
    }
}

/// The options of `everlog topics`.
#[derive(Args, Debug)]
pub struct TopicsOptions {
    #[command(flatten)]
    pub settings: Settings,
    /// Use these brokers [default: kafka.bootstrap_servers].
    #[arg(long, value_name = "HOST:PORT[,...]")]
    pub kafka_bootstrap: Option<String>,
}

/// `everlog dev`
#[derive(Args, Debug, Default)]
pub struct Dev {
    /// Address for SDKs and the temporal CLI; port 0 picks a free port [default: 127.0.0.1:7233].
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub address: Option<SocketAddr>,
    /// Address of metrics and health checks; port 0 picks a free port [default: 127.0.0.1:9233].
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub metrics_address: Option<SocketAddr>,
    /// Address of the schema registry and of commands over HTTP; port 0 picks a free port [default: 127.0.0.1:7234].
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    pub http_address: Option<SocketAddr>,
    /// The data directory; created if it is missing [default: ./everlog-data].
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Use a temporary data directory, which is removed at the end.
    #[arg(long, conflicts_with = "data_dir")]
    pub ephemeral: bool,
    /// Speak TLS only, with a certificate that an authority made for this data directory has signed; the banner says how clients
    /// trust it.
    #[arg(long)]
    pub tls: bool,
    /// Keep the log on these brokers; missing topics are created with one replica.
    #[arg(long, value_name = "HOST:PORT[,...]")]
    pub kafka_bootstrap: Option<String>,
}

/// The file of settings.
#[derive(Args, Debug)]
pub struct Settings {
    /// The file of settings [default: the environment and the defaults only].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_unparsed| "expected an IP address and a port, such as 127.0.0.1:7233".into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;
    use everlog_cli::completions::{CompletingShell, script};
    use everlog_cli::man::pages;
    use expect_test::expect_file;

    use super::*;

    fn parse(words: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(words.split_whitespace())
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_version_names_the_commit_and_the_levels() {
        let version = Cli::command().render_long_version();
        let lines: Vec<&str> = version.lines().collect();
        assert_eq!(lines[0], concat!("everlog ", env!("CARGO_PKG_VERSION")));
        assert!(lines[1].strip_prefix("commit ").is_some_and(|commit| !commit.is_empty()), "{version}");
        assert!(lines[2].starts_with("level of decisions "), "{version}");
    }

    #[test]
    fn packages_have_the_completions_and_man_pages_of_this_command_line() {
        for (shell, name) in [
            (CompletingShell::Bash, "everlog.bash"),
            (CompletingShell::Zsh, "_everlog"),
            (CompletingShell::Fish, "everlog.fish"),
        ] {
            let script = String::from_utf8(script(Cli::command(), shell)).expect("UTF-8");
            expect_file![packaging().join("completions").join(name)].assert_eq(&script);
        }
        let pages = pages(Cli::command()).expect("they can be rendered");
        for (name, page) in &pages {
            let page = std::str::from_utf8(page).expect("UTF-8");
            expect_file![packaging().join("man").join(name)].assert_eq(page);
        }
        let is_made = |name: &String| pages.iter().any(|(page, _)| page == name);
        let left: Vec<String> = files(&packaging().join("man")).filter(|name| !is_made(name)).collect();
        assert!(left.is_empty(), "pages of commands that are gone, to be removed: {left:?}");
    }

    fn packaging() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
    }

    fn files(dir: &Path) -> impl Iterator<Item = String> {
        let entries = std::fs::read_dir(dir).expect("it is there");
        entries.map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned())
    }

    #[test]
    fn an_ephemeral_server_has_no_data_directory_of_its_own() {
        assert!(parse("everlog dev --ephemeral").is_ok());
        assert!(parse("everlog dev --ephemeral --data-dir here").is_err());
    }

    #[test]
    fn a_server_on_kafka_may_keep_its_rows_anywhere() {
        for rows in ["--ephemeral", "--data-dir here", ""] {
            let cli = parse(&format!("everlog dev --kafka-bootstrap localhost:9092 {rows}"));
            let Ok(Cli { command: Command::Dev(dev) }) = cli else { panic!("{rows}: {cli:?}") };
            assert_eq!(dev.kafka_bootstrap.as_deref(), Some("localhost:9092"));
        }
        for command in ["plan", "create", "check"] {
            let line =
                format!("everlog topics {command} --config everlog.toml --kafka-bootstrap localhost:9092");
            assert!(parse(&line).is_ok(), "{line}");
        }
    }

    #[test]
    fn a_bad_address_is_refused_with_a_good_one() {
        let error = parse("everlog dev --address localhost").expect_err("it has no port");
        assert!(error.to_string().contains("such as 127.0.0.1:7233"), "{error}");
    }
}
