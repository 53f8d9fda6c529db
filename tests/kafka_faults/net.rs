//! A network of our own: each place has an address and a network namespace, all are joined by one that routes, and
//! any two can be cut from each other. It needs a system that lets us; it ends with its holders, and they with us.

use std::ffi::OsStr;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

/// Where a process runs: an address, and the namespace that has it unless it is the one of the tests.
#[derive(Clone, Debug)]
pub struct Host {
    pub address: Ipv4Addr,
    pub space: Option<PathBuf>,
}

impl Host {
    /// Where the tests themselves run.
    pub fn here() -> Self {
        Self { address: Ipv4Addr::LOCALHOST, space: None }
    }

    /// A command that runs there, by the process id that it is started with.
    pub fn command(&self, program: &Path) -> Command {
        match &self.space {
            Some(space) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net={}", space.display())).arg(program);
                command
            }
            None => Command::new(program),
        }
    }
}

/// A namespace, held by a process that waits for the end of its input, which is ours.
struct Space {
    holder: Child,
}

impl Space {
    fn new() -> anyhow::Result<Self> {
        let mut command = Command::new("unshare");
        command
            .args(["--net", "sh", "-c", "echo; exec cat >&2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut holder = command.spawn().context("unshare")?;
        let said = holder.stdout.as_mut().context("it says when it is there")?.read(&mut [0])?;
        ensure!(said == 1, "no network namespace can be made here: root may");
        let space = Self { holder };
        space.run("ip", &["link", "set", "lo", "up"])?;
        Ok(space)
    }

    fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.holder.id()).into()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path().display())).arg(program).args(arguments);
        run(&mut command)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output()?;
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}: {said}", words.join(OsStr::new(" ")).display());
    Ok(())
}

/// Places and the one in the middle. The tests themselves are a place, too, which is never cut off.
pub struct Net {
    router: Space,
    places: Vec<Space>,
    /// The third number of all addresses.
    third: u8,
    cuts: Vec<(usize, usize)>,
}

impl Net {
    /// So many places, counted from 0.
    pub fn lay(places: usize) -> anyhow::Result<Self> {
        let third = u8::try_from(std::process::id() % 250)?;
        let router = Space::new()?;
        router.run("sh", &["-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"])?;
        let places = (0..places).map(|_| Space::new()).collect::<anyhow::Result<_>>()?;
        let net = Self { router, places, third, cuts: Vec::new() };
        for number in 0..net.places.len() {
            net.join(number, Some(&net.places[number]))?;
        }
        net.join(net.places.len(), None)?;
        Ok(net)
    }

    fn address(&self, number: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.third, u8::try_from(number + 1).expect("there are few"))
    }

    fn gate(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.third, 254)
    }

    /// Where a place is.
    pub fn host(&self, number: usize) -> Host {
        Host { address: self.address(number), space: Some(self.places[number].path()) }
    }

    /// A cable from a place, or from the tests, to the one in the middle.
    fn join(&self, number: usize, place: Option<&Space>) -> anyhow::Result<()> {
        let (address, gate) = (self.address(number).to_string(), self.gate().to_string());
        let (inner, outer) = (format!("ev{}p{number}", self.third), format!("ev{}r{number}", self.third));
        let ip = |words: &[&str]| match place {
            Some(place) => place.run("ip", words),
            None => run(Command::new("ip").args(words)),
        };
        let router = self.router.holder.id().to_string();
        ip(&["link", "add", &inner, "type", "veth", "peer", "name", &outer, "netns", &router])?;
        ip(&["address", "add", &address, "dev", &inner])?;
        ip(&["link", "set", &inner, "up"])?;
        ip(&["route", "add", &gate, "dev", &inner, "src", &address])?;
        self.router.run("ip", &["address", "add", &gate, "dev", &outer])?;
        self.router.run("ip", &["link", "set", &outer, "up"])?;
        self.router.run("ip", &["route", "add", &address, "dev", &outer])?;
        let all = format!("10.213.{}.0/24", self.third);
        ip(&["route", "add", &all, "via", &gate, "dev", &inner, "src", &address])
    }

    /// Nothing comes from one to the other any more, and nobody is told.
    pub fn cut(&mut self, one: usize, other: usize) -> anyhow::Result<()> {
        self.rule("add", one, other)?;
        self.rule("add", other, one)?;
        self.cuts.push((one, other));
        Ok(())
    }

    /// All can reach all.
    pub fn heal(&mut self) -> anyhow::Result<()> {
        for (one, other) in std::mem::take(&mut self.cuts) {
            self.rule("del", one, other)?;
            self.rule("del", other, one)?;
        }
        Ok(())
    }

    fn rule(&self, verb: &str, from: usize, to: usize) -> anyhow::Result<()> {
        let (from, to) = (self.address(from).to_string(), self.address(to).to_string());
        self.router.run("ip", &["rule", verb, "from", &from, "to", &to, "blackhole"])
    }
}
