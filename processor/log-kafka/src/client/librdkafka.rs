//! Calls of librdkafka that its Rust bindings lack: topic ids, headers with any name, the offset of an error, credentials
//! for clients that live.
//!
//! The only unsafe code of the crate.
#![allow(unsafe_code, reason = "the bindings have no safe call for any of these")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ops::Deref;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use everlog_log::Error;
use parking_lot::Mutex;
use rdkafka::admin::AdminClient;
use rdkafka::bindings as native;
use rdkafka::client::{Client, ClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::BorrowedMessage;
use rdkafka::producer::{BaseProducer, Producer, ProducerContext};
use rdkafka::types::RDKafkaRespErr;

use crate::client::properties_file::SaslCredentials;
use crate::errors::{io_text, refused};
use crate::permissions::{AclOperation, AclResource, KafkaUser};

const NO_ERROR: RDKafkaRespErr = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR;

/// The id that the cluster gave a topic when it was made; none where there is no such topic.
///
/// # Errors
/// `Io`: no broker answers in time; `Denied`: it does not let us look; `Refused`: the brokers give topics no ids.
pub(crate) fn topic_id<T: HasNativeClient>(
    client: &Live<T>,
    topic: &str,
    within: Duration,
) -> Result<Option<[u8; 16]>, Error> {
    let what = format!("the id of {topic}");
    let described = describe(client, &[topic], within, &what)?;
    let (code, id) =
        described.first().map_or((RDKafkaErrorCode::UnknownTopic, [0; 16]), |it| (it.code, it.id));
    match code {
        RDKafkaErrorCode::NoError if id == [0; 16] => {
            Err(refused("the brokers give topics no ids: Apache Kafka 3.9 or newer is needed"))
        }
        RDKafkaErrorCode::NoError => Ok(Some(id)),
        RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic => Ok(None),
        other => {
            let denial = client.principal().denial(other, &[(AclOperation::Read, AclResource::Topic(topic))]);
            Err(denial.map_or_else(|| io_text(format!("{what}: {other}")), |denial| denial.into_error()))
        }
    }
}

/// A topic as the brokers describe it to this client.
pub(crate) struct DescribedTopic {
    pub(crate) name: String,
    /// Whether there is one, and it may be described.
    pub(crate) code: RDKafkaErrorCode,
    pub(crate) id: [u8; 16],
    /// What this client may do with it; none where the brokers do not say.
    pub(crate) permitted: Option<Vec<AclOperation>>,
}

/// Describes topics, all by one request.
///
/// # Errors
/// `Io`: no broker answers in time.
pub(crate) fn describe<T: HasNativeClient>(
    client: &Live<T>,
    topics: &[&str],
    within: Duration,
    what: &str,
) -> Result<Vec<DescribedTopic>, Error> {
    let names: Result<Vec<_>, _> = topics.iter().map(|topic| CString::new(*topic)).collect();
    let names = names.map_err(|_| refused("a topic's name holds a zero byte"))?;
    let within_ms = i32::try_from(within.as_millis()).unwrap_or(i32::MAX);
    let asked = DescribeTopicsRequest::new(client.native_client(), &names, within_ms);
    // The client ends its question by itself; the rest is for one that hangs.
    // SAFETY: both pointers are live, `asked` owns them.
    let event = unsafe { native::rd_kafka_queue_poll(asked.queue, within_ms.saturating_add(1_000)) };
    if event.is_null() {
        return Err(io_text(format!("{what}: no answer")));
    }
    let event = Event(event);
    // SAFETY: the event is live until `event` is dropped, and all that is read here belongs to it.
    unsafe { event.topics() }.map_err(|code| io_text(format!("{what}: {}", RDKafkaErrorCode::from(code))))
}

/// What a client that nobody polls has last told of its connections, such as why a login failed.
pub(crate) fn connection_failure<T: HasNativeClient>(client: &Live<T>) -> Option<String> {
    let mut told = None;
    // SAFETY: the client outlives its queue, which is destroyed once. Each event is live until it is dropped, and its text
    // belongs to it.
    unsafe {
        let queue = native::rd_kafka_queue_get_main(client.native_client());
        loop {
            let event = native::rd_kafka_queue_poll(queue, 0);
            if event.is_null() {
                break;
            }
            let event = Event(event);
            let is_summary = RDKafkaErrorCode::from(native::rd_kafka_event_error(event.0))
                == RDKafkaErrorCode::AllBrokersDown;
            if native::rd_kafka_event_type(event.0) == native::RD_KAFKA_EVENT_ERROR && !is_summary {
                told = Some(text(native::rd_kafka_event_error_string(event.0)));
            }
        }
        native::rd_kafka_queue_destroy(queue);
    }
    told
}

/// The high watermark of a partition by the last fetch; 0 without one.
pub(crate) fn high_watermark<C: ClientContext>(client: &Client<C>, topic: &str, partition: i32) -> u64 {
    let Ok(name) = CString::new(topic) else { return 0 };
    let (mut low, mut high) = (0, 0);
    // SAFETY: the client is live, and so are the name and both numbers.
    let code = unsafe {
        let client = client.native_ptr();
        native::rd_kafka_get_watermark_offsets(client, name.as_ptr(), partition, &mut low, &mut high)
    };
    if code == NO_ERROR { u64::try_from(high).unwrap_or(0) } else { 0 }
}

/// The members of a group as one broker has them: the client id of each, and whether it was given a partition.
pub(crate) type Roll = Vec<(String, bool)>;

/// Who is in a group: a roll of each broker that knows it and answers in time. That is its coordinator, and perhaps one that was and
/// has not noticed that it is no more.
///
/// # Errors
/// `Io`: no broker that knows the group answers in time.
pub(crate) fn rolls<C: ClientContext>(
    client: &Client<C>,
    group: &str,
    within: Duration,
) -> Result<Vec<Roll>, Error> {
    let name = CString::new(group).map_err(|_| refused("a group's name holds a zero byte"))?;
    let within_ms = i32::try_from(within.as_millis()).unwrap_or(i32::MAX);
    let mut list = null();
    // SAFETY: the client is live, and so is the name.
    let code =
        unsafe { native::rd_kafka_list_groups(client.native_ptr(), name.as_ptr(), &mut list, within_ms) };
    // The bindings take the answer of some brokers for none.
    let is_told = code == NO_ERROR || code == RDKafkaRespErr::RD_KAFKA_RESP_ERR__PARTIAL;
    if !is_told || list.is_null() {
        return Err(io_text(format!("who is in {group}: {}", RDKafkaErrorCode::from(code))));
    }
    // SAFETY: the list is live until it is destroyed, and all that is read here belongs to it.
    let rolls = unsafe {
        let groups = slice((*list).groups, (*list).group_cnt).iter();
        let known = groups.filter(|found| found.err == NO_ERROR && text(found.group) == group);
        let members = known.map(|found| slice(found.members, found.member_cnt));
        members.map(|members| members.iter().map(|member| member_of(member)).collect()).collect()
    };
    // SAFETY: nobody else has it.
    unsafe { native::rd_kafka_group_list_destroy(list) };
    Ok(rolls)
}

/// # Safety
/// What the member points to must be live.
unsafe fn member_of(member: &native::rd_kafka_group_member_info) -> (String, bool) {
    // SAFETY: as the caller says.
    let (client_id, assignment) = unsafe {
        let assignment = slice(member.member_assignment.cast::<u8>(), member.member_assignment_size);
        (text(member.client_id), assignment)
    };
    (client_id, has_partitions(assignment))
}

/// Whether an assignment of the consumers' protocol has topics: a version of two bytes, their number in four, and so on.
fn has_partitions(assignment: &[u8]) -> bool {
    assignment.get(2..6).is_some_and(|topics| topics != [0; 4])
}

/// # Safety
/// The pointer is null, or to so many live values.
unsafe fn slice<'a, T>(first: *const T, count: i32) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: as the caller says.
        Ok(count) if !first.is_null() => unsafe { std::slice::from_raw_parts(first, count) },
        _none => &[],
    }
}

