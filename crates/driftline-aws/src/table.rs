//! The listings of `adopt` and `inventory`. Adding a type is a row here and a fixture.

use crate::make;
use crate::row::{Follow, Given, Operation, Paging, Row, Wire};
use crate::shape::Shape::{Bool, Camel, Count, List, NameTag, Number, Set, Tags, Text, With};
use crate::shape::{Field, field};

const EC2: Wire = Wire::Query { version: "2016-11-15" };
const RDS: Wire = Wire::Query { version: "2014-10-31" };
const IAM: Wire = Wire::Query { version: "2010-05-08" };
const SNS: Wire = Wire::Query { version: "2010-03-31" };
const SQS: Wire = Wire::Json { version: "1.0", target: "AmazonSQS" };
const DYNAMODB: Wire = Wire::Json { version: "1.0", target: "DynamoDB_20120810" };
const KMS: Wire = Wire::Json { version: "1.1", target: "TrentService" };
const SECRETS: Wire = Wire::Json { version: "1.1", target: "secretsmanager" };

const fn operation(service: &'static str, name: &'static str, wire: Wire) -> Operation {
    Operation { service, name, wire, given: &[], action: None, lists: &[] }
}

const fn paged(
    service: &'static str,
    name: &'static str,
    wire: Wire,
    given: &'static [(&'static str, Given)],
) -> Operation {
    Operation { given, ..operation(service, name, wire) }
}

const NEXT_TOKEN: Option<Paging> = Some(Paging { tokens: &[("NextToken", "NextToken")], more: None });
const EC2_TOKEN: Option<Paging> = Some(Paging { tokens: &[("NextToken", "nextToken")], more: None });
const MARKER: Option<Paging> = Some(Paging { tokens: &[("Marker", "Marker")], more: None });
const IAM_MARKER: Option<Paging> = Some(Paging { tokens: &[("Marker", "Marker")], more: Some("IsTruncated") });

const fn row(
    list: &'static str,
    kind: &'static str,
    operation: Operation,
    paging: Option<Paging>,
    items: &'static str,
    identity: &'static str,
    fields: &'static [Field],
) -> Row {
    Row { list, kind, operation, paging, items, identity, fields, follow: &[], global: false, gone: None }
}

const THOUSAND: &[(&str, Given)] = &[("MaxResults", Given::Number(1000))];
const HUNDRED_RECORDS: &[(&str, Given)] = &[("MaxRecords", Given::Number(100))];
const RDS_LISTS: &[&str] =
    &["DBClusters", "DBInstances", "DBSubnetGroups", "VpcSecurityGroups", "DBClusterMembers", "Subnets", "TagList"];

const fn rds(name: &'static str) -> Operation {
    Operation { given: HUNDRED_RECORDS, lists: RDS_LISTS, ..operation("rds", name, RDS) }
}

