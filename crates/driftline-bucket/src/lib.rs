//! Opens object storage for a store.
//!
//! The store knows four operations and no cloud; this crate knows clouds and no store. Requests run on a runtime of
//! their own, so that whoever asks may or may not be inside of one.

mod address;
mod credentials;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use driftline_store::Bucket;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use sha2::{Digest, Sha256};
use tokio::runtime::{Handle, Runtime};

pub use address::{Address, AddressError, Cloud};

use crate::credentials::FromChain;

/// Why a bucket could not be opened. Nothing has been asked of it yet.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("cannot prepare for requests to `{url}`")]
    Runtime {
        url: String,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot find out how to reach `{url}`")]
    Aws {
        url: String,
        #[source]
        source: Box<aws_wire::Error>,
    },
    #[error("cannot use `{url}`")]
    Refused {
        url: String,
        #[source]
        source: object_store::Error,
    },
}

/// One attempt of one request; a file of 32 MiB must come through a slow line.
const ATTEMPT: Duration = Duration::from_mins(1);
const CONNECT: Duration = Duration::from_secs(5);

/// Makes a place for a store out of an address. Credentials are those of the cloud's own tools: profiles, SSO, roles
/// and the like for S3, the variables and files of `gcloud` and `az` for the others.
pub fn open(url: &str, caches: Option<&Path>) -> Result<Bucket, BucketError> {
    let address: Address = url.parse()?;
    let runtime = runtime().map_err(|source| BucketError::Runtime { url: url.to_owned(), source })?;
    let refused = |source| BucketError::Refused { url: url.to_owned(), source };
    let _inside = runtime.enter();
    let objects: Arc<dyn ObjectStore> = match address.cloud {
        Cloud::S3 => Arc::new(s3(&address, &runtime)?.build().map_err(refused)?),
        Cloud::Google => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(&address.bucket);
            // A server of one's own may speak plain HTTP; Google never does.
            let server = builder.get_config_value(&GoogleConfigKey::BaseUrl);
            let plain = server.is_some_and(|url| url.starts_with("http://"));
            let builder = builder.with_client_options(client(plain)).with_retry(retries());
            Arc::new(builder.build().map_err(refused)?)
        }
        Cloud::Azure => Arc::new(
            MicrosoftAzureBuilder::from_env()
                .with_container_name(&address.bucket)
                .with_retry(retries())
                .build()
                .map_err(refused)?,
        ),
    };
    let objects: Arc<dyn ObjectStore> = match address.prefix.is_empty() {
        true => objects,
        false => Arc::new(PrefixStore::new(objects, address.prefix.as_str())),
    };
    // Two stores are two folders, whatever they are called.
    let cache = caches.map(|folder| {
        let digest = Sha256::digest(address.to_string().as_bytes());
        folder.join(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>())
    });
    Ok(Bucket { url: address.to_string(), objects, runtime, cache })
}

fn s3(address: &Address, runtime: &Handle) -> Result<AmazonS3Builder, BucketError> {
    let options = aws_wire::Options::default();
    // Spawned, and not waited for in place: whoever opens a store may be inside a runtime already.
    let (sender, receiver) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        let _ = sender.send(aws_wire::Client::load(&options).await);
    });
    let lost = || {
        let message = "reading the configuration of AWS was cut off";
        aws_wire::Error::of(aws_wire::Kind::Unavailable, "", "", message)
    };
    let loaded = receiver.recv().unwrap_or_else(|_| Err(lost()));
    let chain = loaded.map_err(|source| BucketError::Aws { url: address.to_string(), source: Box::new(source) })?;
    let endpoint = chain.endpoint("s3");
    let own = endpoint != format!("https://s3.{}.amazonaws.com", chain.region());
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&address.bucket)
        .with_region(chain.region())
        .with_client_options(client(endpoint.starts_with("http://")))
        .with_retry(retries());
    // The usual address has the bucket in its name. Any other, be it FIPS, PrivateLink or a server of one's own, is
    // taken as it is, with the bucket in the path.
    if own {
        builder = builder.with_endpoint(endpoint).with_virtual_hosted_style_request(false);
    }
    Ok(builder.with_credentials(Arc::new(FromChain::new(chain))))
}

fn client(plain: bool) -> ClientOptions {
    ClientOptions::new().with_timeout(ATTEMPT).with_connect_timeout(CONNECT).with_allow_http(plain)
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(50),
        max_backoff: Duration::from_secs(5),
        ..BackoffConfig::default()
    };
    RetryConfig { backoff, max_retries: 8, retry_timeout: Duration::from_mins(2) }
}

/// One runtime for all stores of the process. It is never taken down: a store may be dropped anywhere.
fn runtime() -> Result<Handle, std::io::Error> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime.handle().clone());
    }
    // Somebody else may have chosen a provider already, and that one is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("store").enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| made).handle().clone())
}
