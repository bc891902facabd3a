"""Fills an account: `seed.py QUEUES GROUPS FUNCTIONS`."""

import io
import sys
import zipfile

import boto3

queues, groups, functions = (int(word) for word in sys.argv[1:4])
sqs, ec2, events, sns, functions_of = (boto3.client(name) for name in ["sqs", "ec2", "events", "sns", "lambda"])
for number in range(queues):
    sqs.create_queue(QueueName=f"queue-{number:05}", tags={"team": "bench"})
for number in range(groups):
    group = ec2.create_security_group(GroupName=f"group-{number:05}", Description="bench")["GroupId"]
    rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
code = io.BytesIO()
with zipfile.ZipFile(code, "w") as archive:
    archive.writestr("index.py", "def handler(event, context): return 1")
role = boto3.client("iam").create_role(RoleName="bench", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
for number in range(functions):
    name = f"function-{number:04}"
    given = {"Runtime": "python3.12", "Role": role, "Handler": "index.handler", "Code": {"ZipFile": code.getvalue()}}
    arn = functions_of.create_function(FunctionName=name, **given)["FunctionArn"]
    events.put_rule(Name=name, EventPattern='{"source": ["bench"]}')
    events.put_targets(Rule=name, Targets=[{"Id": "function", "Arn": arn}])
    sns.create_topic(Name=f"topic-{number:04}")
