//! How much a change of something known matters: by type, place and direction. Toward less secure is higher.
//!
//! One table, read from above: the first row that fits a value decides. Names are compared without regard to case,
//! `_` and `-`, because observers write `PubliclyAccessible`, `publiclyAccessible` and `publicly_accessible`.

use std::collections::HashMap;

use driftline_core::rule::Glob;
use driftline_core::severity::{Leaf, Severity};
use driftline_core::{Pattern, Pointer, Value};

use Severity::{Critical, High, Info, Low, Medium};
use When::{Any, Becomes, Closes, Deleted, Leaves, Less, More, Narrows, New, Off, On, Opens, Widens};

/// Which way a value went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Any way.
    Any,
    /// From a value to none, or from on to off: false, `Disabled`, `Suspended`, `NONE`, absent.
    Off,
    On,
    /// Toward the whole internet: `0.0.0.0/0` or `::/0`, now and not before.
    Opens,
    Closes,
    /// Toward "everything is allowed": `*`, `service:*`, or a policy of AWS's with full access, now and not before.
    Widens,
    Narrows,
    /// A number that is smaller, or gone.
    Less,
    More,
    /// One of these words, now and not before.
    Becomes(&'static [&'static str]),
    /// The opposite.
    Leaves(&'static [&'static str]),
    /// The resource is gone.
    Deleted,
    /// The resource is there, and was not.
    New,
}

