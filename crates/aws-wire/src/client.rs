//! The client: one account, one region; cheap to clone, and all clones share connections, pace and budget.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_async::time::SharedTimeSource;
use aws_smithy_http_client::{Connector, proxy::ProxyConfig, tls};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings};
use aws_smithy_types::byte_stream::ByteStream;
use aws_types::SdkConfig;
use aws_types::region::Region;
use aws_types::service_config::ServiceConfigKey;

use crate::call::{Call, Reply, header};
use crate::endpoint::{Variant, address, is_aws, service_id, signing_region};
use crate::error::{Error, Kind, from_response, is_html, is_skew};
use crate::gate::Bounds;
use crate::identity::{CallerIdentity, Identity, Keys, Origin, Role, with_causes};
use crate::pace::{Counts, Pace};
use crate::retry::Schedule;
use crate::sign::{Signing, request};

/// A number in `0.0..1.0`, another one each time.
pub type Jitter = Arc<dyn Fn() -> f64 + Send + Sync>;

/// How to call AWS. What is not said here comes from the environment and the profile files, as with AWS's own tools.
#[derive(Clone)]
pub struct Options {
    pub profile: Option<String>,
    pub region: Option<String>,
    /// Wins over `AWS_ENDPOINT_URL` and everything like it.
    pub endpoint_url: Option<String>,
    /// Each role is assumed with the credentials of the one before.
    pub roles: Vec<Role>,
    pub schedule: Schedule,
    pub connect_timeout: Duration,
    /// For one attempt, answer included.
    pub attempt_timeout: Duration,
    /// Requests on the wire at once.
    pub bounds: Bounds,
    /// Calls that may be made in all, attempts counted.
    pub budget: Option<u64>,
    /// What this client shares with others, within which its own bounds and budget hold.
    pub pace: Option<Arc<Pace>>,
    pub user_agent: String,
    pub jitter: Jitter,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profile: None,
            region: None,
            endpoint_url: None,
            roles: Vec::new(),
            schedule: Schedule::default(),
            connect_timeout: Duration::from_secs(5),
            attempt_timeout: Duration::from_mins(1),
            bounds: Bounds::default(),
            budget: None,
            pace: None,
            user_agent: concat!("aws-wire/", env!("CARGO_PKG_VERSION")).to_owned(),
            jitter: Arc::new(fastrand::f64),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("profile", &self.profile)
            .field("region", &self.region)
            .field("endpoint_url", &self.endpoint_url)
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}

struct Shared {
    options: Options,
    config: SdkConfig,
    connector: Connector,
    time: SharedTimeSource,
    pace: Pace,
    skew: AtomicI64,
}

