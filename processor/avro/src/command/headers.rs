//! Headers of a command: options that go with its request.

use bytes::Bytes;

use crate::command::{Code, CommandLimits, CommandRefusal};

/// Bytes of a header's value; a longer one is refused.
const VALUE_BYTES_MAX: usize = 1_000;
/// How far ahead a command may be delivered, in ms: a year.
pub const DELIVER_AHEAD_MS_MAX: i64 = 366 * 86_400_000;

/// What a command's headers ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOptions {
    /// The namespace, by name; the default one where there is no header.
    pub namespace: String,
    /// Under this id the command is taken once.
    pub command_id: Option<String>,
    /// Where the outcome goes.
    pub reply_topic: Option<String>,
    /// Handed back with the outcome.
    pub correlation_id: Option<Bytes>,
    /// Not before this moment, in ms since 1970-01-01 UTC; absent: at once.
    pub deliver_at_ms: Option<i64>,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// The content type, in small letters and without parameters.
    pub content_type: Option<String>,
}

impl CommandOptions {
    pub(super) fn read(
        headers: &[(&str, Option<&[u8]>)],
        rules: &CommandLimits<'_>,
    ) -> Result<Self, CommandRefusal> {
        let mut ask = Self::default();
        for (name, value) in headers.iter().filter_map(|(name, value)| Some((*name, (*value)?))) {
            ask.take(name, value)?;
        }
        if ask.namespace.is_empty() {
            rules.namespace_default.clone_into(&mut ask.namespace);
        }
        // What is due already is delivered at once.
        ask.deliver_at_ms = ask.deliver_at_ms.filter(|moment| *moment > rules.now_ms);
        if ask.deliver_at_ms.is_some_and(|moment| moment - rules.now_ms > DELIVER_AHEAD_MS_MAX) {
            return Err(CommandRefusal::new(Code::Header, "deliver-at is more than a year ahead"));
        }
        if let Some(topic) = ask.reply_topic.take() {
            if !rules.reply_topics.contains(&topic.as_str()) {
                return Err(CommandRefusal::new(
                    Code::ReplyTopic,
                    format!("no replies are written to the topic {topic:?}"),
                ));
            }
            ask.reply_topic = Some(topic);
        }
        Ok(ask)
    }

    /// The last header of a name counts; names that are not known are the sender's own.
    fn take(&mut self, name: &str, value: &[u8]) -> Result<(), CommandRefusal> {
        match name {
            "namespace" => self.namespace = text(name, value)?,
            "command-id" => self.command_id = Some(text(name, value)?).filter(|id| !id.is_empty()),
            "reply-topic" => self.reply_topic = Some(text(name, value)?).filter(|topic| !topic.is_empty()),
            "correlation-id" => self.correlation_id = Some(Bytes::copy_from_slice(short(name, value)?)),
            "deliver-at" => {
                let given = text(name, value)?;
                let moment = given.trim().parse::<i64>().ok().filter(|moment| *moment >= 0);
                let wrong = || {
                    CommandRefusal::new(Code::Header, "deliver-at is not a number of milliseconds since 1970")
                };
                self.deliver_at_ms = Some(moment.ok_or_else(wrong)?);
            }
            // Of use to nobody but those who trace: never a reason to refuse.
            "traceparent" => self.traceparent = text(name, value).ok(),
            "content-type" => {
                let given = text(name, value)?;
                let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
                self.content_type = Some(essence).filter(|essence| !essence.is_empty());
            }
            _of_the_sender => {}
        }
        Ok(())
    }
}

fn short<'a>(name: &str, value: &'a [u8]) -> Result<&'a [u8], CommandRefusal> {
    if value.len() > VALUE_BYTES_MAX {
        let reason = format!("the header {name} has more than {VALUE_BYTES_MAX} bytes");
        return Err(CommandRefusal::new(Code::Header, reason));
    }
    Ok(value)
}

fn text(name: &str, value: &[u8]) -> Result<String, CommandRefusal> {
    let text = std::str::from_utf8(short(name, value)?);
    let text =
        text.map_err(|_error| CommandRefusal::new(Code::Header, format!("the header {name} is not UTF-8")))?;
    Ok(text.to_owned())
}