/// # Safety
/// The pointer is null, or to a live text.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// The headers of a message, in order. Names that are no UTF-8 are left out: the bindings would panic on them.
pub(crate) fn headers(message: &BorrowedMessage<'_>) -> Vec<(String, Option<Bytes>)> {
    let (mut headers, mut found) = (null_mut(), Vec::new());
    // SAFETY: the message is live as long as it is borrowed, and its headers belong to it.
    if unsafe { native::rd_kafka_message_headers(message.ptr(), &mut headers) } != NO_ERROR {
        return found;
    }
    for index in 0.. {
        let (mut name, mut value, mut value_bytes): (*const c_char, *const c_void, usize) =
            (null(), null(), 0);
        // SAFETY: as above; the name ends with a zero byte, and the value has as many bytes as it is said to have.
        let header = unsafe {
            let outcome =
                native::rd_kafka_header_get_all(headers, index, &mut name, &mut value, &mut value_bytes);
            if outcome != NO_ERROR {
                return found;
            }
            let value = (!value.is_null()).then(|| std::slice::from_raw_parts(value.cast(), value_bytes));
            (CStr::from_ptr(name).to_str(), value.map(Bytes::copy_from_slice))
        };
        if let (Ok(name), value) = header {
            found.push((name.to_owned(), value));
        }
    }
    found
}

