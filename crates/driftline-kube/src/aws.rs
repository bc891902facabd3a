//! How failures of AWS's wire are failures of the cloud.

use aws_wire::{Error, Kind};

use crate::cloud::{CloudError, Fault};

pub(crate) fn cloud_error(error: Error) -> CloudError {
    // Cloud Control's words for "not now".
    let passes = matches!(
        error.code.as_deref(),
        Some(
            "ConcurrentOperationException"
                | "NotStabilizedException"
                | "HandlerInternalFailureException"
                | "ServiceInternalErrorException"
                | "NetworkFailureException"
        )
    );
    let fault = match error.kind {
        _ if passes => Fault::Unavailable,
        Kind::Throttled => Fault::Throttled,
        Kind::Precondition => Fault::Precondition,
        Kind::Conflict => Fault::Conflict,
        Kind::AccessDenied => Fault::AccessDenied,
        Kind::Credentials => Fault::Credentials,
        Kind::Invalid | Kind::RegionDisabled => Fault::Invalid,
        Kind::NotFound => Fault::NotFound,
        Kind::Unavailable | Kind::Timeout | Kind::Unreachable | Kind::Malformed | Kind::Budget => Fault::Unavailable,
    };
    let reason = match error.code.as_deref() {
        Some("CNAMEAlreadyExists") => Some("DomainConflict"),
        Some("EntityAlreadyExists" | "AlreadyExistsException") => Some("AlreadyExists"),
        _ => None,
    };
    let retry_after = error.retry_after;
    // Told without the request id: it is another one each time, and the text is part of a status.
    let message = Error { request_id: None, ..error }.to_string();
    CloudError { fault, message, reason, retry_after }
}
