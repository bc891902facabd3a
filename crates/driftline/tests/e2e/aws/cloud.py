"""What the tests do to an account, with boto3: `cloud.py VERB …`, told by the environment where and who. Prints JSON."""

import json
import sys

import boto3
from botocore.config import Config


def client(service):
    # Rules of the proxy may throttle this too; it is not what is tested.
    return boto3.client(service, config=Config(retries={"total_max_attempts": 12, "mode": "standard"}))


def attribute(logical, name):
    return {"Fn::GetAtt": [logical, name]}


def ref(logical):
    return {"Ref": logical}


# The experiment of the first document: a network, a function behind a rule, queues, a topic, and a zone with a record
# that points at a load balancer that is gone.
STACK = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Resources": {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.20.0.0/16"}},
        "Subnet": {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": ref("Vpc"), "CidrBlock": "10.20.1.0/24"}},
        "Gateway": {"Type": "AWS::EC2::InternetGateway"},
        "Attachment": {"Type": "AWS::EC2::VPCGatewayAttachment", "Properties": {"VpcId": ref("Vpc"), "InternetGatewayId": ref("Gateway")}},
        "Table": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": ref("Vpc")}},
        "Route": {
            "Type": "AWS::EC2::Route",
            "DependsOn": "Attachment",
            "Properties": {"RouteTableId": ref("Table"), "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": ref("Gateway")},
        },
        "Group": {"Type": "AWS::EC2::SecurityGroup", "Properties": {"GroupDescription": "the group", "GroupName": "orders", "VpcId": ref("Vpc")}},
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {
                "RoleName": "orders",
                "AssumeRolePolicyDocument": {
                    "Version": "2012-10-17",
                    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
                },
            },
        },
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "FunctionName": "orders",
                "Runtime": "python3.12",
                "Handler": "index.handler",
                "Timeout": 3,
                "Role": attribute("Role", "Arn"),
                "Code": {"ZipFile": "def handler(event, context): return 1"},
            },
        },
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "orders"}},
        "DeadLetters": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "orders-dead"}},
        "Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {"EventSourceArn": attribute("Queue", "Arn"), "FunctionName": ref("Function")}},
        "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "orders"}},
        "Subscription": {"Type": "AWS::SNS::Subscription", "Properties": {"TopicArn": ref("Topic"), "Protocol": "sqs", "Endpoint": attribute("Queue", "Arn")}},
        "Rule": {
            "Type": "AWS::Events::Rule",
            "Properties": {
                "Name": "orders",
                "EventPattern": {"source": ["orders"]},
                "State": "ENABLED",
                "Targets": [{"Id": "function", "Arn": attribute("Function", "Arn")}],
            },
        },
        "Zone": {"Type": "AWS::Route53::HostedZone", "Properties": {"Name": "orders.example.com"}},
        "Dangling": {
            "Type": "AWS::Route53::RecordSet",
            "Properties": {
                "HostedZoneId": ref("Zone"),
                "Name": "old.orders.example.com",
                "Type": "CNAME",
                "TTL": "300",
                "ResourceRecords": ["gone-1234567890.us-east-1.elb.amazonaws.com"],
            },
        },
    },
}


def deploy():
    cloudformation = client("cloudformation")
    cloudformation.create_stack(StackName="orders", TemplateBody=json.dumps(STACK), Capabilities=["CAPABILITY_NAMED_IAM"])
    cloudformation.get_waiter("stack_create_complete").wait(StackName="orders", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    rows = cloudformation.list_stack_resources(StackName="orders")["StackResourceSummaries"]
    return {row["LogicalResourceId"]: row["PhysicalResourceId"] for row in rows}


def intervene(group, queue):
    """The three interventions: a port opened, a timeout raised, a target added."""
    client("ec2").authorize_security_group_ingress(
        GroupId=group,
        IpPermissions=[{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}],
    )
    client("lambda").update_function_configuration(FunctionName="orders", Timeout=30)
    arn = client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    client("events").put_targets(Rule="orders", Targets=[{"Id": "queue", "Arn": arn}])
    return {"queue": arn}


def queues(count):
    """So many queues, named in order."""
    sqs = client("sqs")
    for number in range(int(count)):
        sqs.create_queue(QueueName=f"queue-{number:05}")
    return int(count)


def delete_queue(name):
    sqs = client("sqs")
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])
    return name