/// The next event of a consumer.
#[derive(Debug)]
pub(crate) enum FetchedNext {
    Message,
    /// A batch that cannot be decompressed, by its first offset.
    NotUnpacked(u64),
    /// There was nothing more when it looked.
    End,
    /// Nothing in that time.
    Nothing,
    Trouble(RDKafkaErrorCode),
}

/// Takes what a consumer has next, and looks at no more than what it is. Nobody else may poll this consumer meanwhile.
pub(crate) fn see<C: ConsumerContext>(consumer: &BaseConsumer<C>, within: Duration) -> FetchedNext {
    let within_ms = i32::try_from(within.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the client outlives the call. The message is ours until it is destroyed, which is done once, after the
    // only looks at it.
    let (error, offset) = unsafe {
        let message = native::rd_kafka_consumer_poll(consumer.client().native_ptr(), within_ms);
        if message.is_null() {
            return FetchedNext::Nothing;
        }
        let seen = ((*message).err, (*message).offset);
        native::rd_kafka_message_destroy(message);
        seen
    };
    match (RDKafkaErrorCode::from(error), u64::try_from(offset)) {
        (RDKafkaErrorCode::NoError, _) => FetchedNext::Message,
        (RDKafkaErrorCode::PartitionEOF, _) => FetchedNext::End,
        (RDKafkaErrorCode::BadCompression, Ok(batch)) => FetchedNext::NotUnpacked(batch),
        (error, _) => FetchedNext::Trouble(error),
    }
}

/// Clients that live, so that they are handed the credentials that come while they do.
#[derive(Default)]
pub(crate) struct LiveClients(Mutex<LiveTable>);

#[derive(Default)]
struct LiveTable {
    clients: BTreeMap<u64, ClientPointer>,
    next: u64,
    /// Those that came last.
    latest: Option<[CString; 2]>,
}

struct ClientPointer(*mut native::rd_kafka_t);

// SAFETY: librdkafka's clients may be used by any thread. The client lives as long as its pointer is in the table, see `Live`.
unsafe impl Send for ClientPointer {}

impl ClientPointer {
    fn set_credentials(&self, [username, password]: &[CString; 2]) {
        // SAFETY: the client and both texts are live. librdkafka copies the texts under a lock of its own, and the error is
        // ours to destroy: it says that a text is null, which none is.
        unsafe {
            let error = native::rd_kafka_sasl_set_credentials(self.0, username.as_ptr(), password.as_ptr());
            if !error.is_null() {
                native::rd_kafka_error_destroy(error);
            }
        }
    }
}

impl LiveClients {
    /// A client that is handed credentials for as long as it lives, first those that came while it was made.
    pub(crate) fn add<T: HasNativeClient>(self: &Arc<Self>, client: T, principal: Arc<KafkaUser>) -> Live<T> {
        let mut table = self.0.lock();
        let (pointer, number) = (ClientPointer(client.native_client()), table.next);
        if let Some(latest) = &table.latest {
            pointer.set_credentials(latest);
        }
        table.clients.insert(number, pointer);
        table.next += 1;
        drop(table);
        Live { _row: Some(LiveRow { clients: Arc::clone(self), number }), client, principal }
    }

    /// Hands them to all; to how many. A client logs in with them when it connects next.
    pub(crate) fn set_credentials(&self, new: &SaslCredentials) -> usize {
        let text = |text: &str| CString::new(text);
        let (Ok(username), Ok(password)) = (text(&new.username), text(&new.password)) else { return 0 };
        let mut table = self.0.lock();
        let latest = [username, password];
        table.clients.values().for_each(|client| client.set_credentials(&latest));
        table.latest = Some(latest);
        table.clients.len()
    }
}

/// A client that lives. Its fields are dropped in this order: a client leaves the table first.
pub(crate) struct Live<T> {
    _row: Option<LiveRow>,
    client: T,
    principal: Arc<KafkaUser>,
}

struct LiveRow {
    clients: Arc<LiveClients>,
    number: u64,
}

impl<T> Live<T> {
    /// A client whose credentials stay as they are.
    pub(crate) fn of(client: T, principal: Arc<KafkaUser>) -> Self {
        Live { _row: None, client, principal }
    }

    /// As whom the brokers know it.
    pub(crate) fn principal(&self) -> &KafkaUser {
        &self.principal
    }
}

impl<T> Deref for Live<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.client
    }
}

