//! Where messages go, and how a delivery ends.

use std::time::Duration;

use jiff::Timestamp;

use crate::email::Mail;
use crate::http;
use crate::message::Message;
use crate::slack;

/// One place to tell, ready to be used: every secret it needs has been read.
#[derive(Debug)]
pub struct Channel {
    pub name: String,
    pub endpoint: Endpoint,
}

pub enum Endpoint {
    /// A Slack-compatible incoming webhook: no threads, no answer worth keeping.
    SlackWebhook {
        url: http::Url,
    },
    /// Slack's own API, or one like it: messages about one finding are one thread.
    Slack {
        api: http::Url,
        token: String,
        room: String,
    },
    /// Any program that takes JSON.
    Webhook {
        url: http::Url,
        secret: Option<Vec<u8>>,
    },
    Email(Box<Mail>),
    #[cfg(feature = "sns")]
    Sns(Box<crate::sns::Topic>),
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Addresses may be secrets themselves.
        f.write_str(match self {
            Self::SlackWebhook { .. } => "slack webhook",
            Self::Slack { .. } => "slack",
            Self::Webhook { .. } => "webhook",
            Self::Email(_) => "email",
            #[cfg(feature = "sns")]
            Self::Sns(_) => "sns",
        })
    }
}

/// What cannot work is known before anything is sent.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SetupError {
    pub message: String,
    pub hint: Option<String>,
}

impl SetupError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A delivery that went well, with what the other end calls the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub thread: Option<String>,
}

/// One that did not. Its text names no secret and repeats nothing that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Worth another try, not before this long if the other end said so.
    Later { why: String, after: Option<Duration> },
    /// The message itself is refused, and will be the next time, too.
    Refused { why: String },
}

impl Failure {
    pub fn later(why: impl Into<String>) -> Self {
        Self::Later { why: why.into(), after: None }
    }

    pub fn why(&self) -> &str {
        match self {
            Self::Later { why, .. } | Self::Refused { why } => why,
        }
    }
}

impl Channel {
    /// Whether messages about one thing can be one thread; where they cannot, one message tells of a whole round.
    pub fn has_threads(&self) -> bool {
        !matches!(self.endpoint, Endpoint::SlackWebhook { .. })
    }

    /// Sends one message. `thread` is what the other end called the thread that it belongs to.
    pub fn send(&self, message: &Message, thread: Option<&str>, now: Timestamp) -> Result<Sent, Failure> {
        match &self.endpoint {
            Endpoint::SlackWebhook { url } => slack::to_webhook(url, message),
            Endpoint::Slack { api, token, room } => slack::to_api(api, token, room, message, thread),
            Endpoint::Webhook { url, secret } => http::to_webhook(url, secret.as_deref(), message, now),
            Endpoint::Email(mail) => mail.send(message, thread),
            #[cfg(feature = "sns")]
            Endpoint::Sns(topic) => topic.send(message),
        }
    }
}
