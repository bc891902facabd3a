//! A request ready to be sent.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_async::time::SharedTimeSource;
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_types::body::SdkBody;

use crate::call::{Call, Protocol};

/// The difference between this machine's clock and the service's, in seconds, added when signing.
pub(crate) type Skew = i64;

pub(crate) struct Signing<'a> {
    pub credentials: &'a Credentials,
    pub region: &'a str,
    pub time: &'a SharedTimeSource,
    pub skew: Skew,
    pub user_agent: &'a str,
}

pub(crate) fn request(call: &Call<'_>, base: &str, signing: &Signing<'_>) -> Result<http::Request<SdkBody>, String> {
    let (payload, kind) = call.payload();
    let uri = format!("{}{}", base.trim_end_matches('/'), call.target());
    let method = match call.protocol {
        Protocol::RestJson | Protocol::RestXml => call.method,
        _ => "POST",
    };
    let mut headers: Vec<(String, String)> = call.headers.clone();
    headers.extend(kind.map(|kind| ("content-type".to_owned(), kind)));
    if let Protocol::Json { target, .. } = call.protocol {
        headers.push(("x-amz-target".to_owned(), format!("{target}.{}", call.operation)));
    }
    let mut settings = SigningSettings::default();
    if call.service == "s3" {
        // Keys may contain `//` and `..`, and are encoded once.
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    }
    let identity: Identity = signing.credentials.clone().into();
    let now = signing.time.now();
    let shift = Duration::from_secs(signing.skew.unsigned_abs());
    let time = if signing.skew < 0 { now - shift } else { now + shift };
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(signing.region)
        .name(call.service)
        .time(time)
        .settings(settings)
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let pairs = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let signable = SignableRequest::new(method, uri.as_str(), pairs, SignableBody::Bytes(&payload))
        .map_err(|error| error.to_string())?;
    let (instructions, _) = sign(signable, &params).map_err(|error| error.to_string())?.into_parts();
    let mut builder = http::Request::builder().method(method).uri(&uri);
    for (name, value) in &headers {
        builder = builder.header(name, value);
    }
    // Not signed: proxies may change it.
    builder = builder.header("user-agent", signing.user_agent).header("accept", "*/*");
    let mut request = builder.body(SdkBody::from(payload)).map_err(|error| error.to_string())?;
    instructions.apply_to_request_http1x(&mut request);
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_smithy_async::time::StaticTimeSource;

    fn signed(call: &Call<'_>, base: &str, skew: Skew) -> http::Request<SdkBody> {
        let credentials =
            Credentials::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None, None, "test");
        // 2015-08-30T12:36:00Z, the moment of AWS's published signing examples.
        let time = SharedTimeSource::new(StaticTimeSource::from_secs(1_440_938_160));
        let signing = Signing { credentials: &credentials, region: "us-east-1", time: &time, skew, user_agent: "test" };
        request(call, base, &signing).expect("it can be signed")
    }

    fn header<'r>(request: &'r http::Request<SdkBody>, name: &str) -> &'r str {
        request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// AWS's documentation signs `GET https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08` with these
    /// credentials at this time, with this content type.
    #[test]
    fn the_published_example_gets_the_published_signature() {
        let mut call = Call::rest("iam", "ListUsers", Protocol::RestXml, "GET", "/");
        call.query = vec![("Action".into(), "ListUsers".into()), ("Version".into(), "2010-05-08".into())];
        call.headers.push(("content-type".into(), "application/x-www-form-urlencoded; charset=utf-8".into()));
        let request = signed(&call, "https://iam.amazonaws.com", 0);
        assert_eq!(
            header(&request, "authorization"),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date, \
             Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }

    #[test]
    fn each_protocol_is_addressed_in_its_own_way() {
        let json = Call::json("events", "AWSEvents", "1.1", "ListRules", serde_json::json!({}));
        let request = signed(&json, "http://127.0.0.1:1/base/", 0);
        assert_eq!(header(&request, "x-amz-target"), "AWSEvents.ListRules");
        assert_eq!(request.uri().path(), "/base/");
        assert!(header(&request, "authorization").contains("content-type;host;x-amz-date;x-amz-target"));
        let s3 = Call::rest("s3", "ListBuckets", Protocol::RestXml, "GET", "/");
        let request = signed(&s3, "https://s3.us-east-1.amazonaws.com", 0);
        assert!(!header(&request, "x-amz-content-sha256").is_empty());
        assert_eq!(request.method(), "GET");
    }

    #[test]
    fn a_clock_that_is_wrong_is_corrected() {
        let call = Call::query("sts", "2011-06-15", "GetCallerIdentity", Vec::new());
        assert_eq!(header(&signed(&call, "http://x", 0), "x-amz-date"), "20150830T123600Z");
        assert_eq!(header(&signed(&call, "http://x", -3600), "x-amz-date"), "20150830T113600Z");
        assert_eq!(header(&signed(&call, "http://x", 60), "x-amz-date"), "20150830T123700Z");
    }
}