impl Drop for LiveRow {
    fn drop(&mut self) {
        self.clients.0.lock().clients.remove(&self.number);
    }
}

/// A client of the bindings.
pub(crate) trait HasNativeClient {
    /// Live as long as the client.
    fn native_client(&self) -> *mut native::rd_kafka_t;
}

impl<C: ConsumerContext> HasNativeClient for BaseConsumer<C> {
    fn native_client(&self) -> *mut native::rd_kafka_t {
        self.client().native_ptr()
    }
}

impl<C: ProducerContext> HasNativeClient for BaseProducer<C> {
    fn native_client(&self) -> *mut native::rd_kafka_t {
        self.client().native_ptr()
    }
}

impl<C: ClientContext> HasNativeClient for AdminClient<C> {
    fn native_client(&self) -> *mut native::rd_kafka_t {
        self.inner().native_ptr()
    }
}

/// A request for the description of topics, with the queue of its answer.
struct DescribeTopicsRequest {
    queue: *mut native::rd_kafka_queue_t,
    options: *mut native::rd_kafka_AdminOptions_t,
    topics: *mut native::rd_kafka_TopicCollection_t,
}

impl DescribeTopicsRequest {
    fn new(client: *mut native::rd_kafka_t, names: &[CString], within_ms: i32) -> Self {
        let mut names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let mut complaint = [0 as c_char; 256];
        // SAFETY: the client outlives its borrower, who calls; librdkafka copies what it is given, and each pointer is
        // destroyed once, when this is dropped.
        unsafe {
            let asked = DescribeTopicsRequest {
                queue: native::rd_kafka_queue_new(client),
                options: native::rd_kafka_AdminOptions_new(
                    client,
                    native::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS,
                ),
                topics: native::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), names.len()),
            };
            // It refuses nothing but a time that is out of its range, and then takes its own.
            native::rd_kafka_AdminOptions_set_request_timeout(
                asked.options,
                within_ms,
                complaint.as_mut_ptr(),
                complaint.len(),
            );
            // It refuses nothing here: the request is one that has the option.
            native::rd_kafka_AdminOptions_set_include_authorized_operations(asked.options, 1);
            native::rd_kafka_DescribeTopics(client, asked.topics, asked.options, asked.queue);
            asked
        }
    }
}

