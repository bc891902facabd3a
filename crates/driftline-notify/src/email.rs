//! Mail: one thread per finding, by the headers that mail programs go by.

use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{SmtpTransport, Transport};

use crate::channel::{Failure, Sent, SetupError};
use crate::http::is_this_machine;
use crate::message::Message;
use crate::words::{clean, words};

const PATIENCE: Duration = Duration::from_secs(30);

/// How the connection is made safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Plain at first, then TLS; without it nothing is sent.
    StartTls,
    /// TLS from the first byte.
    Tls,
    /// None at all.
    None,
}

/// What a channel by mail needs.
#[derive(Clone, Debug)]
pub struct MailSettings {
    pub host: String,
    pub port: u16,
    pub security: Security,
    pub from: String,
    pub to: Vec<String>,
    pub login: Option<(String, String)>,
    /// A certificate to trust, as PEM, in place of what the machine trusts.
    pub authority: Option<Vec<u8>>,
    /// Allows what is told to go over a plain connection to another machine.
    pub plain: bool,
}

/// A mail server, and who is written to.
pub struct Mail {
    transport: SmtpTransport,
    from: Mailbox,
    to: Vec<Mailbox>,
    /// What message ids end with.
    domain: String,
}

impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mail to {} addresses", self.to.len())
    }
}

impl Mail {
    pub fn new(settings: MailSettings) -> Result<Self, SetupError> {
        let address = |text: &str| {
            text.parse::<Mailbox>().map_err(|_| SetupError::new(format!("`{text}` is not a mail address")))
        };
        let from = address(&settings.from)?;
        let to = settings.to.iter().map(|text| address(text)).collect::<Result<Vec<_>, _>>()?;
        if to.is_empty() {
            return Err(SetupError::new("it has nobody in `to`"));
        }
        let tls = match settings.security {
            Security::None if !settings.plain && !is_this_machine(&settings.host) => {
                return Err(SetupError::new("without TLS anyone on the way could read what is told")
                    .hint("use `tls = \"starttls\"`, or say `plain_smtp = true` if the way is yours"));
            }
            Security::None if settings.login.is_some() && !is_this_machine(&settings.host) => {
                return Err(SetupError::new("without TLS anyone on the way could read the password"));
            }
            Security::None => Tls::None,
            Security::StartTls => Tls::Required(parameters(&settings)?),
            Security::Tls => Tls::Wrapper(parameters(&settings)?),
        };
        let domain = from.email.domain().to_owned();
        let mut transport = SmtpTransport::builder_dangerous(&settings.host)
            .port(settings.port)
            .tls(tls)
            .timeout(Some(PATIENCE))
            .hello_name(ClientId::Domain(domain.clone()));
        if let Some((user, password)) = settings.login {
            transport = transport.credentials(Credentials::new(user, password));
        }
        Ok(Self { transport: transport.build(), from, to, domain })
    }

    /// The first message about something is what all later ones answer; its id is derived from what it is about.
    pub fn send(&self, message: &Message, thread: Option<&str>) -> Result<Sent, Failure> {
        let words = words(&message.event);
        let own = format!("<{}@{}>", message.id, self.domain);
        let mut mail = lettre::Message::builder()
            .from(self.from.clone())
            .subject(&words.title)
            .message_id(Some(own.clone()))
            .header(ContentType::TEXT_PLAIN);
        for to in &self.to {
            mail = mail.to(to.clone());
        }
        if let Some(first) = thread {
            mail = mail.in_reply_to(first.to_owned()).references(first.to_owned());
        }
        // Without these, an answer of somebody's holiday would come back to the sender.
        let mut text = words.lines.join("\n");
        text.push('\n');
        let mut mail = mail.body(text).map_err(|error| Failure::Refused { why: error.to_string() })?;
        mail.headers_mut().set(AutoSubmitted);
        match self.transport.send(&mail) {
            Ok(_) => Ok(Sent { thread: Some(thread.map_or(own, ToOwned::to_owned)) }),
            Err(error) => {
                let why = clean(&with_causes(&error), 200);
                match error.status().map(|code| (code.to_string(), error.is_permanent())) {
                    // What is wrong with the message, not with the server, the login or an address.
                    Some((code, true)) if ["552", "554"].contains(&code.as_str()) => Err(Failure::Refused { why }),
                    _ => Err(Failure::later(why)),
                }
            }
        }
    }
}

fn parameters(settings: &MailSettings) -> Result<TlsParameters, SetupError> {
    let failed = |error: lettre::transport::smtp::Error| SetupError::new(format!("TLS cannot be set up: {error}"));
    let mut builder = TlsParameters::builder(settings.host.clone());
    if let Some(pem) = &settings.authority {
        let certificate = Certificate::from_pem(pem).map_err(failed)?;
        builder = builder.certificate_store(CertificateStore::None).add_root_certificate(certificate);
    }
    builder.build_rustls().map_err(failed)
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text += &format!(": {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// RFC 3834: no person wrote this.
#[derive(Clone, Copy, Debug)]
struct AutoSubmitted;

impl lettre::message::header::Header for AutoSubmitted {
    fn name() -> lettre::message::header::HeaderName {
        lettre::message::header::HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> lettre::message::header::HeaderValue {
        lettre::message::header::HeaderValue::new(Self::name(), "auto-generated".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(host: &str, security: Security) -> MailSettings {
        MailSettings {
            host: host.into(),
            port: 25,
            security,
            from: "Driftline <drift@example.com>".into(),
            to: vec!["ops@example.com".into()],
            login: None,
            authority: None,
            plain: false,
        }
    }

    #[test]
    fn what_cannot_be_safe_or_cannot_be_sent_is_refused_beforehand() {
        assert!(Mail::new(settings("127.0.0.1", Security::None)).is_ok());
        assert!(Mail::new(settings("mail.example.com", Security::None)).is_err());
        assert!(Mail::new(MailSettings { plain: true, ..settings("mail.example.com", Security::None) }).is_ok());
        let login = Some(("user".to_owned(), "password".to_owned()));
        let plain = MailSettings { plain: true, login, ..settings("mail.example.com", Security::None) };
        assert!(Mail::new(plain).is_err());
        assert!(Mail::new(MailSettings { to: Vec::new(), ..settings("127.0.0.1", Security::None) }).is_err());
        let nobody = MailSettings { to: vec!["nobody".into()], ..settings("127.0.0.1", Security::None) };
        assert!(Mail::new(nobody).is_err());
    }
}
