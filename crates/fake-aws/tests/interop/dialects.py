"""Every fault of the proxy, through boto3: it must be the exception that the real service would have caused."""

import http.client
import json
import sys
import time
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError, ResponseStreamingError
from botocore.parsers import ResponseParserError

URL = sys.argv[1]
checks = 0


def check(condition, *said):
    global checks
    assert condition, said
    checks += 1


def client(service, region="us-east-1", key="111111111111", attempts=1):
    # One attempt: what the proxy says must arrive, not what a retry makes of it.
    config = Config(retries={"total_max_attempts": attempts, "mode": "standard"}, read_timeout=5)
    return boto3.client(service, endpoint_url=URL, region_name=region, aws_access_key_id=key, aws_secret_access_key="x", config=config)


def control(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + "/_fake/" + path, data=data, method=method)
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def rules(*them):
    control("PUT", "rules", list(them))


def refuse(service, how, operation="*"):
    return {"match": {"service": service, "operation": operation}, "do": {"refuse": how}}


def error_of(call):
    try:
        call()
    except ClientError as error:
        return error
    raise AssertionError("the call was answered")


# Service by its name in boto3 and in the signature, a call, and what AWS documents for a throttle, a denial and a
# failure of the service: code and status.
CALLS = [
    ("ec2", "ec2", lambda c: c.describe_vpcs(), ("RequestLimitExceeded", 503), ("UnauthorizedOperation", 403), ("InternalError", 500)),
    ("sns", "sns", lambda c: c.list_topics(), ("Throttling", 400), ("AccessDenied", 403), ("InternalFailure", 500)),
    ("cloudformation", "cloudformation", lambda c: c.list_stacks(), ("Throttling", 400), ("AccessDenied", 403), ("InternalFailure", 500)),
    ("iam", "iam", lambda c: c.list_roles(), ("Throttling", 400), ("AccessDenied", 403), ("InternalFailure", 500)),
    ("rds", "rds", lambda c: c.describe_db_instances(), ("Throttling", 400), ("AccessDenied", 403), ("InternalFailure", 500)),
    ("sqs", "sqs", lambda c: c.list_queues(), ("RequestThrottled", 403), ("AccessDenied", 403), ("InternalServerError", 500)),
    ("dynamodb", "dynamodb", lambda c: c.list_tables(), ("ThrottlingException", 400), ("AccessDeniedException", 400), ("InternalServerError", 500)),
    ("events", "events", lambda c: c.list_rules(), ("ThrottlingException", 400), ("AccessDeniedException", 400), ("InternalServerError", 500)),
    ("kms", "kms", lambda c: c.list_keys(), ("ThrottlingException", 400), ("AccessDeniedException", 400), ("InternalServerError", 500)),
    ("config", "config", lambda c: c.describe_config_rules(), ("ThrottlingException", 400), ("AccessDeniedException", 400), ("InternalServerError", 500)),
    ("lambda", "lambda", lambda c: c.list_functions(), ("TooManyRequestsException", 429), ("AccessDeniedException", 403), ("InternalServerException", 500)),
    ("resource-explorer-2", "resource-explorer-2", lambda c: c.search(QueryString=""), ("ThrottlingException", 429), ("AccessDeniedException", 403), ("InternalServerException", 500)),
    ("route53", "route53", lambda c: c.list_hosted_zones(), ("Throttling", 400), ("AccessDenied", 403), ("InternalError", 500)),
    ("cloudfront", "cloudfront", lambda c: c.list_distribution_tenants(), ("Throttling", 400), ("AccessDenied", 403), ("InternalError", 500)),
    ("s3", "s3", lambda c: c.list_buckets(), ("SlowDown", 503), ("AccessDenied", 403), ("InternalError", 500)),
]


def dialects():
    for name, scope, call, throttled, denied, internal in CALLS:
        it = client(name)
        for how, (code, status) in [("throttle", throttled), ("deny", denied), ("internal", internal)]:
            rules(refuse(scope, how))
            error = error_of(lambda: call(it))
            said = error.response
            check((said["Error"]["Code"].removesuffix("Exception"), said["ResponseMetadata"]["HTTPStatusCode"]) == (code.removesuffix("Exception"), status), name, how, said)
            if how == "deny":
                check("is not authorized to perform: " in said["Error"]["Message"], name, said)
    rules(refuse("config", "bad_token"))
    config = client("config")
    check(isinstance(error_of(config.describe_config_rules), config.exceptions.InvalidNextTokenException))
    rules(refuse("lambda", "throttle"))
    functions = client("lambda")
    check(isinstance(error_of(functions.list_functions), functions.exceptions.TooManyRequestsException))


