//! Generates the messages and services of the Temporal API from the descriptor set of `temporalio-protos`.
//!
//! Two trees come out of it. `tree.rs` is what the server speaks: in it every field whose type is listed in
//! `OPAQUE` has become `bytes`, which is the same on the wire. `full/tree.rs` has those types decoded, and no
//! service.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

const DESCRIPTOR_PATH: &str = "DEP_TEMPORALIO_PROTOS_DESCRIPTOR_PATH";

/// The packages whose services are served.
const SERVICES: &[&str] = &["temporal.api.workflowservice.v1", "temporal.api.operatorservice.v1"];

/// What the server carries and never looks into. A name that ends with a dot means a whole package.
const OPAQUE: &[&str] = &[
    ".temporal.api.common.v1.Callback",
    ".temporal.api.common.v1.Header",
    ".temporal.api.common.v1.Link",
    ".temporal.api.common.v1.Memo",
    ".temporal.api.common.v1.MeteringMetadata",
    ".temporal.api.common.v1.Payload",
    ".temporal.api.common.v1.Payloads",
    ".temporal.api.common.v1.Priority",
    ".temporal.api.common.v1.SearchAttributes",
    ".temporal.api.common.v1.WorkerVersionStamp",
    ".temporal.api.deployment.v1.",
    ".temporal.api.failure.v1.Failure",
    ".temporal.api.history.v1.History",
    ".temporal.api.history.v1.HistoryEvent",
    ".temporal.api.sdk.v1.EventGroupMarker",
    ".temporal.api.sdk.v1.UserMetadata",
    ".temporal.api.sdk.v1.WorkflowTaskCompletedMetadata",
    ".temporal.api.worker.v1.WorkerHeartbeat",
    ".temporal.api.workflow.v1.ResetPoints",
    ".temporal.api.workflow.v1.VersioningOverride",
];

/// Kept in the opaque tree although no request or response names them: histories are built from them, and
/// `Any` bodies hold them.
const OPAQUE_TREE_ROOTS: &[&str] = &[
    ".temporal.api.command.v1.",
    ".temporal.api.common.v1.",
    ".temporal.api.enums.v1.",
    ".temporal.api.errordetails.v1.",
    ".temporal.api.failure.v1.",
    ".temporal.api.history.v1.",
    ".temporal.api.protocol.v1.",
    ".temporal.api.query.v1.",
    ".temporal.api.sdk.v1.",
    ".temporal.api.update.v1.",
    ".google.rpc.",
];

/// Decoded in the full tree, next to everything in `OPAQUE`.
const FULL_TREE_ROOTS: &[&str] = &[
    ".temporal.api.common.v1.",
    ".temporal.api.errordetails.v1.",
    ".temporal.api.failure.v1.",
    ".temporal.api.history.v1.",
    ".google.rpc.",
];

/// The full tree uses the enums of the opaque one.
const ENUMS: (&str, &str) = (".temporal.api.enums.v1", "crate::opaque::temporal::api::enums::v1");

/// Commands are decoded straight into the engine's own type, which has the same field numbers.
const COMMAND: (&str, &str) = (".temporal.api.command.v1.Command", "::everlog_engine::command::Command");

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={DESCRIPTOR_PATH}");
    let path = env::var(DESCRIPTOR_PATH).map_err(|_| {
        format!(
            "{DESCRIPTOR_PATH} is not set: the build script of temporalio-protos =0.10.2 sets it for crates \
             that have it as a normal dependency. Another release may have stopped doing so."
        )
    })?;
    let bytes =
        fs::read(&path).map_err(|error| format!("the descriptor set {path} cannot be read: {error}"))?;
    let mut set = FileDescriptorSet::decode(bytes.as_slice())
        .map_err(|error| format!("the descriptor set {path} cannot be decoded: {error}"))?;
    for file in &mut set.file {
        file.source_code_info = None;
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let served = served(&set)?;
    fs::write(out.join("descriptor.bin"), served.encode_to_vec())?;
    fs::write(out.join("shapes.rs"), shapes(&served)?)?;
    generate_opaque(set.clone(), &out)?;
    generate_full(set, &out.join("full"))
}