def groups(count):
    """So many security groups in the default network; returns their ids."""
    ec2 = client("ec2")
    return [ec2.create_security_group(GroupName=f"group-{number:03}", Description="made by a test")["GroupId"] for number in range(int(count))]


def delete_group(group):
    client("ec2").delete_security_group(GroupId=group)
    return group


def open_port(group, port):
    rule = {"IpProtocol": "tcp", "FromPort": int(port), "ToPort": int(port), "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    client("ec2").authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    return group


def organization(*names):
    """An organization with these accounts; returns all ids, the own one first."""
    organizations = client("organizations")
    organizations.create_organization(FeatureSet="ALL")
    for name in names:
        organizations.create_account(Email=f"{name}@example.com", AccountName=name)
    pages = organizations.get_paginator("list_accounts").paginate()
    return [account["Id"] for page in pages for account in page["Accounts"]]


def account(name):
    """One more account of the organization."""
    client("organizations").create_account(Email=f"{name}@example.com", AccountName=name)


def unit(name, *accounts):
    """A unit of the organization with these accounts in it, one of them in a unit of its own beneath; returns its id."""
    organizations = client("organizations")
    root = organizations.list_roots()["Roots"][0]["Id"]
    new = lambda parent, name: organizations.create_organizational_unit(ParentId=parent, Name=name)["OrganizationalUnit"]["Id"]
    outer = new(root, name)
    inner = new(outer, f"{name}-inner")
    for at, account in enumerate(accounts):
        organizations.move_account(AccountId=account, SourceParentId=root, DestinationParentId=inner if at == 0 else outer)
    return outer


def spread(accounts, regions):
    """Other queues in each of many accounts and regions: an access key of twelve digits is the account."""
    for at, account in enumerate(accounts.split(",")):
        for nth, region in enumerate(regions.split(",")):
            sqs = boto3.client("sqs", region_name=region, aws_access_key_id=account, aws_secret_access_key="secret")
            for queue in range(1 + (at + nth) % 3):
                sqs.create_queue(QueueName=f"orders-{at}-{nth}-{queue}", Attributes={"VisibilityTimeout": str(30 + at)})


def one_of_each():
    """What the stack of `deploy` lacks, so that every listing has an item to ask more about."""
    client("s3").create_bucket(Bucket="bucket-" + boto3.client("sts").get_caller_identity()["Account"])
    client("kms").create_key(Description="made by a test")
    client("dynamodb").create_table(
        TableName="table",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return True


def bucket(name):
    """A bucket in the region that is asked."""
    s3 = client("s3")
    region = s3.meta.region_name
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=name, **where)
    return name


def upload(name, *pairs):
    """Files into a bucket: key, file, key, file, …"""
    for key, path in zip(pairs[::2], pairs[1::2]):
        with open(path, "rb") as file:
            client("s3").put_object(Bucket=name, Key=key, Body=file.read())
    return len(pairs) // 2


def narrow(subscription, queue):
    """A subscription that lets less through, and a function whose failures go somewhere."""
    policy = json.dumps({"kind": ["order"]})
    client("sns").set_subscription_attributes(SubscriptionArn=subscription, AttributeName="FilterPolicy", AttributeValue=policy)
    arn = client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    destination = {"OnFailure": {"Destination": arn}}
    client("lambda").put_function_event_invoke_config(FunctionName="orders", DestinationConfig=destination)
    return {"queue": arn}


def topic(name):
    """A topic, and a queue that subscribes to it."""
    arn = client("sns").create_topic(Name=name)["TopicArn"]
    sqs = client("sqs")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    client("sns").subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue)
    return {"topic": arn, "queue": url}


def no_topic(arn):
    client("sns").delete_topic(TopicArn=arn)
    return arn


def messages(queue):
    """Everything that is in a queue."""
    bodies = []
    while True:
        answer = client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        if not answer.get("Messages"):
            return bodies
        for message in answer["Messages"]:
            bodies.append(message["Body"])
            client("sqs").delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


VERBS = {verb.__name__: verb for verb in [deploy, intervene, queues, delete_queue, groups, delete_group, open_port, organization, account, unit, spread, one_of_each, bucket, upload, narrow, topic, no_topic, messages]}
print(json.dumps(VERBS[sys.argv[1]](*sys.argv[2:])))
