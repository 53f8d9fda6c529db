//! Who may depend on whom: the walls between the crates, read from what cargo resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::tree::{files, none, root};

/// The arrows between our crates. A crate may import those on its line, and no other of ours.
const ARROWS: &[(&str, &[&str])] = &[
    ("everlog-auth", &[]),
    ("everlog-traces", &[]),
    ("everlog-engine", &["everlog-schedules"]),
    ("everlog-schedules", &[]),
    ("everlog-log", &[]),
    ("everlog-log-kafka", &["everlog-log"]),
    ("everlog-store", &["everlog-log"]),
    ("everlog-rocks", &["everlog-log", "everlog-store"]),
    ("everlog-listen", &["everlog-log"]),
    ("everlog-temporal-api", &["everlog-engine"]),
    ("everlog-wire", &["everlog-engine"]),
    ("everlog-avro", &["everlog-engine", "everlog-schedules"]),
    ("everlog-registry", &["everlog-avro", "everlog-log"]),
    ("everlog-visibility", &["everlog-engine", "everlog-store"]),
    (
        "everlog-partition",
        &[
            "everlog-avro",
            "everlog-engine",
            "everlog-log",
            "everlog-schedules",
            "everlog-store",
            "everlog-visibility",
            "everlog-wire",
        ],
    ),
    (
        "everlog-ingress",
        &["everlog-avro", "everlog-engine", "everlog-log", "everlog-partition", "everlog-wire"],
    ),
    (
        "everlog-temporal",
        &[
            "everlog-auth",
            "everlog-engine",
            "everlog-listen",
            "everlog-partition",
            "everlog-schedules",
            "everlog-temporal-api",
            "everlog-traces",
            "everlog-visibility",
        ],
    ),
    (
        "everlog-config",
        &[
            "everlog-auth",
            "everlog-avro",
            "everlog-engine",
            "everlog-ingress",
            "everlog-listen",
            "everlog-log",
            "everlog-log-kafka",
            "everlog-partition",
            "everlog-registry",
            "everlog-rocks",
            "everlog-temporal",
        ],
    ),
    (
        "everlog-cluster",
        &[
            "everlog-engine",
            "everlog-listen",
            "everlog-log",
            "everlog-log-kafka",
            "everlog-partition",
            "everlog-temporal",
        ],
    ),
    (
        "everlog-cli",
        &[
            "everlog-auth",
            "everlog-avro",
            "everlog-cluster",
            "everlog-config",
            "everlog-engine",
            "everlog-log",
            "everlog-log-kafka",
            "everlog-partition",
            "everlog-registry",
            "everlog-rocks",
            "everlog-store",
        ],
    ),
    (
        "everlog",
        &[
            "everlog-auth",
            "everlog-avro",
            "everlog-cli",
            "everlog-cluster",
            "everlog-config",
            "everlog-engine",
            "everlog-ingress",
            "everlog-listen",
            "everlog-log",
            "everlog-log-kafka",
            "everlog-partition",
            "everlog-registry",
            "everlog-rocks",
            "everlog-store",
            "everlog-temporal",
            "everlog-traces",
            "everlog-wire",
        ],
    ),
];

/// Packages that are never shipped: they may import anything, and nothing that is shipped may import them.
const WORKSHOPS: &[&str] = &["everlog-benches", "everlog-patience", "everlog-tests"];

/// What the tests of any crate may import.
const FOR_TESTS: &[&str] = &["everlog-patience", "everlog-rocks"];

/// What the tests of one crate may import besides: those of the engine read each state back from the rows that wire
/// makes of it, as the partition does; those of wire make rows of schedules.
const FOR_TESTS_OF: &[(&str, &[&str])] =
    &[("everlog-engine", &["everlog-wire"]), ("everlog-wire", &["everlog-schedules"])];

/// Crates from outside that have a home: nobody else may import them. A prefix stands for a family.
const HOMES: &[(&str, &[&str])] = &[
    ("rdkafka", &["everlog-log-kafka", "everlog-benches", "everlog-tests"]),
    ("rocksdb", &["everlog-rocks"]),
    ("librocksdb-sys", &[]),
    ("tonic", &["everlog-temporal", "everlog-temporal-api", "everlog-benches", "everlog-tests"]),
    ("temporalio", &["everlog-temporal-api"]),
    ("opentelemetry", &["everlog-traces", "everlog-tests"]),
    // The partition takes its channels only: see purity.rs.
    (
        "tokio",
        &[
            "everlog",
            "everlog-auth",
            "everlog-cli",
            "everlog-cluster",
            "everlog-ingress",
            "everlog-listen",
            "everlog-partition",
            "everlog-registry",
            "everlog-temporal",
            "everlog-traces",
            "everlog-benches",
            "everlog-patience",
            "everlog-tests",
        ],
    ),
    ("clap", &["everlog", "everlog-cli", "everlog-benches", "everlog-tests"]),
    (
        "anyhow",
        &["everlog", "everlog-cli", "everlog-cluster", "everlog-config", "everlog-benches", "everlog-tests"],
    ),
];