#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    identity: Arc<Identity>,
    region: Arc<str>,
    /// Empty until it is known; calls are paced per account.
    account: Arc<str>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("region", &self.region)
            .field("account", &self.account)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Reads environment and profile files. No call is made until it is needed, except for a region that only the
    /// machine itself knows.
    pub async fn load(options: &Options) -> Result<Client, Error> {
        let provider = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
        let http = aws_smithy_http_client::Builder::new().tls_provider(provider.clone()).build_https();
        let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
        if let Some(profile) = &options.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(region) = &options.region {
            loader = loader.region(Region::new(region.clone()));
        }
        let config = loader.load().await;
        let region = config.region().map(|region| region.as_ref().to_owned()).ok_or_else(|| {
            Error::of(
                Kind::Invalid,
                "",
                "",
                "no region is configured: name one, or set AWS_REGION or a profile's `region`",
            )
        })?;
        let chain = config
            .credentials_provider()
            .ok_or_else(|| Error::of(Kind::Credentials, "", "", "no AWS credentials are configured"))?;
        let settings = HttpConnectorSettings::builder()
            .connect_timeout(options.connect_timeout)
            .read_timeout(options.attempt_timeout)
            .build();
        let connector = Connector::builder()
            .tls_provider(provider)
            .connector_settings(settings)
            .sleep_impl(TokioSleep::new())
            .proxy_config(ProxyConfig::from_env())
            .pool_max_idle_per_host(options.bounds.overall)
            .build();
        let time = config.time_source().unwrap_or_default();
        let shared = Shared {
            pace: Pace::new(options.bounds, options.budget).within(options.pace.clone()),
            options: options.clone(),
            connector,
            time: time.clone(),
            config,
            skew: AtomicI64::new(0),
        };
        let mut client = Client {
            shared: Arc::new(shared),
            identity: Identity::new(Origin::Chain(chain), time),
            region: region.into(),
            account: "".into(),
        };
        for role in &options.roles {
            client = client.assume(role).await?;
        }
        Ok(client)
    }

    pub fn region(&self) -> &str {
        &self.region
    }

    /// The account, once it is known: from an assumed role, or from [`Client::identity`].
    pub fn account(&self) -> Option<&str> {
        (!self.account.is_empty()).then_some(&*self.account)
    }

    /// The same account in another region.
    #[must_use]
    pub fn in_region(&self, region: &str) -> Client {
        Client { region: region.into(), ..self.clone() }
    }

    /// A role's client. The role is taken on here and now, so that a refusal is known before anything is asked.
    pub async fn assume(&self, role: &Role) -> Result<Client, Error> {
        let origin = Origin::Assumed(Box::new(self.clone()), role.clone());
        let identity = Identity::new(origin, self.shared.time.clone());
        identity.credentials().await?;
        let account = role.account().unwrap_or_default().into();
        Ok(Client { identity, account, ..self.clone() })
    }

    /// Asks AWS who this is, and returns a client that knows.
    pub async fn identify(&self) -> Result<(Client, CallerIdentity), Error> {
        let reply = self.call(&Call::query("sts", "2011-06-15", "GetCallerIdentity", Vec::new())).await?;
        let xml = reply.xml()?;
        let text = |name: &str| {
            let text = xml.find(name).map(|found| found.text.clone()).filter(|text| !text.is_empty());
            text.ok_or_else(|| reply.malformed(&format!("it has no `{name}`")))
        };
        let who = CallerIdentity { account: text("Account")?, arn: text("Arn")? };
        Ok((Client { account: who.account.as_str().into(), ..self.clone() }, who))
    }

    /// The credentials that calls are signed with now, for a client of another making.
    pub async fn keys(&self) -> Result<Keys, Error> {
        let credentials = self.identity.credentials().await?;
        Ok(Keys {
            access_key_id: credentials.access_key_id().to_owned(),
            secret_access_key: credentials.secret_access_key().to_owned(),
            session_token: credentials.session_token().map(ToOwned::to_owned),
        })
    }

    pub fn counts(&self) -> Counts {
        self.shared.pace.counts()
    }

    /// Where calls to a service go.
    pub fn endpoint(&self, service: &str) -> String {
        let config = &self.shared.config;
        if let Some(url) = &self.shared.options.endpoint_url {
            return url.clone();
        }
        let key = ServiceConfigKey::builder()
            .service_id(service_id(service))
            .env("AWS_ENDPOINT_URL")
            .profile("endpoint_url")
            .build();
        let named = key.ok().and_then(|key| config.service_config().and_then(|known| known.load_config(key)));
        if let Some(url) = named.or_else(|| config.endpoint_url().map(str::to_owned)) {
            return url;
        }
        let variant = Variant {
            fips: config.use_fips().unwrap_or_default(),
            dual_stack: config.use_dual_stack().unwrap_or_default(),
        };
        address(service, &self.region, variant)
    }

    /// Makes a call: paced, signed, and tried again while that may help.
    pub async fn call(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let shared = &*self.shared;
        let base = self.endpoint(call.service);
        let region = signing_region(call.service, &self.region);
        let mut attempt = 1;
        let mut renewed = false;
        let mut corrected = false;
        loop {
            shared.pace.spend(&self.account).map_err(|budget| {
                let message = format!("the budget of {budget} calls is spent");
                Error::of(Kind::Budget, call.service, call.operation, message)
            })?;
            if is_aws(&base) {
                shared.pace.wait_for_token(&self.account, region, call.service).await;
            }
            let error = match self.attempt(call, &base, region).await {
                Ok(reply) => {
                    self.identity.trust();
                    return Ok(reply);
                }
                Err(failure) => failure,
            };
            if error.error.kind == Kind::Throttled {
                shared.pace.count_throttle(&self.account);
            }
            // Credentials that expired under way, and a clock that is wrong, are each put right once.
            if error.expired() && !renewed {
                renewed = true;
                self.identity.forget().await;
            } else if let Some(skew) = error.skew.filter(|_| !corrected) {
                corrected = true;
                shared.skew.store(skew, Ordering::Relaxed);
            } else {
                let random = (shared.options.jitter)();
                let Some(wait) = shared.options.schedule.wait(attempt, &error.error, random) else {
                    return Err(error.error);
                };
                attempt += 1;
                tokio::time::sleep(wait).await;
            }
            shared.pace.count_retry(&self.account);
        }
    }

    async fn attempt(&self, call: &Call<'_>, base: &str, region: &str) -> Result<Reply, Failure> {
        let shared = &*self.shared;
        let credentials = self.identity.credentials().await?;
        let signing = Signing {
            credentials: &credentials,
            region,
            time: &shared.time,
            skew: shared.skew.load(Ordering::Relaxed),
            user_agent: &shared.options.user_agent,
        };
        let fail = |kind, message: String| Error::of(kind, call.service, call.operation, message);
        let request = request(call, base, &signing).map_err(|error| fail(Kind::Invalid, error))?;
        let request = request.try_into().map_err(|error| fail(Kind::Invalid, format!("{error}")))?;
        let permit = shared.pace.enter(&self.account, region, call.service).await;
        let exchange = async {
            let response = shared.connector.call(request).await.map_err(|error| {
                let text = with_causes(&error);
                let kind = if error.is_timeout() { Kind::Timeout } else { Kind::Unreachable };
                let code = text.contains("dns error").then(|| "dns".into());
                Error { code, ..fail(kind, format!("no answer from {base}: {text}")) }
            })?;
            let status = response.status().as_u16();
            let lower = |(name, value): (&str, &str)| (name.to_ascii_lowercase(), value.to_owned());
            let headers: Vec<_> = response.headers().iter().map(lower).collect();
            let body = ByteStream::new(response.into_body()).collect().await.map_err(|error| {
                fail(Kind::Unreachable, format!("the answer from {base} broke off: {}", with_causes(&error)))
            })?;
            Ok::<_, Error>((status, headers, body.to_vec()))
        };
        let limit = shared.options.attempt_timeout;
        let answered = tokio::time::timeout(limit, exchange).await;
        drop(permit);
        let (status, headers, body) = answered
            .map_err(|_| fail(Kind::Timeout, format!("no whole answer from {base} within {} s", limit.as_secs())))??;
        if (200..300).contains(&status) && !is_html(&body) {
            let (service, operation) = (call.service.to_owned(), call.operation.to_owned());
            return Ok(Reply { status, headers, body, service, operation });
        }
        let trusted = self.identity.is_trusted();
        let now = aws_smithy_types::DateTime::from(shared.time.now()).secs();
        let mut error = from_response(call.service, call.operation, status, &headers, &body, trusted, now);
        if (200..400).contains(&status) {
            // A page of a proxy or a portal in between, or a redirect: whatever it is, it is not the service.
            error.kind = Kind::Unavailable;
        }
        let skew = error.code.as_deref().filter(|code| is_skew(code)).and_then(|_| self.skew(&headers));
        Err(Failure { error, skew })
    }

    /// The difference to the service's clock, if it is enough to spoil a signature.
    fn skew(&self, headers: &[(String, String)]) -> Option<i64> {
        let date = header(headers, "date")?;
        let theirs = aws_smithy_types::DateTime::from_str(date, aws_smithy_types::date_time::Format::HttpDate).ok()?;
        let ours = aws_smithy_types::DateTime::from(self.shared.time.now()).secs();
        let skew = theirs.secs() - ours;
        (skew.abs() > 240 && skew != self.shared.skew.load(Ordering::Relaxed)).then_some(skew)
    }
}

struct Failure {
    error: Error,
    skew: Option<i64>,
}

impl Failure {
    fn expired(&self) -> bool {
        matches!(self.error.code.as_deref(), Some("ExpiredToken" | "ExpiredTokenException"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, skew: None }
    }
}