/// Type, path (and all beneath it), direction, severity, why.
type Row = (&'static str, &'static str, When, Severity, &'static str);

const EVERYTHING: &str = "/**";
const PUBLIC: &[&str] = &["public-read", "public-read-write", "authenticated-read", "publicread", "publicreadwrite"];

/// Reviewed row by row; the order counts.
const TABLE: &[Row] = &[
    // What is written on a thing. First, because a tag may be named anything.
    ("*", "/**/tags", Any, Low, "tags say who pays and who owns; nothing opens by them"),
    ("*", "/**/tagsAll", Any, Low, "tags say who pays and who owns; nothing opens by them"),
    ("*", "/**/labels", Any, Low, "labels group things; nothing opens by them"),
    ("*", "/**/annotations", Any, Low, "annotations are notes"),
    ("*", "/**/description", Any, Info, "a description changes nothing"),
    // Whole resources.
    ("AWS::CloudTrail::*", "", Deleted, Critical, "what is done from now on is no longer written down"),
    ("AWS::Config::ConfigurationRecorder", "", Deleted, Critical, "changes are no longer recorded"),
    ("AWS::GuardDuty::*", "", Deleted, Critical, "threats are no longer detected"),
    ("AWS::SecurityHub::*", "", Deleted, Critical, "findings are no longer collected"),
    ("AWS::KMS::Key", "", Deleted, Critical, "what it encrypted cannot be read any more"),
    ("AWS::S3::Bucket", "", Deleted, Critical, "its data is gone"),
    ("AWS::RDS::DB*", "", Deleted, Critical, "its data may be gone"),
    ("AWS::DynamoDB::*Table", "", Deleted, Critical, "its data is gone"),
    ("AWS::EFS::FileSystem", "", Deleted, Critical, "its data is gone"),
    ("AWS::Backup::*", "", Deleted, Critical, "backups are gone, or no longer made"),
    ("AWS::IAM::*", "", Deleted, Medium, "access was taken away; whoever needs it stands still"),
    ("Driftline::*", "", Deleted, Medium, "something no longer leads where it led"),
    ("*", "", Deleted, High, "what was expected is gone"),
    ("AWS::IAM::*", "", New, High, "somebody or something got access that was not expected"),
    ("Driftline::Dns::Orphan", "", New, High, "a name points at nothing; whoever makes that thing owns the name"),
    ("AWS::EC2::SecurityGroup*", "", New, Medium, "a way in or out that was not expected"),
    ("AWS::EC2::InternetGateway", "", New, Medium, "a way in or out that was not expected"),
    ("AWS::Lambda::Url", "", New, Medium, "an address that the internet can call"),
    ("*", "", New, Low, "it is there and was not expected; what it opens is not known"),
    // Networks: from where, and to where.
    ("AWS::EC2::SecurityGroup*", "/**/egress", Opens, Medium, "everything inside may reach the whole internet"),
    ("AWS::EC2::SecurityGroup*", "/**/securityGroupEgress", Opens, Medium, "everything inside may reach the internet"),
    ("AWS::EC2::SecurityGroup*", "/**/ipPermissionsEgress", Opens, Medium, "everything inside may reach the internet"),
    ("AWS::EC2::SecurityGroupEgress", EVERYTHING, Opens, Medium, "everything inside may reach the whole internet"),
    ("AWS::EC2::SecurityGroup*", EVERYTHING, Opens, Critical, "the whole internet may come in"),
    ("AWS::EC2::SecurityGroup*", EVERYTHING, Closes, Low, "the whole internet may no longer come in"),
    ("AWS::EC2::SecurityGroup*", "/**/ingress", Any, High, "who may come in has changed"),
    ("AWS::EC2::SecurityGroup*", "/**/securityGroupIngress", Any, High, "who may come in has changed"),
    ("AWS::EC2::SecurityGroup*", "/**/ipPermissions", Any, High, "who may come in has changed"),
    ("AWS::EC2::SecurityGroupIngress", EVERYTHING, Any, High, "who may come in has changed"),
    ("AWS::EC2::SecurityGroup", "/ingressRuleCount", More, High, "one more way in; the listing does not say which"),
    ("AWS::EC2::SecurityGroup", "/ingressRuleCount", Less, Low, "one way in less"),
    ("AWS::EC2::NetworkAcl*", EVERYTHING, Opens, High, "the whole internet may pass the network's border"),
    ("AWS::EC2::Route*", EVERYTHING, Opens, High, "there is a way from or to the whole internet"),
    ("*", "/**/mapPublicIpOnLaunch", On, Medium, "what is started there gets an address on the internet"),
    ("*", "/**/associatePublicIpAddress", On, Medium, "it gets an address on the internet"),
    ("*", "/**/assignPublicIp", Becomes(&["enabled", "true"]), Medium, "it gets an address on the internet"),
    ("*", "/**/scheme", Becomes(&["internet-facing"]), High, "the whole internet may reach it"),
    ("*", "/**/endpointPublicAccess", On, High, "the whole internet may reach the cluster's API"),
    ("*", "/**/endpointPublicAccess", Off, Low, "the cluster's API is no longer reached from the internet"),
    ("*", "/**/publiclyAccessible", On, Critical, "the whole internet may reach the database"),
    ("*", "/**/publiclyAccessible", Off, Low, "the database is no longer reached from the internet"),
    ("AWS::Lambda::Url", "/**/authType", Becomes(&["none"]), Critical, "anybody may call the function"),
    // Public data.
    ("*", "/**/publicAccessBlockConfiguration", Off, Critical, "public access is no longer blocked"),
    ("*", "/**/publicAccessBlockConfiguration", On, Low, "public access is blocked"),
    ("*", "/**/publicAccessBlock", Off, Critical, "public access is no longer blocked"),
    ("*", "/**/publicAccessBlock", On, Low, "public access is blocked"),
    ("*", "/**/blockPublicAcls", Off, Critical, "public access is no longer blocked"),
    ("*", "/**/blockPublicAcls", On, Low, "public access is blocked"),
    ("*", "/**/blockPublicPolicy", Off, Critical, "public access is no longer blocked"),
    ("*", "/**/blockPublicPolicy", On, Low, "public access is blocked"),
    ("*", "/**/ignorePublicAcls", Off, Critical, "public access is no longer blocked"),
    ("*", "/**/ignorePublicAcls", On, Low, "public access is blocked"),
    ("*", "/**/restrictPublicBuckets", Off, Critical, "public access is no longer blocked"),
    ("*", "/**/restrictPublicBuckets", On, Low, "public access is blocked"),
    ("AWS::S3::*", "/**/acl", Becomes(PUBLIC), Critical, "anybody may read it"),
    ("AWS::S3::*", "/**/acl", Leaves(PUBLIC), Low, "it is no longer public"),
    ("AWS::S3::*", "/**/accessControl", Becomes(PUBLIC), Critical, "anybody may read it"),
    ("AWS::S3::*", "/**/accessControl", Leaves(PUBLIC), Low, "it is no longer public"),
    // Who may do what.
    ("AWS::IAM::*", "/**/permissionsBoundary", Off, High, "nothing bounds what may be granted any more"),
    ("AWS::IAM::*", EVERYTHING, Widens, Critical, "everything is allowed, of a service or at all"),
    ("AWS::IAM::*", EVERYTHING, Narrows, Low, "less is allowed"),
    ("AWS::IAM::*", "/**/policyDocument", Any, High, "who may do what has changed"),
    ("AWS::IAM::*", "/**/assumeRolePolicyDocument", Any, High, "who may take on the role has changed"),
    ("AWS::IAM::*", "/**/assumeRolePolicy", Any, High, "who may take on the role has changed"),
    ("AWS::IAM::*", "/**/policies", Any, High, "who may do what has changed"),
    ("AWS::IAM::*", "/**/policy", Any, High, "who may do what has changed"),
    ("AWS::IAM::*", "/**/inlinePolicy", Any, High, "who may do what has changed"),
    ("AWS::IAM::*", "/**/managedPolicyArns", Any, High, "who may do what has changed"),
    ("AWS::IAM::*", "/**/attachedPolicies", Any, High, "who may do what has changed"),
    ("AWS::IAM::*", "/**/groups", Any, High, "who may do what has changed"),
    ("*", "/**/policyDocument", Widens, Critical, "everybody, or everything, is allowed"),
    ("*", "/**/policyDocument", Narrows, Low, "less is allowed"),
    ("*", "/**/policyDocument", Any, High, "who may do what has changed"),
    ("*", "/**/resourcePolicy", Widens, Critical, "everybody, or everything, is allowed"),
    ("*", "/**/resourcePolicy", Any, High, "who may do what has changed"),
    ("*", "/**/bucketPolicy", Widens, Critical, "everybody, or everything, is allowed"),
    ("*", "/**/bucketPolicy", Any, High, "who may do what has changed"),
    ("*", "/**/keyPolicy", Widens, Critical, "everybody, or everything, is allowed"),
    ("*", "/**/keyPolicy", Any, High, "who may do what has changed"),
    ("*", "/**/accessPolicies", Widens, Critical, "everybody, or everything, is allowed"),
    ("*", "/**/accessPolicies", Any, High, "who may do what has changed"),
    ("AWS::*", "/**/policy", Widens, Critical, "everybody, or everything, is allowed"),
    ("AWS::*", "/**/policy", Narrows, Low, "less is allowed"),
    // Encryption.
    (
        "AWS::KMS::Key",
        "/**/keyState",
        Becomes(&["disabled", "pendingdeletion"]),
        Critical,
        "what it encrypted cannot be read",
    ),
    ("AWS::KMS::Key", "/**/enabled", Off, Critical, "what it encrypted cannot be read"),
    ("*", "/**/enableKeyRotation", Off, High, "the key is no longer renewed"),
    ("*", "/**/enableKeyRotation", On, Info, "the key is renewed by itself"),
    ("*", "/**/keyRotationEnabled", Off, High, "the key is no longer renewed"),
    ("*", "/**/keyRotationEnabled", On, Info, "the key is renewed by itself"),
    ("*", "/**/encrypted", Off, High, "data is no longer encrypted"),
    ("*", "/**/encrypted", On, Low, "data is encrypted"),
    ("*", "/**/storageEncrypted", Off, High, "data is no longer encrypted"),
    ("*", "/**/storageEncrypted", On, Low, "data is encrypted"),
    ("*", "/**/bucketEncryption", Off, High, "data is no longer encrypted as it was"),
    ("*", "/**/bucketEncryption", On, Low, "data is encrypted"),
    ("*", "/**/serverSideEncryptionConfiguration", Off, High, "data is no longer encrypted as it was"),
    ("*", "/**/serverSideEncryptionConfiguration", On, Low, "data is encrypted"),
    ("*", "/**/serverSideEncryption", Off, High, "data is no longer encrypted as it was"),
    ("*", "/**/serverSideEncryption", On, Low, "data is encrypted"),
    ("*", "/**/encryptionConfiguration", Off, High, "data is no longer encrypted as it was"),
    ("*", "/**/encryptionConfiguration", On, Low, "data is encrypted"),
    ("*", "/**/encryption", Off, High, "data is no longer encrypted as it was"),
    ("*", "/**/encryption", On, Low, "data is encrypted"),
    ("*", "/**/sseSpecification", Off, High, "data is no longer encrypted as it was"),
    ("*", "/**/sseSpecification", On, Low, "data is encrypted"),
    ("*", "/**/sseDescription", Off, High, "data is no longer encrypted as it was"),
    ("*", "/**/encryptionAtRestOptions", Off, High, "data is no longer encrypted"),
    ("*", "/**/atRestEncryptionEnabled", Off, High, "data is no longer encrypted"),
    ("*", "/**/transitEncryptionEnabled", Off, High, "data travels in the clear"),
    ("*", "/**/nodeToNodeEncryptionOptions", Off, High, "data travels in the clear"),
    ("*", "/**/kmsKeyId", Off, High, "data is no longer encrypted with a key of your own"),
    ("*", "/**/kmsKeyArn", Off, High, "data is no longer encrypted with a key of your own"),
    ("*", "/**/kmsMasterKeyId", Off, High, "data is no longer encrypted with a key of your own"),
    ("*", "/**/viewerProtocolPolicy", Becomes(&["allow-all"]), High, "data may travel in the clear"),
    ("AWS::ElasticLoadBalancing*", "/**/protocol", Becomes(&["http"]), High, "data travels in the clear"),
    ("*", "/**/sslPolicy", Any, Medium, "which ciphers are taken has changed"),
    ("*", "/**/minimumProtocolVersion", Any, Medium, "which protocols are taken has changed"),
    // What keeps data from being lost.
    ("*", "/**/deletionProtection", Off, High, "one mistake deletes it"),
    ("*", "/**/deletionProtection", On, Info, "it is protected from being deleted"),
    ("*", "/**/deletionProtectionEnabled", Off, High, "one mistake deletes it"),
    ("*", "/**/deletionProtectionEnabled", On, Info, "it is protected from being deleted"),
    ("*", "/**/enableDeletionProtection", Off, High, "one mistake deletes it"),
    ("*", "/**/enableDeletionProtection", On, Info, "it is protected from being deleted"),
    ("*", "/**/terminationProtection", Off, High, "one mistake deletes it"),
    ("*", "/**/enableTerminationProtection", Off, High, "one mistake deletes it"),
    ("*", "/**/disableApiTermination", Off, High, "one mistake deletes it"),
    ("*", "/**/disableApiTermination", On, Info, "it is protected from being deleted"),
    ("*", "/**/versioningConfiguration", Off, High, "what is overwritten or deleted cannot be brought back"),
    ("*", "/**/versioningConfiguration", On, Info, "what is overwritten can be brought back"),
    ("*", "/**/versioning", Off, High, "what is overwritten or deleted cannot be brought back"),
    ("*", "/**/versioning", On, Info, "what is overwritten can be brought back"),
    ("*", "/**/backupRetentionPeriod", Less, High, "backups go back less far"),
    ("*", "/**/backupRetentionPeriod", More, Info, "backups go back further"),
    ("*", "/**/pointInTimeRecoverySpecification", Off, High, "yesterday's data cannot be brought back"),
    ("*", "/**/pointInTimeRecovery", Off, High, "yesterday's data cannot be brought back"),
    ("*", "/**/pointInTimeRecoveryEnabled", Off, High, "yesterday's data cannot be brought back"),
    // What is written down.
    ("AWS::GuardDuty::Detector", "/**/enable", Off, Critical, "threats are no longer detected"),
    ("AWS::Config::ConfigurationRecorder", "/**/recording", Off, Critical, "changes are no longer recorded"),
    ("AWS::CloudTrail::*", "/**/isLogging", Off, Critical, "what is done from now on is no longer written down"),
    ("AWS::CloudTrail::*", "/**/enableLogging", Off, Critical, "what is done from now on is no longer written down"),
    ("AWS::CloudTrail::*", "/**/isMultiRegionTrail", Off, High, "other regions are no longer written down"),
    ("*", "/**/enableLogFileValidation", Off, High, "that a log was tampered with can no longer be shown"),
    ("*", "/**/loggingConfiguration", Off, High, "what is done is no longer written down"),
    ("*", "/**/loggingConfiguration", On, Info, "what is done is written down"),
    ("*", "/**/logging", Off, High, "what is done is no longer written down"),
    ("*", "/**/logging", On, Info, "what is done is written down"),
    ("*", "/**/accessLogs", Off, High, "who came is no longer written down"),
    ("*", "/**/accessLogs", On, Info, "who came is written down"),
    ("*", "/**/enabledCloudwatchLogsExports", Off, High, "what is done is no longer written down"),
    ("*", "/**/retentionInDays", Less, Medium, "logs go back less far"),
    ("*", "/**/retentionInDays", More, Info, "logs go back further"),
    // What runs, and as whom.
    (
        "*",
        "/**/httpTokens",
        Becomes(&["optional"]),
        High,
        "credentials can be read by tricking a program into a request",
    ),
    ("*", "/**/httpTokens", Leaves(&["optional"]), Info, "credentials are better guarded"),
    ("*", "/**/privileged", On, Critical, "the container has the machine"),
    ("*", "/**/allowPrivilegeEscalation", On, High, "a program may become more than it was started as"),
    ("*", "/**/hostNetwork", On, High, "the container has the machine's network"),
    ("*", "/**/hostPid", On, High, "the container sees every process of the machine"),
    ("*", "/**/runAsNonRoot", Off, High, "the container may run as root"),
    ("*", "/**/imageTagMutability", Becomes(&["mutable"]), Medium, "what a tag names may change"),
    // What others found.
    ("*", "/rules", Becomes(&["non_compliant"]), High, "a compliance rule is newly violated"),
    ("*", "/rules", Leaves(&["non_compliant"]), Info, "a compliance rule is no longer violated"),
    // And whatever else names the whole internet.
    ("*", EVERYTHING, Opens, High, "it names the whole internet, and did not"),
];

/// What holds where no row does; there is no reason to give.
const OTHERWISE: (Severity, &str) = (Medium, "");

/// The rows, ready to be asked.
#[derive(Debug)]
pub struct Table {
    rows: Vec<(Glob, Pattern, &'static Row)>,
}

/// The rows that may speak of one type.
#[derive(Clone, Debug)]
pub struct Rows<'t> {
    all: Vec<&'t (Glob, Pattern, &'static Row)>,
    /// Those that speak of one name wherever it stands, by that name: almost all. A path is asked about name by name.
    named: HashMap<String, Vec<usize>>,
    /// The rest.
    others: Vec<usize>,
}