/// All that the engine is built from. None of them has a clock, randomness, IO or threads at run time; those of the
/// second line run in the compiler only.
const ENGINE_TREE: &[&str] = &[
    "everlog-schedules",
    "bytes",
    "chrono",
    "chrono-tz",
    "num-traits",
    "phf",
    "phf_shared",
    "prost",
    "serde",
    "serde_core",
    "sha1_smol",
    "siphasher",
    "uuid",
    "anyhow",
    "autocfg",
    "either",
    "itertools",
    "proc-macro2",
    "prost-derive",
    "quote",
    "serde_derive",
    "syn",
    "unicode-ident",
];

#[test]
fn the_arrows_between_our_crates_point_one_way() {
    let graph = Graph::read();
    let mut problems = Vec::new();
    for name in graph.ours.iter().filter(|name| !WORKSHOPS.contains(&name.as_str())) {
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| from == name) else {
            problems
                .push(format!("{name} is not on the map: give it a line in ARROWS and in ARCHITECTURE.md"));
            continue;
        };
        let of_its_tests =
            FOR_TESTS_OF.iter().find(|(from, _)| from == name).map_or(&[][..], |(_, imports)| imports);
        let is_for_tests = |import: &str| {
            (FOR_TESTS.contains(&import) || of_its_tests.contains(&import))
                && !graph.shipped_imports[name].contains(import)
        };
        let imported = graph.imports[name].iter().filter(|i| graph.ours.contains(*i) && !is_for_tests(i));
        let wrong = imported.filter(|i| !allowed.contains(&i.as_str()));
        problems.extend(wrong.map(|i| format!("{name} imports {i}")));
    }
    none(&problems, "arrows point from what changes often to what changes seldom:");
}

#[test]
fn each_outside_world_has_one_home() {
    let graph = Graph::read();
    let mut problems = Vec::new();
    for (name, imported) in graph.imports.iter().filter(|(name, _)| graph.ours.contains(*name)) {
        for (guest, homes) in HOMES.iter().filter(|(_, homes)| !homes.contains(&name.as_str())) {
            let members = imported.iter().filter(|i| is_of_family(i, guest));
            problems.extend(members.map(|i| format!("{name} imports {i}, which lives in {homes:?} only")));
        }
    }
    none(&problems, "one crate knows RocksDB, one knows gRPC, one knows Kafka:");
}

#[test]
fn the_engine_is_built_from_nothing_impure() {
    let graph = Graph::read();
    let mut tree = BTreeSet::new();
    let mut open = vec!["everlog-engine".to_owned()];
    while let Some(name) = open.pop() {
        let new = graph.shipped_imports[&name].iter().filter(|import| tree.insert((*import).clone()));
        open.extend(new.cloned());
    }
    let unknown = tree.iter().filter(|name| !ENGINE_TREE.contains(&name.as_str()));
    let problems: Vec<String> = unknown.cloned().collect();
    none(&problems, "the engine is built from crates that nobody has looked at for clocks, chance and IO:");
    let unused = ENGINE_TREE.iter().filter(|name| !tree.contains(**name)).map(|name| (*name).to_owned());
    none(&unused.collect::<Vec<_>>(), "the engine needs these no longer, remove them from ENGINE_TREE:");
}

#[test]
fn every_crate_obeys_the_lints_of_the_workspace() {
    let bare = files().into_iter().filter(|f| f.path.ends_with("/Cargo.toml"));
    let problems: Vec<String> =
        bare.filter(|f| !f.text.contains("[lints]\nworkspace = true")).map(|f| f.path).collect();
    none(&problems, "unsafe code is forbidden by the workspace's lints; crates without them:");
}

/// `tonic` and `tonic-health` are of the family `tonic`.
fn is_of_family(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Names of packages and of what each imports.
struct Graph {
    ours: BTreeSet<String>,
    /// For normal use, for its build and for its tests.
    imports: BTreeMap<String, BTreeSet<String>>,
    /// Without what only its tests import.
    shipped_imports: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn read() -> Self {
        let metadata = metadata();
        let names: BTreeMap<&str, &str> =
            list(&metadata["packages"]).map(|p| (text(&p["id"]), text(&p["name"]))).collect();
        let name_of = |id: &Value| names[text(id)].to_owned();
        let mut graph = Self {
            ours: list(&metadata["workspace_members"]).map(name_of).collect(),
            imports: BTreeMap::new(),
            shipped_imports: BTreeMap::new(),
        };
        for node in list(&metadata["resolve"]["nodes"]) {
            let imports = graph.imports.entry(name_of(&node["id"])).or_default();
            let shipped = graph.shipped_imports.entry(name_of(&node["id"])).or_default();
            for import in list(&node["deps"]) {
                imports.insert(name_of(&import["pkg"]));
                if list(&import["dep_kinds"]).any(|kind| kind["kind"] != "dev") {
                    shipped.insert(name_of(&import["pkg"]));
                }
            }
        }
        graph
    }
}

/// What cargo resolved, for the platform that this test runs on.
fn metadata() -> Value {
    let run = |program: &str, arguments: &[&str]| {
        let output =
            Command::new(program).args(arguments).current_dir(root()).output().expect("it can be started");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {complaint}");
        String::from_utf8(output.stdout).expect("it writes UTF-8")
    };
    let cargo = env!("CARGO");
    let version = run(cargo, &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host");
    let arguments = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host];
    serde_json::from_str(&run(cargo, &arguments)).expect("cargo writes JSON")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list, by cargo's documentation").iter()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string, by cargo's documentation")
}
