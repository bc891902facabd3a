//! From a configured channel to one that can be used: secrets are read here, and go nowhere else.

use driftline_notify::channel::{Channel, Endpoint, SetupError};
use driftline_notify::email::{Mail, MailSettings, Security};
use driftline_notify::http::{self, Url};

use super::plan::{Address, Notify, Secret, Target};
use crate::error::{CommandError, CommandResult};
use crate::surroundings::text_variable;

const USER_AGENT: &str = concat!("driftline/", env!("CARGO_PKG_VERSION"));
const SLACK: &str = "https://slack.com/api";

pub(crate) fn open(notify: &Notify) -> CommandResult<Channel> {
    let endpoint = endpoint(&notify.target).map_err(|error| error.about(format!("the channel `{}`", notify.name)))?;
    Ok(Channel { name: notify.name.clone(), endpoint })
}

fn endpoint(target: &Target) -> CommandResult<Endpoint> {
    let url = |text: &str, plain: bool| Url::new(text, plain, USER_AGENT).map_err(refused);
    Ok(match target {
        Target::SlackWebhook { url: secret, plain } => Endpoint::SlackWebhook { url: url(&read(secret)?, *plain)? },
        Target::Slack { token, channel, api, plain } => {
            let api = api.as_deref().unwrap_or(SLACK).trim_end_matches('/');
            Endpoint::Slack { api: url(api, *plain)?, token: read(token)?, room: channel.clone() }
        }
        Target::Webhook { url: address, secret, plain } => {
            let text = match address {
                Address::Open(text) => text.clone(),
                Address::Secret(secret) => read(secret)?,
            };
            let secret = secret.as_ref().map(|secret| http::secret(&read(secret)?).map_err(refused)).transpose()?;
            Endpoint::Webhook { url: url(&text, *plain)?, secret }
        }
        Target::Email { smtp, tls, from, to, login, authority, plain } => {
            let security = match tls.as_str() {
                "tls" => Security::Tls,
                "none" => Security::None,
                _ => Security::StartTls,
            };
            let (host, port) = host_and_port(smtp, security)?;
            let login = login.as_ref().map(|(user, password)| read(password).map(|password| (user.clone(), password)));
            let authority = authority.as_ref().map(|path| {
                std::fs::read(path)
                    .map_err(|error| CommandError::because(format!("cannot read `{}`", path.display()), &error))
            });
            let settings = MailSettings {
                host,
                port,
                security,
                from: from.clone(),
                to: to.clone(),
                login: login.transpose()?,
                authority: authority.transpose()?,
                plain: *plain,
            };
            Endpoint::Email(Box::new(Mail::new(settings).map_err(refused)?))
        }
        #[cfg(feature = "aws")]
        Target::Sns { topic, profile } => {
            let topic = driftline_notify::sns::Topic::new(topic, profile.clone(), USER_AGENT).map_err(refused)?;
            Endpoint::Sns(Box::new(topic))
        }
        #[cfg(not(feature = "aws"))]
        Target::Sns { .. } => {
            return Err(CommandError::new("this build cannot publish to SNS").hint("build with the feature `aws`"));
        }
    })
}

fn refused(error: SetupError) -> CommandError {
    let told = CommandError::new(error.message);
    match error.hint {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

/// A secret, without what editors add at the end of a file.
fn read(secret: &Secret) -> CommandResult<String> {
    let text = match secret {
        Secret::Environment(name) => text_variable(name)
            .ok_or_else(|| CommandError::new(format!("the environment variable `{name}` is not set")))?,
        Secret::File(path) => std::fs::read_to_string(path)
            .map_err(|error| CommandError::because(format!("cannot read `{}`", path.display()), &error))?,
    };
    match text.trim() {
        "" => Err(CommandError::new("its secret is empty")),
        text => Ok(text.to_owned()),
    }
}

fn host_and_port(text: &str, security: Security) -> CommandResult<(String, u16)> {
    let usual = match security {
        Security::StartTls => 587,
        Security::Tls => 465,
        Security::None => 25,
    };
    match text.rsplit_once(':') {
        None => Ok((text.to_owned(), usual)),
        Some((host, port)) => {
            let port = port.parse().map_err(|_| {
                CommandError::new(format!("`smtp = \"{text}\"` is not a host and a port"))
                    .hint("write it like mail.example.com:587")
            })?;
            Ok((host.trim_matches(['[', ']']).to_owned(), port))
        }
    }
}
