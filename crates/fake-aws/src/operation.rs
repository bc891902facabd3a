//! The operations of services that are told apart by method and path.

/// Service, method, path, operation. `*` is one segment, `**` the rest.
const PATHS: &[(&str, &str, &str, &str)] = &[
    ("lambda", "GET", "/2015-03-31/functions", "ListFunctions"),
    ("lambda", "GET", "/2019-09-25/functions/*/event-invoke-config/list", "ListFunctionEventInvokeConfigs"),
    ("lambda", "PUT", "/2019-09-25/functions/*/event-invoke-config", "PutFunctionEventInvokeConfig"),
    ("lambda", "POST", "/2015-03-31/functions", "CreateFunction"),
    ("lambda", "GET", "/2015-03-31/functions/*", "GetFunction"),
    ("lambda", "DELETE", "/2015-03-31/functions/*", "DeleteFunction"),
    ("lambda", "GET", "/2015-03-31/functions/*/configuration", "GetFunctionConfiguration"),
    ("lambda", "PUT", "/2015-03-31/functions/*/configuration", "UpdateFunctionConfiguration"),
    ("lambda", "PUT", "/2015-03-31/functions/*/code", "UpdateFunctionCode"),
    ("lambda", "GET", "/2015-03-31/functions/*/policy", "GetPolicy"),
    ("lambda", "GET", "/2015-03-31/functions/*/versions", "ListVersionsByFunction"),
    ("lambda", "GET", "/2015-03-31/functions/*/aliases", "ListAliases"),
    ("lambda", "GET", "/2019-09-30/functions/*/concurrency", "GetFunctionConcurrency"),
    ("lambda", "GET", "/2015-03-31/event-source-mappings", "ListEventSourceMappings"),
    ("lambda", "POST", "/2015-03-31/event-source-mappings", "CreateEventSourceMapping"),
    ("lambda", "GET", "/2018-10-31/layers", "ListLayers"),
    ("lambda", "GET", "/2017-03-31/tags/**", "ListTags"),
    ("resource-explorer-2", "POST", "/Search", "Search"),
    ("resource-explorer-2", "POST", "/ListResources", "ListResources"),
    ("resource-explorer-2", "POST", "/ListViews", "ListViews"),
    ("resource-explorer-2", "POST", "/ListIndexes", "ListIndexes"),
    ("resource-explorer-2", "POST", "/GetIndex", "GetIndex"),
    ("resource-explorer-2", "POST", "/GetView", "GetView"),
    ("resource-explorer-2", "POST", "/GetDefaultView", "GetDefaultView"),
    ("resource-explorer-2", "POST", "/CreateIndex", "CreateIndex"),
    ("route53", "GET", "/2013-04-01/hostedzone", "ListHostedZones"),
    ("route53", "POST", "/2013-04-01/hostedzone", "CreateHostedZone"),
    ("route53", "GET", "/2013-04-01/hostedzone/*", "GetHostedZone"),
    ("route53", "GET", "/2013-04-01/hostedzone/*/rrset", "ListResourceRecordSets"),
    ("route53", "POST", "/2013-04-01/hostedzone/*/rrset", "ChangeResourceRecordSets"),
    ("route53", "GET", "/2013-04-01/tags/*/*", "ListTagsForResource"),
    ("route53", "GET", "/2013-04-01/healthcheck", "ListHealthChecks"),
    ("cloudfront", "GET", "/2020-05-31/distribution", "ListDistributions"),
    ("cloudfront", "POST", "/2020-05-31/distribution", "CreateDistribution"),
    ("cloudfront", "GET", "/2020-05-31/distribution/*", "GetDistribution"),
    ("cloudfront", "DELETE", "/2020-05-31/distribution/*", "DeleteDistribution"),
    ("cloudfront", "GET", "/2020-05-31/distribution/*/config", "GetDistributionConfig"),
    ("cloudfront", "PUT", "/2020-05-31/distribution/*/config", "UpdateDistribution"),
    ("cloudfront", "POST", "/2020-05-31/distribution-tenant", "CreateDistributionTenant"),
    ("cloudfront", "GET", "/2020-05-31/distribution-tenant", "GetDistributionTenantByDomain"),
    ("cloudfront", "GET", "/2020-05-31/distribution-tenant/*", "GetDistributionTenant"),
    ("cloudfront", "PUT", "/2020-05-31/distribution-tenant/*", "UpdateDistributionTenant"),
    ("cloudfront", "DELETE", "/2020-05-31/distribution-tenant/*", "DeleteDistributionTenant"),
    ("cloudfront", "POST", "/2020-05-31/distribution-tenants", "ListDistributionTenants"),
    (
        "cloudfront",
        "POST",
        "/2020-05-31/distribution-tenants-by-customization",
        "ListDistributionTenantsByCustomization",
    ),
    ("cloudfront", "POST", "/2020-05-31/connection-group", "CreateConnectionGroup"),
    ("cloudfront", "GET", "/2020-05-31/connection-group/*", "GetConnectionGroup"),
    ("cloudfront", "POST", "/2020-05-31/connection-groups", "ListConnectionGroups"),
    ("cloudfront", "GET", "/2020-05-31/tagging", "ListTagsForResource"),
    ("cloudfront", "POST", "/2020-05-31/tagging", "TagResource"),
    ("eks", "GET", "/clusters", "ListClusters"),
    ("eks", "GET", "/clusters/*", "DescribeCluster"),
    ("account", "POST", "/listRegions", "ListRegions"),
];