/// Networks and databases.
pub const ADOPT: &[Row] = &[
    row(
        "vpcs",
        "AWS::EC2::VPC",
        paged("ec2", "DescribeVpcs", EC2, THOUSAND),
        EC2_TOKEN,
        "vpcSet/*",
        "vpcId",
        &[
            field("vpcId", "vpcId", Text),
            field("cidrBlock", "cidrBlock", Text),
            field("cidrBlocks", "cidrBlockAssociationSet/*/cidrBlock", Set),
            field("state", "state", Text),
            field("isDefault", "isDefault", Bool),
            field("dhcpOptionsId", "dhcpOptionsId", Text),
            field("instanceTenancy", "instanceTenancy", Text),
            field("tags", "tagSet", Tags),
            field("name", "tagSet", NameTag),
        ],
    ),
    row(
        "subnets",
        "AWS::EC2::Subnet",
        paged("ec2", "DescribeSubnets", EC2, THOUSAND),
        EC2_TOKEN,
        "subnetSet/*",
        "subnetId",
        &[
            field("subnetId", "subnetId", Text),
            field("vpcId", "vpcId", Text),
            field("cidrBlock", "cidrBlock", Text),
            field("availabilityZone", "availabilityZone", Text),
            field("mapPublicIpOnLaunch", "mapPublicIpOnLaunch", Bool),
            field("assignIpv6AddressOnCreation", "assignIpv6AddressOnCreation", Bool),
            field("tags", "tagSet", Tags),
            field("name", "tagSet", NameTag),
        ],
    ),
    row(
        "internetGateways",
        "AWS::EC2::InternetGateway",
        paged("ec2", "DescribeInternetGateways", EC2, THOUSAND),
        EC2_TOKEN,
        "internetGatewaySet/*",
        "internetGatewayId",
        &[
            field("internetGatewayId", "internetGatewayId", Text),
            field("attachedVpcIds", "attachmentSet/*/vpcId", Set),
            field("tags", "tagSet", Tags),
            field("name", "tagSet", NameTag),
        ],
    ),
    Row {
        // A NAT gateway is listed for an hour after it was deleted.
        gone: Some(make::is_deleted),
        ..row(
            "natGateways",
            "AWS::EC2::NatGateway",
            paged("ec2", "DescribeNatGateways", EC2, THOUSAND),
            EC2_TOKEN,
            "natGatewaySet/*",
            "natGatewayId",
            &[
                field("natGatewayId", "natGatewayId", Text),
                field("vpcId", "vpcId", Text),
                field("subnetId", "subnetId", Text),
                field("connectivityType", "connectivityType", Text),
                field("publicIps", "natGatewayAddressSet/*/publicIp", Set),
                field("tags", "tagSet", Tags),
                field("name", "tagSet", NameTag),
            ],
        )
    },
    row(
        "routeTables",
        "AWS::EC2::RouteTable",
        paged("ec2", "DescribeRouteTables", EC2, &[("MaxResults", Given::Number(100))]),
        EC2_TOKEN,
        "routeTableSet/*",
        "routeTableId",
        &[
            field("routeTableId", "routeTableId", Text),
            field("vpcId", "vpcId", Text),
            field("isMain", "", With(make::is_main)),
            field("routes", "", With(make::routes)),
            field("associatedSubnets", "associationSet/*/subnetId", Set),
            field("tags", "tagSet", Tags),
            field("name", "tagSet", NameTag),
        ],
    ),
    row(
        "securityGroups",
        "AWS::EC2::SecurityGroup",
        paged("ec2", "DescribeSecurityGroups", EC2, THOUSAND),
        EC2_TOKEN,
        "securityGroupInfo/*",
        "groupId",
        &[
            field("groupId", "groupId", Text),
            field("groupName", "groupName", Text),
            field("vpcId", "vpcId", Text),
            field("description", "groupDescription", Text),
            field("ingressRuleCount", "ipPermissions/*", Count),
            field("egressRuleCount", "ipPermissionsEgress/*", Count),
            field("ingress", "", With(make::ingress)),
            field("egress", "", With(make::egress)),
            field("tags", "tagSet", Tags),
            field("name", "tagSet", NameTag),
        ],
    ),
    row(
        "rdsClusters",
        "AWS::RDS::DBCluster",
        rds("DescribeDBClusters"),
        MARKER,
        "DBClusters/*",
        "DBClusterIdentifier",
        &[
            field("clusterIdentifier", "DBClusterIdentifier", Text),
            field("engine", "Engine", Text),
            field("engineVersion", "EngineVersion", Text),
            field("status", "Status", Text),
            field("endpoint", "Endpoint", Text),
            field("readerEndpoint", "ReaderEndpoint", Text),
            field("port", "Port", Number),
            field("dbSubnetGroup", "DBSubnetGroup", Text),
            field("vpcSecurityGroups", "VpcSecurityGroups/*/VpcSecurityGroupId", Set),
            field("members", "DBClusterMembers/*/DBInstanceIdentifier", Set),
            field("backupRetentionPeriod", "BackupRetentionPeriod", Number),
            field("deletionProtection", "DeletionProtection", Bool),
            field("storageEncrypted", "StorageEncrypted", Bool),
            field("tags", "TagList", Tags),
        ],
    ),
    row(
        "rdsInstances",
        "AWS::RDS::DBInstance",
        rds("DescribeDBInstances"),
        MARKER,
        "DBInstances/*",
        "DBInstanceIdentifier",
        DB_INSTANCE,
    ),
    row(
        "dbSubnetGroups",
        "AWS::RDS::DBSubnetGroup",
        rds("DescribeDBSubnetGroups"),
        MARKER,
        "DBSubnetGroups/*",
        "DBSubnetGroupName",
        &[
            field("name", "DBSubnetGroupName", Text),
            field("description", "DBSubnetGroupDescription", Text),
            field("vpcId", "VpcId", Text),
            field("subnetIds", "Subnets/*/SubnetIdentifier", Set),
            field("status", "SubnetGroupStatus", Text),
        ],
    ),
    row(
        "secrets",
        "AWS::SecretsManager::Secret",
        paged("secretsmanager", "ListSecrets", SECRETS, &[("MaxResults", Given::Number(100))]),
        NEXT_TOKEN,
        "SecretList/*",
        "ARN",
        &[
            field("name", "Name", Text),
            field("arn", "ARN", Text),
            field("description", "Description", Text),
            field("kmsKeyId", "KmsKeyId", Text),
            field("rotationEnabled", "RotationEnabled", Bool),
            field("lastChangedDate", "LastChangedDate", Text),
            field("tags", "Tags", Tags),
        ],
    ),
];

