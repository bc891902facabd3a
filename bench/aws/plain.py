#!/usr/bin/env python3
"""What somebody would write with boto3 to list what `driftline observe adopt`, `inventory`, `dns` and `event-topology`
list: the same operations, one after the other. Prints how many things it saw."""

import json

import boto3
from botocore.exceptions import ClientError


def all_of(client, operation, key, **given):
    if client.can_paginate(operation):
        return [item for page in client.get_paginator(operation).paginate(**given) for item in page.get(key, [])]
    return getattr(client, operation)(**given).get(key, [])


def adopt():
    ec2, rds = boto3.client("ec2"), boto3.client("rds")
    yield from all_of(ec2, "describe_vpcs", "Vpcs")
    yield from all_of(ec2, "describe_subnets", "Subnets")
    yield from all_of(ec2, "describe_internet_gateways", "InternetGateways")
    yield from all_of(ec2, "describe_nat_gateways", "NatGateways")
    yield from all_of(ec2, "describe_route_tables", "RouteTables")
    yield from all_of(ec2, "describe_security_groups", "SecurityGroups")
    yield from all_of(rds, "describe_db_clusters", "DBClusters")
    yield from all_of(rds, "describe_db_instances", "DBInstances")
    yield from all_of(rds, "describe_db_subnet_groups", "DBSubnetGroups")
    yield from all_of(boto3.client("secretsmanager"), "list_secrets", "SecretList")


def inventory():
    ec2 = boto3.client("ec2")
    for reservation in all_of(ec2, "describe_instances", "Reservations"):
        yield from reservation["Instances"]
    yield from all_of(ec2, "describe_volumes", "Volumes")
    yield from all_of(boto3.client("rds"), "describe_db_instances", "DBInstances")
    dynamodb = boto3.client("dynamodb")
    for name in all_of(dynamodb, "list_tables", "TableNames"):
        yield dynamodb.describe_table(TableName=name)["Table"]
    functions = boto3.client("lambda")
    for function in all_of(functions, "list_functions", "Functions"):
        yield function | functions.get_function_concurrency(FunctionName=function["FunctionName"])
    sqs = boto3.client("sqs")
    for url in all_of(sqs, "list_queues", "QueueUrls", PaginationConfig={"PageSize": 1000}):
        yield sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    sns = boto3.client("sns")
    for topic in all_of(sns, "list_topics", "Topics"):
        yield sns.get_topic_attributes(TopicArn=topic["TopicArn"])["Attributes"]
    kms = boto3.client("kms")
    for key in all_of(kms, "list_keys", "Keys"):
        yield kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]
    yield from all_of(boto3.client("elbv2"), "describe_load_balancers", "LoadBalancers")
    s3 = boto3.client("s3")
    for bucket in s3.list_buckets()["Buckets"]:
        for ask in [s3.get_bucket_versioning, s3.get_bucket_encryption, s3.get_public_access_block, s3.get_bucket_tagging]:
            try:
                bucket |= ask(Bucket=bucket["Name"])
            except ClientError:
                pass
        yield bucket
    iam = boto3.client("iam")
    for kind, key in [("Role", "RoleDetailList"), ("User", "UserDetailList"), ("Group", "GroupDetailList"), ("LocalManagedPolicy", "Policies")]:
        yield from all_of(iam, "get_account_authorization_details", key, Filter=[kind])


def dns():
    route53 = boto3.client("route53")
    for zone in all_of(route53, "list_hosted_zones", "HostedZones"):
        yield route53.get_hosted_zone(Id=zone["Id"])
        yield from all_of(route53, "list_resource_record_sets", "ResourceRecordSets", HostedZoneId=zone["Id"])


def event_topology():
    events = boto3.client("events")
    for bus in events.list_event_buses()["EventBuses"]:
        for rule in all_of(events, "list_rules", "Rules", EventBusName=bus["Name"]):
            yield rule
            yield from all_of(events, "list_targets_by_rule", "Targets", Rule=rule["Name"], EventBusName=bus["Name"])
    sns, sqs = boto3.client("sns"), boto3.client("sqs")
    yield from all_of(sns, "list_topics", "Topics")
    yield from all_of(sns, "list_subscriptions", "Subscriptions")
    for url in all_of(sqs, "list_queues", "QueueUrls", PaginationConfig={"PageSize": 1000}):
        yield sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn", "RedrivePolicy"])["Attributes"]
    yield from all_of(boto3.client("lambda"), "list_event_source_mappings", "EventSourceMappings")


print(json.dumps({part.__name__: len(list(part())) for part in [adopt, inventory, dns, event_topology]}))