/// What S3 is asked for in a query without a value: `GET /bucket?encryption`.
const S3_PARTS: &[(&str, &str)] = &[
    ("accelerate", "BucketAccelerateConfiguration"),
    ("acl", "BucketAcl"),
    ("cors", "BucketCors"),
    ("encryption", "BucketEncryption"),
    ("lifecycle", "BucketLifecycleConfiguration"),
    ("location", "BucketLocation"),
    ("logging", "BucketLogging"),
    ("notification", "BucketNotificationConfiguration"),
    ("object-lock", "ObjectLockConfiguration"),
    ("ownershipControls", "BucketOwnershipControls"),
    ("policy", "BucketPolicy"),
    ("policyStatus", "BucketPolicyStatus"),
    ("publicAccessBlock", "PublicAccessBlock"),
    ("replication", "BucketReplication"),
    ("requestPayment", "BucketRequestPayment"),
    ("tagging", "BucketTagging"),
    ("versioning", "BucketVersioning"),
    ("website", "BucketWebsite"),
];

/// The operation, or method and path where the table has no row: it then is its own name.
pub(crate) fn of_rest(service: &str, method: &str, target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if service == "s3" {
        return of_s3(method, path, query);
    }
    let row = PATHS.iter().find(|(of, by, pattern, _)| *of == service && *by == method && matches(pattern, path));
    row.map_or_else(|| format!("{method} {path}"), |(.., operation)| (*operation).to_owned())
}

fn matches(pattern: &str, path: &str) -> bool {
    let mut segments = path.trim_end_matches('/').split('/');
    for expected in pattern.split('/') {
        match (expected, segments.next()) {
            ("**", Some(_)) => return true,
            ("*", Some(segment)) if !segment.is_empty() => {}
            (expected, Some(segment)) if expected == segment => {}
            _ => return false,
        }
    }
    segments.next().is_none()
}

fn of_s3(method: &str, path: &str, query: &str) -> String {
    let path = path.trim_matches('/');
    let names: Vec<&str> = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default()).collect();
    let verb = match method {
        "GET" => "Get",
        "PUT" => "Put",
        "DELETE" => "Delete",
        "HEAD" => "Head",
        other => return format!("{other} /{path}"),
    };
    if path.is_empty() {
        return "ListBuckets".to_owned();
    }
    if let Some((_, part)) = S3_PARTS.iter().find(|(name, _)| names.contains(name)) {
        return format!("{verb}{part}");
    }
    match (path.contains('/'), verb) {
        (true, verb) => format!("{verb}Object"),
        (false, "Get") => "ListObjectsV2".to_owned(),
        (false, "Put") => "CreateBucket".to_owned(),
        (false, verb) => format!("{verb}Bucket"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_and_path_name_the_operation() {
        let rows = [
            ("lambda", "GET", "/2015-03-31/functions/f/configuration", "GetFunctionConfiguration"),
            ("lambda", "GET", "/2017-03-31/tags/arn:aws:lambda:eu-west-1:1:function:f/x", "ListTags"),
            ("cloudfront", "PUT", "/2020-05-31/distribution-tenant/dt_1", "UpdateDistributionTenant"),
            ("cloudfront", "GET", "/2020-05-31/distribution-tenant?domain=a", "GetDistributionTenantByDomain"),
            ("route53", "GET", "/2013-04-01/hostedzone/Z1/rrset?maxitems=3", "ListResourceRecordSets"),
            ("s3", "GET", "/", "ListBuckets"),
            ("s3", "GET", "/?max-buckets=5", "ListBuckets"),
            ("s3", "GET", "/bucket?encryption", "GetBucketEncryption"),
            ("s3", "GET", "/bucket?publicAccessBlock=", "GetPublicAccessBlock"),
            ("s3", "PUT", "/bucket", "CreateBucket"),
            ("s3", "GET", "/bucket/a/b", "GetObject"),
            ("s3", "GET", "/bucket?list-type=2", "ListObjectsV2"),
            ("unheard", "PATCH", "/of/it", "PATCH /of/it"),
        ];
        for (service, method, target, operation) in rows {
            assert_eq!(of_rest(service, method, target), operation, "{method} {target}");
        }
    }
}