/// The files that define the services and all they import, as they are.
fn served(set: &FileDescriptorSet) -> Result<FileDescriptorSet, Box<dyn Error>> {
    let by_name: BTreeMap<&str, &FileDescriptorProto> =
        set.file.iter().map(|file| (file.name(), file)).collect();
    let serves = |file: &&FileDescriptorProto| SERVICES.contains(&file.package());
    let mut open: Vec<&str> = set.file.iter().filter(serves).map(|file| file.name()).collect();
    let mut wanted = BTreeSet::new();
    while let Some(name) = open.pop() {
        if wanted.insert(name) {
            let file = by_name
                .get(name)
                .ok_or_else(|| format!("{name} is imported but not in the descriptor set"))?;
            open.extend(file.dependency.iter().map(String::as_str));
        }
    }
    Ok(FileDescriptorSet {
        file: set.file.iter().filter(|file| wanted.contains(file.name())).cloned().collect(),
    })
}

/// The shapes of all messages, by name, as an array of `Shape` for `wellformed.rs`.
fn shapes(set: &FileDescriptorSet) -> Result<String, Box<dyn Error>> {
    let mut messages = BTreeMap::new();
    for file in &set.file {
        collect_messages(&format!(".{}", file.package()), &file.message_type, &mut messages);
    }
    let index: BTreeMap<&str, usize> = messages.keys().map(String::as_str).zip(0..).collect();
    let mut text = "&[".to_owned();
    for (name, message) in &messages {
        text += &format!("Shape {{ name: {:?}, fields: &[", &name[1..]);
        let mut fields: Vec<_> = message.field.iter().collect();
        fields.sort_by_key(|field| field.number());
        for field in fields {
            let kind = match field.r#type() {
                Type::Message if field.type_name() == ".google.protobuf.Any" => "Any".to_owned(),
                Type::Message => {
                    let name = field.type_name();
                    let at = index.get(name).ok_or_else(|| format!("{name} is not in the descriptor set"))?;
                    format!("Message({at})")
                }
                Type::Group => return Err(format!("{name} has a group").into()),
                Type::String => "String".to_owned(),
                Type::Bytes => "Bytes".to_owned(),
                Type::Double | Type::Fixed64 | Type::Sfixed64 => "Fixed64".to_owned(),
                Type::Float | Type::Fixed32 | Type::Sfixed32 => "Fixed32".to_owned(),
                _varint => "Varint".to_owned(),
            };
            let (tag, many) = (field.number(), field.label() == Label::Repeated);
            text += &format!("Field {{ tag: {tag}, kind: FieldKind::{kind}, many: {many} }},");
        }
        text += "] },";
    }
    Ok(text + "]")
}

/// All messages of a file, those within messages too, by their full names with a dot before them.
fn collect_messages<'a>(
    scope: &str,
    messages: &'a [DescriptorProto],
    found: &mut BTreeMap<String, &'a DescriptorProto>,
) {
    for message in messages {
        let name = format!("{scope}.{}", message.name());
        collect_messages(&name, &message.nested_type, found);
        found.insert(name, message);
    }
}

fn generate_opaque(mut set: FileDescriptorSet, out: &Path) -> Result<(), Box<dyn Error>> {
    for file in &mut set.file {
        if !SERVICES.contains(&file.package()) {
            file.service.clear();
        }
        file.message_type.iter_mut().for_each(make_opaque);
        clear_deprecations(file);
    }
    let mut roots: Vec<String> = OPAQUE_TREE_ROOTS.iter().map(|root| root.to_string()).collect();
    for method in set.file.iter().flat_map(|file| &file.service).flat_map(|service| &service.method) {
        roots.extend([method.input_type().to_string(), method.output_type().to_string()]);
    }
    retain_reachable(&mut set, &roots)?;
    let config = config(out)?;
    tonic_prost_build::configure()
        .out_dir(out)
        .build_client(true)
        .build_server(true)
        .generate_default_stubs(true)
        .codec_path("crate::codec::Counted")
        .extern_path(COMMAND.0, COMMAND.1)
        .compile_fds_with_config(set, config)?;
    Ok(())
}

fn generate_full(mut set: FileDescriptorSet, out: &Path) -> Result<(), Box<dyn Error>> {
    for file in &mut set.file {
        file.service.clear();
        clear_deprecations(file);
    }
    let roots: Vec<String> = FULL_TREE_ROOTS.iter().chain(OPAQUE).map(|root| root.to_string()).collect();
    retain_reachable(&mut set, &roots)?;
    let mut config = config(out)?;
    config.extern_path(ENUMS.0, ENUMS.1);
    config.compile_fds(set)?;
    Ok(())
}