const DB_INSTANCE: &[Field] = &[
    field("dbInstanceIdentifier", "DBInstanceIdentifier", Text),
    field("dbInstanceClass", "DBInstanceClass", Text),
    field("engine", "Engine", Text),
    field("engineVersion", "EngineVersion", Text),
    field("status", "DBInstanceStatus", Text),
    field("availabilityZone", "AvailabilityZone", Text),
    field("multiAz", "MultiAZ", Bool),
    field("storageType", "StorageType", Text),
    field("allocatedStorage", "AllocatedStorage", Number),
    field("clusterIdentifier", "DBClusterIdentifier", Text),
    field("dbSubnetGroup", "DBSubnetGroup/DBSubnetGroupName", Text),
    field("vpcSecurityGroups", "VpcSecurityGroups/*/VpcSecurityGroupId", Set),
    field("publiclyAccessible", "PubliclyAccessible", Bool),
    field("storageEncrypted", "StorageEncrypted", Bool),
    field("deletionProtection", "DeletionProtection", Bool),
    field("backupRetentionPeriod", "BackupRetentionPeriod", Number),
    field("tags", "TagList", Tags),
];

const fn follow(
    operation: Operation,
    parameter: Option<&'static str>,
    from: &'static str,
    result: &'static str,
    into: &'static str,
) -> Follow {
    Follow { operation, parameter, from, result, into, may_be_absent: false }
}

const IAM_LISTS: &[&str] = &[
    "RoleDetailList",
    "UserDetailList",
    "GroupDetailList",
    "Policies",
    "AttachedManagedPolicies",
    "GroupList",
    "Tags",
    "RolePolicyList",
    "UserPolicyList",
    "GroupPolicyList",
    "PolicyVersionList",
];

const fn iam(given: &'static [(&'static str, Given)]) -> Operation {
    Operation { given, lists: IAM_LISTS, ..operation("iam", "GetAccountAuthorizationDetails", IAM) }
}