def tenants():
    cloudfront = client("cloudfront")
    rules({"match": {"service": "cloudfront", "operation": "*DistributionTenant*"}, "do": {"in_progress": {"gets": 2}}})
    origin = {"Id": "o", "DomainName": "example.com", "CustomOriginConfig": {"HTTPPort": 80, "HTTPSPort": 443, "OriginProtocolPolicy": "https-only"}}
    distribution = cloudfront.create_distribution(DistributionConfig={
        "CallerReference": "a", "Comment": "", "Enabled": True, "ConnectionMode": "tenant-only", "Origins": {"Quantity": 1, "Items": [origin]},
        "DefaultCacheBehavior": {"TargetOriginId": "o", "ViewerProtocolPolicy": "https-only", "CachePolicyId": "658327ea-f89d-4fab-a63d-7e88639e58f6"},
    })["Distribution"]["Id"]
    for name in ["one", "two", "three"]:
        made = cloudfront.create_distribution_tenant(DistributionId=distribution, Name=name, Domains=[{"Domain": name + ".example.com"}], Enabled=True)
    check(made["DistributionTenant"]["Status"] == "InProgress", made)
    id = made["DistributionTenant"]["Id"]
    states = [cloudfront.get_distribution_tenant(Identifier=id)["DistributionTenant"]["Status"] for _ in range(3)]
    check(states == ["InProgress", "InProgress", "Deployed"], states)
    # The emulator checks ETags itself; the rule is for conflicts that nobody provoked.
    rules(refuse("cloudfront", "precondition", "UpdateDistributionTenant"))
    error = error_of(lambda: cloudfront.update_distribution_tenant(Id=id, IfMatch=made["ETag"], Enabled=False))
    check(isinstance(error, cloudfront.exceptions.PreconditionFailed), error)
    # Lost: done, and nobody was told.
    rules({"match": {"operation": "UpdateDistributionTenant"}, "do": "lose_reply"})
    try:
        cloudfront.update_distribution_tenant(Id=id, IfMatch=made["ETag"], DistributionId=distribution, Domains=[{"Domain": "three.example.com"}], Enabled=False)
        raise AssertionError("a reply came")
    except ConnectionClosedError:
        check(True)
    rules()
    check(cloudfront.get_distribution_tenant(Identifier=id)["DistributionTenant"]["Enabled"] is False)
    rules({"match": {"operation": "ListDistributionTenants"}, "do": {"page": {"size": 2, "items": "DistributionTenantList"}}})
    first = cloudfront.list_distribution_tenants()
    check(len(first["DistributionTenantList"]) == 2 and first["NextMarker"], first)
    second = cloudfront.list_distribution_tenants(Marker=first["NextMarker"])
    check(len(second["DistributionTenantList"]) == 1 and "NextMarker" not in second, second)


def pages():
    ec2 = client("ec2", "eu-west-1")
    made = {ec2.create_security_group(GroupName=f"g{n}", Description="d")["GroupId"] for n in range(11)}
    rules({"match": {"service": "ec2", "operation": "DescribeSecurityGroups"}, "do": {"page": {"size": 4}}})
    walk = lambda: [[group["GroupId"] for group in page["SecurityGroups"]] for page in ec2.get_paginator("describe_security_groups").paginate()]
    seen = walk()
    check([len(page) for page in seen] == [4, 4, 4], seen)
    check(made < set(sum(seen, [])), seen)
    rules({"match": {"operation": "DescribeSecurityGroups"}, "do": {"page": {"size": 4, "overlap": 2}}})
    seen = walk()
    check([len(page) for page in seen] == [4, 6, 6] and seen[0][2:] == seen[1][:2], seen)
    rules(
        {"match": {"operation": "DescribeSecurityGroups"}, "do": {"page": {"size": 4}}},
        {"match": {"operation": "DescribeSecurityGroups"}, "when": {"later_page": True}, "do": {"refuse": "bad_token"}},
    )
    check(error_of(walk).response["Error"]["Code"] == "InvalidNextToken")
    rules({"match": {"operation": "DescribeSecurityGroups"}, "do": "cut_reply"})
    try:
        walk()
        raise AssertionError("a cut reply was taken for a whole one")
    except (HTTPClientError, ResponseStreamingError, http.client.IncompleteRead, ConnectionClosedError):
        check(True)