impl Drop for DescribeTopicsRequest {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed nowhere else. An answer that comes later finds its queue gone and is dropped.
        unsafe {
            native::rd_kafka_TopicCollection_destroy(self.topics);
            native::rd_kafka_AdminOptions_destroy(self.options);
            native::rd_kafka_queue_destroy(self.queue);
        }
    }
}

struct Event(*mut native::rd_kafka_event_t);

impl Event {
    /// The topics of a description; as many as were asked for.
    ///
    /// # Safety
    /// The event must be live.
    unsafe fn topics(&self) -> Result<Vec<DescribedTopic>, RDKafkaRespErr> {
        // SAFETY: by the caller; the result and the descriptions belong to the event.
        unsafe {
            let code = native::rd_kafka_event_error(self.0);
            if code != NO_ERROR {
                return Err(code);
            }
            let (result, mut count) = (native::rd_kafka_event_DescribeTopics_result(self.0), 0);
            if result.is_null() {
                return Err(RDKafkaRespErr::RD_KAFKA_RESP_ERR__BAD_MSG);
            }
            let topics = native::rd_kafka_DescribeTopics_result_topics(result, &mut count);
            let topics = if topics.is_null() { &[][..] } else { std::slice::from_raw_parts(topics, count) };
            Ok(topics.iter().map(|topic| described(*topic)).collect())
        }
    }
}

/// # Safety
/// The description must be live.
unsafe fn described(topic: *const native::rd_kafka_TopicDescription_t) -> DescribedTopic {
    // SAFETY: by the caller; name, error, id and operations belong to the description.
    unsafe {
        let name = text(native::rd_kafka_TopicDescription_name(topic));
        let error = native::rd_kafka_TopicDescription_error(topic);
        let code = if error.is_null() { NO_ERROR } else { native::rd_kafka_error_code(error) };
        let mut id_bytes = [0; 16];
        let id = native::rd_kafka_TopicDescription_topic_id(topic);
        if code == NO_ERROR && !id.is_null() {
            let high = native::rd_kafka_Uuid_most_significant_bits(id).to_be_bytes();
            let low = native::rd_kafka_Uuid_least_significant_bits(id).to_be_bytes();
            id_bytes[..8].copy_from_slice(&high);
            id_bytes[8..].copy_from_slice(&low);
        }
        let mut count = 0;
        // As numbers: one that the bindings do not know would be no value of their type.
        let operations =
            native::rd_kafka_TopicDescription_authorized_operations(topic, &mut count).cast::<u32>();
        let operations = (!operations.is_null()).then(|| std::slice::from_raw_parts(operations, count));
        let permitted =
            operations.map(|operations| operations.iter().filter_map(|it| operation(*it)).collect());
        DescribedTopic { name, code: RDKafkaErrorCode::from(code), id: id_bytes, permitted }
    }
}

/// By librdkafka's number for it; none for those that nothing here needs.
fn operation(number: u32) -> Option<AclOperation> {
    use native::rd_kafka_AclOperation_t as Native;
    let known = [
        (Native::RD_KAFKA_ACL_OPERATION_READ, AclOperation::Read),
        (Native::RD_KAFKA_ACL_OPERATION_WRITE, AclOperation::Write),
        (Native::RD_KAFKA_ACL_OPERATION_CREATE, AclOperation::Create),
        (Native::RD_KAFKA_ACL_OPERATION_DELETE, AclOperation::Delete),
        (Native::RD_KAFKA_ACL_OPERATION_DESCRIBE, AclOperation::Describe),
        (Native::RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS, AclOperation::DescribeConfigs),
    ];
    known.iter().find(|(native, _)| *native as u32 == number).map(|(_, operation)| *operation)
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nobody else destroys it.
        unsafe { native::rd_kafka_event_destroy(self.0) }
    }
}
