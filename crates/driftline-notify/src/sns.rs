//! A topic of Amazon SNS.

use aws_wire::{Call, Client, Kind, Options};

use crate::channel::{Failure, Sent, SetupError};
use crate::message::Message;
use crate::words::words;

/// What SNS takes as a message, with room for its attributes.
const LARGEST: usize = 200 * 1024;
/// What it takes as a subject.
const SUBJECT: usize = 99;

/// A topic, and who publishes to it. It is asked for credentials when something is sent, as they may change.
pub struct Topic {
    arn: String,
    options: Options,
}

impl std::fmt::Debug for Topic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.arn)
    }
}

impl Topic {
    pub fn new(arn: &str, profile: Option<String>, user_agent: &str) -> Result<Self, SetupError> {
        let parts: Vec<&str> = arn.split(':').collect();
        let ["arn", _, "sns", region, _, name] = parts[..] else {
            return Err(SetupError::new(format!("`{arn}` is not the ARN of a topic"))
                .hint("it looks like arn:aws:sns:us-east-1:123456789012:name"));
        };
        if region.is_empty() || name.is_empty() {
            return Err(SetupError::new(format!("`{arn}` has no region or no name")));
        }
        let region = Some(region.to_owned());
        let options = Options { profile, region, user_agent: user_agent.to_owned(), ..Options::default() };
        Ok(Self { arn: arn.to_owned(), options })
    }

    /// The JSON of a webhook, with a subject for those who subscribe by mail and attributes to filter by.
    pub fn send(&self, message: &Message) -> Result<Sent, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::later(format!("the network cannot be started: {error}")))?;
        runtime.block_on(async {
            let client = Client::load(&self.options).await.map_err(|error| failure(&error))?;
            let form = self.form(message);
            client.call(&Call::query("sns", "2010-03-31", "Publish", form)).await.map_err(|error| failure(&error))?;
            Ok(Sent::default())
        })
    }

    fn form(&self, message: &Message) -> Vec<(String, String)> {
        let body = message.json().to_string();
        let words = words(&message.event);
        // A subject is ASCII, begins with a letter or digit, and has no line ends.
        let subject: String =
            words.title.chars().map(|char| if char.is_ascii_graphic() || char == ' ' { char } else { '?' }).collect();
        let subject = subject.trim_start_matches(|char: char| !char.is_ascii_alphanumeric());
        let subject: String = subject.chars().take(SUBJECT).collect();
        let pair = |name: &str, value: String| (name.to_owned(), value);
        let mut form = vec![
            pair("TopicArn", self.arn.clone()),
            pair("Message", if body.len() <= LARGEST { body } else { words.text() }),
            pair("Subject", subject),
        ];
        let attributes = [("event", message.event.about.word().to_owned()), ("deliveryId", message.id.clone())];
        for (at, (name, value)) in attributes.into_iter().enumerate() {
            let entry = format!("MessageAttributes.entry.{}", at + 1);
            form.push((format!("{entry}.Name"), name.to_owned()));
            form.push((format!("{entry}.Value.DataType"), "String".to_owned()));
            form.push((format!("{entry}.Value.StringValue"), value));
        }
        if self.arn.rsplit_once('.').is_some_and(|(_, ending)| ending == "fifo") {
            // SNS itself forgets the second of the same, and keeps what is said of one thing in order.
            form.push(pair("MessageDeduplicationId", message.id.clone()));
            form.push(pair("MessageGroupId", message.thread.clone().unwrap_or_else(|| "digest".into())));
        }
        form
    }
}

fn failure(error: &aws_wire::Error) -> Failure {
    let why = error.to_string();
    match error.kind {
        Kind::Invalid => Failure::Refused { why },
        _ => Failure::Later { why, after: error.retry_after },
    }
}