fn config(out: &Path) -> Result<tonic_prost_build::Config, Box<dyn Error>> {
    fs::create_dir_all(out)?;
    let mut config = tonic_prost_build::Config::new();
    // The names that an `Any` carries, as a Temporal server writes them.
    config.enable_type_names().type_name_domain(["."], "type.googleapis.com");
    // Sorted maps: the same message always has the same bytes.
    config.bytes(["."]).btree_map(["."]).include_file("tree.rs");
    // Nobody reads the files, and making them pretty takes longer than making them.
    config.format(false).out_dir(out);
    Ok(config)
}

/// Turns every field of an opaque type into `bytes` with the same number.
fn make_opaque(message: &mut DescriptorProto) {
    let is_map_entry = message.options.as_ref().is_some_and(|options| options.map_entry());
    for field in &mut message.field {
        if field.r#type() == Type::Message && matches(field.type_name(), OPAQUE) {
            field.set_type(Type::Bytes);
            field.type_name = None;
            // A message field has presence and a bytes field has not, unless it says so. Members of a oneof
            // have it anyway.
            let is_plain = field.label() == Label::Optional && field.oneof_index.is_none();
            field.proto3_optional = (is_plain && !is_map_entry).then_some(true);
        }
    }
    message.nested_type.iter_mut().for_each(make_opaque);
}

/// Old clients use deprecated fields, so the server uses them too, without warnings.
fn clear_deprecations(file: &mut FileDescriptorProto) {
    fn clear_message(message: &mut DescriptorProto) {
        if let Some(options) = &mut message.options {
            options.deprecated = None;
        }
        message
            .field
            .iter_mut()
            .filter_map(|field| field.options.as_mut())
            .for_each(|options| options.deprecated = None);
        message.nested_type.iter_mut().for_each(clear_message);
    }
    file.message_type.iter_mut().for_each(clear_message);
    let values = file.enum_type.iter_mut().flat_map(|one| &mut one.value);
    values.filter_map(|value| value.options.as_mut()).for_each(|options| options.deprecated = None);
    let methods = file.service.iter_mut().flat_map(|service| &mut service.method);
    methods.filter_map(|method| method.options.as_mut()).for_each(|options| options.deprecated = None);
}

/// Drops every type of a file's top level that no root leads to. A root that matches nothing is an error.
fn retain_reachable(set: &mut FileDescriptorSet, roots: &[String]) -> Result<(), Box<dyn Error>> {
    let mut leads_to: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &set.file {
        for message in &file.message_type {
            let mut types = Vec::new();
            collect_types(message, &mut types);
            leads_to.insert(format!(".{}.{}", file.package(), message.name()), types);
        }
        for one in &file.enum_type {
            leads_to.insert(format!(".{}.{}", file.package(), one.name()), Vec::new());
        }
    }
    let mut open: Vec<&str> = Vec::new();
    for root in roots {
        let before = open.len();
        open.extend(leads_to.keys().filter(|name| matches(name, &[root])).map(String::as_str));
        if open.len() == before {
            return Err(format!("the descriptor set has no {root}").into());
        }
    }
    let mut reached = BTreeSet::new();
    while let Some(name) = open.pop() {
        // A nested type is kept with the one around it.
        let Some((top, types)) = leads_to.iter().find(|(top, _)| is_within(name, top)) else {
            return Err(format!("{name} is used but not in the descriptor set").into());
        };
        if reached.insert(top.clone()) {
            open.extend(types.iter().map(String::as_str));
        }
    }
    for file in &mut set.file {
        let package = file.package().to_string();
        file.message_type.retain(|message| reached.contains(&format!(".{package}.{}", message.name())));
        file.enum_type.retain(|one| reached.contains(&format!(".{package}.{}", one.name())));
    }
    set.file.retain(|file| {
        !(file.message_type.is_empty() && file.enum_type.is_empty() && file.service.is_empty())
    });
    Ok(())
}

fn collect_types(message: &DescriptorProto, types: &mut Vec<String>) {
    let has_name = |field: &&FieldDescriptorProto| field.type_name.is_some();
    types.extend(message.field.iter().filter(has_name).map(|field| field.type_name().to_string()));
    message.nested_type.iter().for_each(|nested| collect_types(nested, types));
}

/// Whether a fully qualified name is one of `patterns`, or in a package of them.
fn matches<S: AsRef<str>>(name: &str, patterns: &[S]) -> bool {
    patterns.iter().map(AsRef::as_ref).any(|pattern| match pattern.ends_with('.') {
        true => name.starts_with(pattern),
        false => name == pattern,
    })
}

fn is_within(name: &str, top: &str) -> bool {
    name.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