/// How bad, and why.
pub type Grade = (Severity, &'static str);

impl Default for Table {
    fn default() -> Self {
        let row = |row: &'static Row| {
            let pattern = fold(row.1).parse().expect("the paths of the table are patterns; a test reads them all");
            (Glob::new(row.0), pattern, row)
        };
        Self { rows: TABLE.iter().map(row).collect() }
    }
}

impl Table {
    pub fn of_type(&self, kind: &str) -> Rows<'_> {
        let rows: Vec<_> = self.rows.iter().filter(|(glob, ..)| glob.matches(kind)).collect();
        let (mut named, mut others) = (HashMap::<String, Vec<usize>>::new(), Vec::new());
        for (at, (_, _, row)) in rows.iter().enumerate() {
            match row.1.strip_prefix("/**/").filter(|name| !name.contains(['/', '*'])) {
                Some(name) => named.entry(fold(name)).or_default().push(at),
                None => others.push(at),
            }
        }
        Rows { all: rows, named, others }
    }
}

impl Rows<'_> {
    /// A value of a resource that is there on both sides.
    pub fn of_value(&self, leaf: &Leaf<'_>) -> Grade {
        let about = self.about(&leaf.path);
        about.into_iter().find(|row| goes(row.2, leaf.expected, leaf.actual)).map_or(OTHERWISE, |row| (row.3, row.4))
    }

    /// The same for any single value at a path that does not name the whole internet on either side, and allows
    /// everything on neither unless `wide`; `None` where it matters what the value is. Most changes are judged by
    /// this, unread.
    pub fn of_path(&self, path: &Pointer, wide: bool) -> Option<Grade> {
        for row in self.about(path) {
            match row.2 {
                Opens | Closes | Deleted | New => {}
                Widens | Narrows if !wide => {}
                Any => return Some((row.3, row.4)),
                _ => return None,
            }
        }
        Some(OTHERWISE)
    }

    pub fn of_deleted(&self) -> Grade {
        self.first(Deleted)
    }

    pub fn of_new(&self) -> Grade {
        self.first(New)
    }

    fn first(&self, when: When) -> Grade {
        let row = self.all.iter().find(|(_, _, row)| row.2 == when);
        row.map_or(OTHERWISE, |(_, _, row)| (row.3, row.4))
    }

    /// The rows that speak of a place, in their order.
    fn about(&self, path: &Pointer) -> Vec<&'static Row> {
        let folded = Pointer::from_segments(path.segments().iter().map(|segment| fold(segment)));
        let named = folded.segments().iter().filter_map(|name| self.named.get(name)).flatten().copied();
        let others = self.others.iter().copied().filter(|at| self.all[*at].1.covers(&folded));
        let mut numbers: Vec<usize> = named.chain(others).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|at| self.all[at].2).collect()
    }
}