def faults():
    sqs = client("sqs")
    rules({"match": {"service": "sqs"}, "do": "html"})
    try:
        sqs.list_queues()
        raise AssertionError("HTML was taken for a listing")
    except (ClientError, ResponseParserError):
        check(True)
    rules({"match": {"service": "sqs"}, "do": "unreachable"})
    try:
        sqs.list_queues()
        raise AssertionError("an answer came")
    except ConnectionClosedError:
        check(True)
    rules({"match": {"service": "sqs"}, "do": {"slow": {"ms": 300}}})
    start = time.monotonic()
    sqs.list_queues()
    check(time.monotonic() - start >= 0.3)
    # Down for a while, then back: a client with patience gets through.
    rules({"match": {"service": "sqs"}, "when": {"calls": [1, 2]}, "do": {"refuse": "throttle"}})
    control("DELETE", "calls")
    client("sqs", attempts=8).list_queues()
    counted = {(one["outcome"], one["calls"]) for one in control("GET", "calls")}
    check(counted == {("injected throttle", 2), ("ok", 1)}, counted)


def places():
    rules(refuse("ec2", "deny") | {"match": {"service": "ec2", "region": "eu-west-1", "account": "111111111111"}})
    check(error_of(client("ec2", "eu-west-1").describe_vpcs).response["Error"]["Code"] == "UnauthorizedOperation")
    check(client("ec2", "us-east-1").describe_vpcs()["Vpcs"])
    check(client("ec2", "eu-west-1", "222222222222").describe_vpcs()["Vpcs"])
    rules()
    role = client("sts").assume_role(RoleArn="arn:aws:iam::333333333333:role/reader", RoleSessionName="test")["Credentials"]
    boto3.client("sqs", endpoint_url=URL, region_name="us-east-1", aws_access_key_id=role["AccessKeyId"],
        aws_secret_access_key=role["SecretAccessKey"], aws_session_token=role["SessionToken"]).list_queues()
    check(any(one["account"] == "333333333333" for one in control("GET", "calls")))
    accounts = client("organizations")
    accounts.create_organization(FeatureSet="ALL")
    check(accounts.list_accounts()["Accounts"])


def fixtures():
    explorer = client("resource-explorer-2")
    pages = list(explorer.get_paginator("search").paginate(QueryString=""))
    check(sum(len(page["Resources"]) for page in pages) == 1000 and not pages[-1]["Count"]["Complete"])
    pages = list(explorer.get_paginator("list_resources").paginate(PaginationConfig={"PageSize": 999}))
    check(sum(len(page["Resources"]) for page in pages) == 1500)
    check(len(explorer.list_resources(MaxResults=1000)["Resources"]) == 1000 and "NextToken" not in explorer.list_resources(MaxResults=1000))
    cloudcontrol = client("cloudcontrol")
    pages = list(cloudcontrol.get_paginator("list_resources").paginate(TypeName="AWS::SQS::Queue"))
    names = [one["Identifier"] for page in pages for one in page["ResourceDescriptions"]]
    check(len(pages) == 2 and len(names) == 3, names)
    one = cloudcontrol.get_resource(TypeName="AWS::SQS::Queue", Identifier=names[0])["ResourceDescription"]
    check(json.loads(one["Properties"])["VisibilityTimeout"] == 30, one)
    # The third is gone by the time it is read, as happens.
    error = error_of(lambda: cloudcontrol.get_resource(TypeName="AWS::SQS::Queue", Identifier=names[2]))
    check(isinstance(error, cloudcontrol.exceptions.ResourceNotFoundException), error)
    config = client("config")
    rows = [row for page in config.get_paginator("get_compliance_details_by_config_rule").paginate(ConfigRuleName="bucket-versioning") for row in page["EvaluationResults"]]
    check(len(rows) == 130, len(rows))
    check(len(config.describe_compliance_by_config_rule()["ComplianceByConfigRules"]) == 3)
    events = [event for page in client("cloudtrail").get_paginator("lookup_events").paginate() for event in page["Events"]]
    # Newest first, as CloudTrail answers.
    check(len(events) == 3 and json.loads(events[2]["CloudTrailEvent"])["eventName"] == "AuthorizeSecurityGroupIngress", events)


for part in [dialects, tenants, pages, faults, places, fixtures]:
    part()
print(f"{checks} checks passed")