const fn s3(name: &'static str, path: &'static str, action: &'static str, lists: &'static [&'static str]) -> Operation {
    Operation { action: Some(action), lists, ..operation("s3", name, Wire::RestXml { path }) }
}

const fn of_bucket(operation: Operation, result: &'static str, into: &'static str) -> Follow {
    Follow { may_be_absent: true, ..follow(operation, None, "Name", result, into) }
}

/// What each type's own API says of its things.
pub const INVENTORY: &[Row] = &[
    Row {
        gone: Some(make::is_terminated),
        ..row(
            "ec2",
            "AWS::EC2::Instance",
            paged("ec2", "DescribeInstances", EC2, THOUSAND),
            EC2_TOKEN,
            "reservationSet/*/instancesSet/*",
            "instanceId",
            &[
                field("instanceId", "instanceId", Text),
                field("instanceType", "instanceType", Text),
                field("state", "instanceState/name", Text),
                field("availabilityZone", "placement/availabilityZone", Text),
                field("platform", "platform", Text),
                field("imageId", "imageId", Text),
                field("vpcId", "vpcId", Text),
                field("subnetId", "subnetId", Text),
                field("securityGroupIds", "groupSet/*/groupId", Set),
                field("privateIpAddress", "privateIpAddress", Text),
                field("publicIpAddress", "ipAddress", Text),
                field("publicDnsName", "dnsName", Text),
                field("privateDnsName", "privateDnsName", Text),
                field("keyName", "keyName", Text),
                field("iamInstanceProfile", "iamInstanceProfile/arn", Text),
                field("launchTime", "launchTime", Text),
                field("tags", "tagSet", Tags),
            ],
        )
    },
    row(
        "ebs",
        "AWS::EC2::Volume",
        paged("ec2", "DescribeVolumes", EC2, &[("MaxResults", Given::Number(500))]),
        EC2_TOKEN,
        "volumeSet/*",
        "volumeId",
        &[
            field("volumeId", "volumeId", Text),
            field("volumeType", "volumeType", Text),
            field("size", "size", Number),
            field("iops", "iops", Number),
            field("state", "status", Text),
            field("availabilityZone", "availabilityZone", Text),
            field("encrypted", "encrypted", Bool),
            field("kmsKeyId", "kmsKeyId", Text),
            field("attachments", "", With(make::attachments)),
            field("createTime", "createTime", Text),
            field("tags", "tagSet", Tags),
        ],
    ),
    row(
        "addresses",
        "AWS::EC2::EIP",
        operation("ec2", "DescribeAddresses", EC2),
        None,
        "addressesSet/*",
        "allocationId",
        &[
            field("allocationId", "allocationId", Text),
            field("publicIp", "publicIp", Text),
            field("domain", "domain", Text),
            field("instanceId", "instanceId", Text),
            field("networkInterfaceId", "networkInterfaceId", Text),
            field("tags", "tagSet", Tags),
        ],
    ),
    Row {
        // Those that services make for themselves come and go with them.
        gone: Some(make::is_of_a_service),
        ..row(
            "networkInterfaces",
            "AWS::EC2::NetworkInterface",
            paged("ec2", "DescribeNetworkInterfaces", EC2, THOUSAND),
            EC2_TOKEN,
            "networkInterfaceSet/*",
            "networkInterfaceId",
            &[
                field("networkInterfaceId", "networkInterfaceId", Text),
                field("description", "description", Text),
                field("vpcId", "vpcId", Text),
                field("subnetId", "subnetId", Text),
                field("privateIpAddress", "privateIpAddress", Text),
                field("publicIp", "association/publicIp", Text),
                field("publicDnsName", "association/publicDnsName", Text),
                field("securityGroupIds", "groupSet/*/groupId", Set),
                field("attachedTo", "attachment/instanceId", Text),
                field("tags", "tagSet", Tags),
            ],
        )
    },
    row(
        "rds",
        "AWS::RDS::DBInstance",
        rds("DescribeDBInstances"),
        MARKER,
        "DBInstances/*",
        "DBInstanceIdentifier",
        &[
            field("dbInstanceId", "DBInstanceIdentifier", Text),
            field("dbInstanceClass", "DBInstanceClass", Text),
            field("engine", "Engine", Text),
            field("engineVersion", "EngineVersion", Text),
            field("status", "DBInstanceStatus", Text),
            field("availabilityZone", "AvailabilityZone", Text),
            field("multiAz", "MultiAZ", Bool),
            field("storageType", "StorageType", Text),
            field("allocatedStorage", "AllocatedStorage", Number),
        ],
    ),
    Row {
        follow: &[follow(operation("dynamodb", "DescribeTable", DYNAMODB), Some("TableName"), "", "Table", "Table")],
        ..row(
            "dynamodb",
            "AWS::DynamoDB::Table",
            paged("dynamodb", "ListTables", DYNAMODB, &[("Limit", Given::Number(100))]),
            Some(Paging { tokens: &[("ExclusiveStartTableName", "LastEvaluatedTableName")], more: None }),
            "TableNames/*",
            "",
            &[
                field("tableName", "id", Text),
                field("tableStatus", "Table/TableStatus", Text),
                field("billingMode", "", With(make::billing_mode)),
                field("readCapacityUnits", "Table/ProvisionedThroughput/ReadCapacityUnits", Number),
                field("writeCapacityUnits", "Table/ProvisionedThroughput/WriteCapacityUnits", Number),
                field("keySchema", "Table/KeySchema", Camel),
                field("attributeDefinitions", "", With(make::attribute_definitions)),
                field("globalSecondaryIndexes", "Table/GlobalSecondaryIndexes/*/IndexName", Set),
                field("streamViewType", "Table/StreamSpecification/StreamViewType", Text),
                field("deletionProtectionEnabled", "Table/DeletionProtectionEnabled", Bool),
                field("itemCount", "Table/ItemCount", Number),
                field("tableSizeBytes", "Table/TableSizeBytes", Number),
            ],
        )
    },
    Row {
        follow: &[Follow {
            may_be_absent: true,
            ..follow(
                operation(
                    "lambda",
                    "GetFunctionConcurrency",
                    Wire::RestJson { path: "/2019-09-30/functions/{}/concurrency" },
                ),
                None,
                "FunctionName",
                "ReservedConcurrentExecutions",
                "ReservedConcurrentExecutions",
            )
        }],
        ..row(
            "lambda",
            "AWS::Lambda::Function",
            paged(
                "lambda",
                "ListFunctions",
                Wire::RestJson { path: "/2015-03-31/functions/" },
                &[("MaxItems", Given::Number(50))],
            ),
            Some(Paging { tokens: &[("Marker", "NextMarker")], more: None }),
            "Functions/*",
            "FunctionArn",
            &[
                field("functionName", "FunctionName", Text),
                field("runtime", "Runtime", Text),
                field("memorySize", "MemorySize", Number),
                field("timeout", "Timeout", Number),
                field("codeSize", "CodeSize", Number),
                field("codeSha256", "CodeSha256", Text),
                field("description", "Description", Text),
                field("role", "Role", Text),
                field("packageType", "PackageType", Text),
                field("lastModified", "LastModified", Text),
                field("architecture", "", With(make::architecture)),
                field("handler", "Handler", Text),
                field("vpcConfig", "", With(make::vpc_config)),
                field("layers", "Layers/*", List),
                field("environment", "Environment/Variables", Tags),
                field("ephemeralStorageSize", "EphemeralStorage/Size", Number),
                field("deadLetterConfig", "DeadLetterConfig", Camel),
                field("tracingConfig", "TracingConfig", Camel),
                field("reservedConcurrency", "ReservedConcurrentExecutions", Number),
            ],
        )
    },
    Row {
        follow: &[follow(
            paged("sqs", "GetQueueAttributes", SQS, &[("AttributeNames", Given::Texts(&["All"]))]),
            Some("QueueUrl"),
            "",
            "Attributes",
            "Attributes",
        )],
        ..row(
            "sqs",
            "AWS::SQS::Queue",
            // Without MaxResults it gives a thousand and no token, and does not say that there are more.
            paged("sqs", "ListQueues", SQS, THOUSAND),
            NEXT_TOKEN,
            "QueueUrls/*",
            "",
            &[
                field("queueUrl", "id", Text),
                field("queueName", "", With(make::queue_name)),
                field("arn", "Attributes/QueueArn", Text),
                field("attributes", "", With(make::queue_attributes)),
            ],
        )
    },
    Row {
        follow: &[follow(
            operation("sns", "GetTopicAttributes", SNS),
            Some("TopicArn"),
            "TopicArn",
            "Attributes",
            "Attributes",
        )],
        ..row(
            "sns",
            "AWS::SNS::Topic",
            operation("sns", "ListTopics", SNS),
            NEXT_TOKEN,
            "Topics/*",
            "TopicArn",
            &[
                field("arn", "TopicArn", Text),
                field("topicName", "", With(make::topic_name)),
                field("attributes", "", With(make::topic_attributes)),
            ],
        )
    },
    Row {
        follow: &[follow(operation("kms", "DescribeKey", KMS), Some("KeyId"), "KeyId", "KeyMetadata", "KeyMetadata")],
        ..row(
            "kms",
            "AWS::KMS::Key",
            paged("kms", "ListKeys", KMS, &[("Limit", Given::Number(1000))]),
            Some(Paging { tokens: &[("Marker", "NextMarker")], more: Some("Truncated") }),
            "Keys/*",
            "KeyId",
            &[
                field("keyId", "KeyId", Text),
                field("arn", "KeyArn", Text),
                field("description", "KeyMetadata/Description", Text),
                field("enabled", "KeyMetadata/Enabled", Bool),
                field("keyState", "KeyMetadata/KeyState", Text),
                field("keyUsage", "KeyMetadata/KeyUsage", Text),
                field("keySpec", "KeyMetadata/KeySpec", Text),
                field("keyManager", "KeyMetadata/KeyManager", Text),
                field("origin", "KeyMetadata/Origin", Text),
                field("multiRegion", "KeyMetadata/MultiRegion", Bool),
            ],
        )
    },
    row(
        "loadBalancers",
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        Operation {
            given: &[("PageSize", Given::Number(400))],
            ..operation("elasticloadbalancing", "DescribeLoadBalancers", Wire::Query { version: "2015-12-01" })
        },
        Some(Paging { tokens: &[("Marker", "NextMarker")], more: None }),
        "LoadBalancers/*",
        "LoadBalancerArn",
        &[
            field("arn", "LoadBalancerArn", Text),
            field("loadBalancerName", "LoadBalancerName", Text),
            field("dnsName", "DNSName", Text),
            field("scheme", "Scheme", Text),
            field("loadBalancerType", "Type", Text),
            field("vpcId", "VpcId", Text),
            field("securityGroups", "SecurityGroups/*", Set),
            field("subnetIds", "AvailabilityZones/*/SubnetId", Set),
        ],
    ),
    Row {
        global: true,
        ..row(
            "distributions",
            "AWS::CloudFront::Distribution",
            Operation {
                lists: &["Items"],
                ..paged(
                    "cloudfront",
                    "ListDistributions",
                    Wire::RestXml { path: "/2020-05-31/distribution" },
                    &[("MaxItems", Given::Number(100))],
                )
            },
            Some(Paging { tokens: &[("Marker", "NextMarker")], more: Some("IsTruncated") }),
            "Items/*",
            "Id",
            &[
                field("arn", "ARN", Text),
                field("distributionId", "Id", Text),
                field("domainName", "DomainName", Text),
                field("aliases", "Aliases/Items/*", Set),
                field("origins", "Origins/Items/*/DomainName", Set),
                field("enabled", "Enabled", Bool),
                field("priceClass", "PriceClass", Text),
                field("comment", "Comment", Text),
                field("webAclId", "WebACLId", Text),
                field("httpVersion", "HttpVersion", Text),
            ],
        )
    },
    Row {
        global: true,
        follow: &[
            of_bucket(
                s3("GetBucketVersioning", "/{}?versioning", "s3:GetBucketVersioning", &[]),
                "Status",
                "Versioning",
            ),
            of_bucket(
                s3("GetBucketEncryption", "/{}?encryption", "s3:GetEncryptionConfiguration", &["Rule"]),
                "Rule",
                "Encryption",
            ),
            of_bucket(
                s3("GetPublicAccessBlock", "/{}?publicAccessBlock", "s3:GetBucketPublicAccessBlock", &[]),
                "",
                "PublicAccessBlock",
            ),
            of_bucket(s3("GetBucketTagging", "/{}?tagging", "s3:GetBucketTagging", &["TagSet"]), "TagSet", "Tags"),
        ],
        ..row(
            "s3",
            "AWS::S3::Bucket",
            Operation {
                given: &[("max-buckets", Given::Number(1000))],
                ..s3("ListBuckets", "/", "s3:ListAllMyBuckets", &["Buckets"])
            },
            Some(Paging { tokens: &[("continuation-token", "ContinuationToken")], more: None }),
            "Buckets/*",
            "Name",
            &[
                field("bucketName", "Name", Text),
                field("bucketRegion", "BucketRegion", Text),
                field("creationDate", "CreationDate", Text),
                field("versioning", "Versioning", Text),
                field("encryption", "", With(make::encryption)),
                field("publicAccessBlock", "", With(make::public_access_block)),
                field("tags", "Tags", Tags),
            ],
        )
    },
    Row {
        global: true,
        ..row(
            "roles",
            "AWS::IAM::Role",
            iam(&[("Filter", Given::Texts(&["Role"])), ("MaxItems", Given::Number(1000))]),
            IAM_MARKER,
            "RoleDetailList/*",
            "Arn",
            &[
                field("arn", "Arn", Text),
                field("roleName", "RoleName", Text),
                field("path", "Path", Text),
                field("assumeRolePolicyDocument", "", With(make::trust_policy)),
                field("attachedPolicies", "AttachedManagedPolicies/*/PolicyArn", Set),
                field("inlinePolicies", "", With(make::role_policies)),
                field("permissionsBoundary", "PermissionsBoundary/PermissionsBoundaryArn", Text),
                field("tags", "Tags", Tags),
            ],
        )
    },
    Row {
        global: true,
        ..row(
            "users",
            "AWS::IAM::User",
            iam(&[("Filter", Given::Texts(&["User"])), ("MaxItems", Given::Number(1000))]),
            IAM_MARKER,
            "UserDetailList/*",
            "Arn",
            &[
                field("arn", "Arn", Text),
                field("userName", "UserName", Text),
                field("path", "Path", Text),
                field("groups", "GroupList/*", Set),
                field("attachedPolicies", "AttachedManagedPolicies/*/PolicyArn", Set),
                field("inlinePolicies", "", With(make::user_policies)),
                field("permissionsBoundary", "PermissionsBoundary/PermissionsBoundaryArn", Text),
                field("tags", "Tags", Tags),
            ],
        )
    },
    Row {
        global: true,
        ..row(
            "groups",
            "AWS::IAM::Group",
            iam(&[("Filter", Given::Texts(&["Group"])), ("MaxItems", Given::Number(1000))]),
            IAM_MARKER,
            "GroupDetailList/*",
            "Arn",
            &[
                field("arn", "Arn", Text),
                field("iamGroupName", "GroupName", Text),
                field("path", "Path", Text),
                field("attachedPolicies", "AttachedManagedPolicies/*/PolicyArn", Set),
                field("inlinePolicies", "", With(make::group_policies)),
            ],
        )
    },
    Row {
        global: true,
        ..row(
            "policies",
            "AWS::IAM::ManagedPolicy",
            iam(&[("Filter", Given::Texts(&["LocalManagedPolicy"])), ("MaxItems", Given::Number(1000))]),
            IAM_MARKER,
            "Policies/*",
            "Arn",
            &[
                field("arn", "Arn", Text),
                field("policyName", "PolicyName", Text),
                field("path", "Path", Text),
                field("description", "Description", Text),
                field("defaultVersionId", "DefaultVersionId", Text),
                field("document", "", With(make::default_document)),
            ],
        )
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_of_a_type_that_has_a_key_and_of_a_list_of_its_own() {
        for rows in [ADOPT, INVENTORY] {
            let lists: BTreeSet<&str> = rows.iter().map(|row| row.list).collect();
            assert_eq!(lists.len(), rows.len(), "a list is in the table twice");
            for row in rows {
                assert_eq!(driftline_sources::aws::canonical_kind(row.kind), row.kind);
                assert_eq!(row.global, driftline_sources::aws::is_global(row.kind), "{}", row.kind);
                assert!(row.items.ends_with('*'), "{}", row.kind);
            }
        }
    }

    #[test]
    fn the_listing_that_cuts_itself_off_is_asked_for_pages() {
        let queues = INVENTORY.iter().find(|row| row.list == "sqs").expect("queues are listed");
        assert!(queues.operation.given.iter().any(|(name, _)| *name == "MaxResults") && queues.paging.is_some());
    }
}