/// A name without what observers write differently.
fn fold(name: &str) -> String {
    name.chars().filter(|char| !matches!(char, '_' | '-')).flat_map(char::to_lowercase).collect()
}

fn goes(when: When, expected: Option<&Value>, actual: Option<&Value>) -> bool {
    match when {
        Any => true,
        Off => is_on(expected) && !is_on(actual),
        On => !is_on(expected) && is_on(actual),
        Opens => any_text(actual, &is_world) && !any_text(expected, &is_world),
        Closes => any_text(expected, &is_world) && !any_text(actual, &is_world),
        Widens => any_text(actual, &is_wide) && !any_text(expected, &is_wide),
        Narrows => any_text(expected, &is_wide) && !any_text(actual, &is_wide),
        Less => number(expected) > number(actual),
        More => number(expected) < number(actual),
        Becomes(words) => is_one_of(actual, words) && !is_one_of(expected, words),
        Leaves(words) => is_one_of(expected, words) && !is_one_of(actual, words),
        Deleted | New => false,
    }
}

fn is_on(value: Option<&Value>) -> bool {
    const OFF: [&str; 8] = ["", "false", "disabled", "suspended", "off", "none", "no", "0"];
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !OFF.contains(&text.to_lowercase().as_str()),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(Value::Number(number)) => number.as_f64() != 0.0,
        Some(Value::Bool(true)) => true,
    }
}

fn is_world(text: &str) -> bool {
    matches!(text.trim(), "0.0.0.0/0" | "::/0")
}

/// Whether a text that has values in it may have the whole internet in it. A yes may be wrong, a no never is.
pub fn may_name_the_internet(text: &str) -> bool {
    text.contains("/0") && (text.contains("0.0.0.0/0") || text.contains("::/0"))
}

/// Whether a text that has values in it may have one that allows everything. A yes may be wrong, a no never is.
pub fn may_allow_everything(text: &str) -> bool {
    memchr::memchr(b'*', text.as_bytes()).is_some() || text.contains("Access")
}

/// Everything, everything of a service, or one of AWS's policies that grant either. An ARN that ends with a star names
/// many things of one kind, which is how most of them are written.
fn is_wide(text: &str) -> bool {
    let policy = text.starts_with("arn:") && text.contains(":policy/");
    match text {
        "*" => true,
        _ if policy => ["/AdministratorAccess", "/PowerUserAccess", "FullAccess"].iter().any(|end| text.ends_with(end)),
        _ if text.starts_with("arn:") => text.ends_with(":root") && text.contains("::*:"),
        _ => text.strip_suffix(":*").is_some_and(|service| !service.is_empty() && !service.contains([' ', '/'])),
    }
}

/// Whether a text in it, however deep, is one; documents that are written as text are looked into.
fn any_text(value: Option<&Value>, is: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Some(Value::String(text)) if is(text) => true,
        Some(Value::String(text)) if text.trim_start().starts_with(['{', '[']) => {
            serde_json::from_str::<Value>(text).is_ok_and(|inside| any_text(Some(&inside), is))
        }
        Some(Value::Array(items)) => items.iter().any(|item| any_text(Some(item), is)),
        // A statement that denies everything opens nothing.
        Some(Value::Object(members)) if members.get("Effect").and_then(Value::as_str) == Some("Deny") => false,
        Some(Value::Object(members)) => members.values().any(|member| any_text(Some(member), is)),
        _ => false,
    }
}

fn is_one_of(value: Option<&Value>, words: &[&str]) -> bool {
    let is = |text: &str| words.contains(&text.to_lowercase().as_str());
    match value {
        Some(Value::String(text)) => is(text),
        Some(Value::Bool(true)) => is("true"),
        _ => false,
    }
}

/// What is not there is no time at all, and less than any.
fn number(value: Option<&Value>) -> f64 {
    match value {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().unwrap_or(-1.0),
        _ => -1.0,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use driftline_core::Change;
    use driftline_core::severity::leaves;

    use super::*;

    /// The worst of a change's values.
    fn grade(kind: &str, path: &str, expected: Option<&str>, actual: Option<&str>) -> Severity {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let change = Change { path: path.parse().unwrap(), expected: expected.map(read), actual: actual.map(read) };
        let table = Table::default();
        let rows = table.of_type(kind);
        leaves(&change).iter().map(|leaf| rows.of_value(leaf).0).max().unwrap()
    }

    #[test]
    fn toward_less_secure_is_higher_and_the_way_back_is_lower() {
        const GROUP: &str = "AWS::EC2::SecurityGroup";
        const POLICY: &str = r#""{\"Statement\":[{\"Effect\":\"Allow\",\"Action\":\"*\",\"Resource\":\"*\"}]}""#;
        const LESS: &str = r#""{\"Statement\":[{\"Effect\":\"Allow\",\"Action\":\"s3:GetObject\"}]}""#;
        for (kind, path, secure, open, there, back) in [
            (GROUP, "/ingress/0/cidr_blocks/0", r#""10.0.0.0/8""#, r#""0.0.0.0/0""#, Critical, Low),
            (GROUP, "/SecurityGroupIngress/0/CidrIpv6", r#""fd00::/8""#, r#""::/0""#, Critical, Low),
            (GROUP, "/SecurityGroupEgress/0/CidrIp", r#""10.0.0.0/8""#, r#""0.0.0.0/0""#, Medium, Low),
            (GROUP, "/ingress/0/from_port", "443", "22", High, High),
            (GROUP, "/ingressRuleCount", "0", "1", High, Low),
            (GROUP, "/tags/ingress", r#""10.0.0.0/8""#, r#""0.0.0.0/0""#, Low, Low),
            ("AWS::S3::Bucket", "/PublicAccessBlockConfiguration/BlockPublicAcls", "true", "false", Critical, Low),
            ("AWS::S3::Bucket", "/public_access_block/0/block_public_acls", "true", "false", Critical, Low),
            ("AWS::S3::Bucket", "/VersioningConfiguration/Status", r#""Enabled""#, r#""Suspended""#, High, Info),
            ("AWS::S3::Bucket", "/acl", r#""private""#, r#""public-read""#, Critical, Low),
            ("AWS::RDS::DBInstance", "/storage_encrypted", "true", "false", High, Low),
            ("AWS::RDS::DBInstance", "/PubliclyAccessible", "false", "true", Critical, Low),
            ("AWS::RDS::DBInstance", "/DeletionProtection", "true", "false", High, Info),
            ("AWS::RDS::DBInstance", "/BackupRetentionPeriod", "7", "0", High, Info),
            ("AWS::IAM::Role", "/PolicyDocument/Statement/0/Action", r#""s3:GetObject""#, r#""*""#, Critical, Low),
            ("AWS::IAM::Role", "/PolicyDocument/Statement/0/Action", r#""s3:GetObject""#, r#""s3:*""#, Critical, Low),
            ("AWS::IAM::Policy", "/policy", LESS, POLICY, Critical, Low),
            ("AWS::SQS::Queue", "/Policy", LESS, POLICY, Critical, Low),
            ("AWS::CloudTrail::Trail", "/isLogging", "true", "false", Critical, Medium),
            ("AWS::Lambda::Function", "/timeout", "3", "30", Medium, Medium),
            ("AWS::EC2::Instance", "/MetadataOptions/HttpTokens", r#""required""#, r#""optional""#, High, Info),
        ] {
            assert_eq!(grade(kind, path, Some(secure), Some(open)), there, "{kind} {path}");
            assert_eq!(grade(kind, path, Some(open), Some(secure)), back, "{kind} {path}, back");
        }
    }

    #[test]
    fn a_part_that_came_or_went_whole_is_judged_by_what_was_in_it() {
        let block = r#"{"BlockPublicAcls":true,"IgnorePublicAcls":true}"#;
        assert_eq!(grade("AWS::S3::Bucket", "/PublicAccessBlockConfiguration", Some(block), None), Critical);
        assert_eq!(grade("AWS::S3::Bucket", "/PublicAccessBlockConfiguration", None, Some(block)), Low);
        let rule = r#"{"CidrIp":"0.0.0.0/0","FromPort":22}"#;
        assert_eq!(grade("AWS::EC2::SecurityGroup", "/SecurityGroupIngress/1", None, Some(rule)), Critical);
        assert_eq!(
            grade("AWS::EC2::SecurityGroup", "/SecurityGroupIngress", None, Some(&format!("[{rule}]"))),
            Critical
        );
        let deny = r#""{\"Statement\":[{\"Effect\":\"Deny\",\"Action\":\"*\",\"Resource\":\"*\"}]}""#;
        assert_eq!(grade("AWS::IAM::Policy", "/policy", Some("\"{}\""), Some(deny)), High, "it denies");
    }

    #[test]
    fn what_is_said_of_a_path_holds_for_every_value_there() {
        let table = Table::default();
        let values =
            [Value::Null, Value::Bool(true), Value::Bool(false), "Enabled".into(), "*".into(), Value::from(3_i64)];
        let mut decided = 0;
        for kind in ["AWS::S3::Bucket", "AWS::EC2::SecurityGroup", "AWS::IAM::Role", "AWS::KMS::Key", "Thing"] {
            let rows = table.of_type(kind);
            for path in
                ["/tags/a", "/timeout", "/Versioning/Status", "/ingress/0/fromPort", "/policy", "/description", "/a/b"]
            {
                let path: Pointer = path.parse().unwrap();
                for wide in [false, true] {
                    let Some(known) = rows.of_path(&path, wide) else { continue };
                    decided += 1;
                    let star = |value: &&Value| wide || value.as_str() != Some("*");
                    for expected in values.iter().filter(star).map(Some).chain([None]) {
                        for actual in values.iter().filter(star).map(Some).chain([None]) {
                            let leaf = Leaf { path: path.clone(), expected, actual };
                            assert_eq!(rows.of_value(&leaf), known, "{kind} {path}");
                        }
                    }
                }
            }
        }
        assert!(decided > 30, "{decided}");
        assert!(
            may_name_the_internet(r#"{"a":"0.0.0.0/0"}"#)
                && may_name_the_internet("::/0")
                && !may_name_the_internet("/a/0")
        );
    }

    #[test]
    fn what_is_looked_up_by_name_is_what_the_patterns_say() {
        let table = Table::default();
        for kind in ["AWS::IAM::Role", "AWS::EC2::SecurityGroup", "AWS::S3::Bucket", "Thing"] {
            let rows = table.of_type(kind);
            for path in [
                "",
                "/tags/policy",
                "/Policies/0/PolicyDocument/Statement/0/Action",
                "/a/encrypted/b/logging",
                "/rules/x",
            ] {
                let path: Pointer = path.parse().unwrap();
                let folded = Pointer::from_segments(path.segments().iter().map(|segment| fold(segment)));
                let said: Vec<_> = rows.all.iter().filter(|row| row.1.covers(&folded)).map(|row| row.2).collect();
                assert_eq!(rows.about(&path), said, "{kind} {path}");
            }
        }
    }

    #[test]
    fn stars_in_arns_are_not_everything() {
        for (text, wide) in [
            ("*", true),
            ("ec2:*", true),
            ("arn:aws:iam::aws:policy/AdministratorAccess", true),
            ("arn:aws:iam::aws:policy/AmazonS3FullAccess", true),
            ("arn:aws:iam::aws:policy/ReadOnlyAccess", false),
            ("arn:aws:logs:eu-west-1:123456789012:log-group:x:*", false),
            ("s3:Get*", false),
            (":*", false),
            ("see note:*", false),
        ] {
            assert!(!wide || may_allow_everything(text), "{text}");
            assert_eq!(is_wide(text), wide, "{text}");
            assert!(!wide || may_allow_everything(text), "{text}");
        }
    }

    #[test]
    fn every_row_can_be_reached_and_says_why() {
        let table = Table::default();
        for (at, (glob, pattern, row)) in table.rows.iter().enumerate() {
            assert!(!row.4.is_empty());
            assert!(row.1.is_empty() == matches!(row.2, Deleted | New), "{row:?}: whole resources have no path");
            let earlier = table.rows[..at].iter().find(|(other, path, earlier)| {
                (other == glob || other.matches_everything())
                    && path == pattern
                    && (earlier.2 == row.2 || earlier.2 == Any)
            });
            assert!(earlier.is_none(), "{row:?} comes after {earlier:?}");
        }
    }

    #[test]
    fn what_is_gone_weighs_by_what_it_was() {
        let table = Table::default();
        for (kind, deleted, new) in [
            ("AWS::S3::Bucket", Critical, Low),
            ("AWS::Lambda::Function", High, Low),
            ("AWS::IAM::User", Medium, High),
            ("Thing", High, Low),
        ] {
            let rows = table.of_type(kind);
            assert_eq!((rows.of_deleted().0, rows.of_new().0), (deleted, new), "{kind}");
        }
    }
}
