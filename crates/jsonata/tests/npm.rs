//! Against npm's `jsonata`, the reference: every property transform that AWS publishes, on recorded and on made up
//! inputs. Values, nothing and errors must agree.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(clippy::disallowed_methods, reason = "tests are told by their environment what is installed")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use jsonata::{Expression, Input, Limits, Outcome};
use serde_json::{Map, Value, json};

/// A machine under load may need longer; how long is not what is tested.
fn limits() -> Limits {
    Limits { time: Duration::from_secs(20), ..Limits::default() }
}

/// Says that a test could not run here; on CI it must.
fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "on CI nothing is skipped: {why}");
    let _ = writeln!(std::io::stderr().lock(), "skipped: {why}");
}

/// A file that lies beside the checkout and is not part of it.
fn shared(name: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    let beside = ["../shared/data", "../../shared/data"].map(|folder| root.join(folder).join(name));
    let bytes = beside.iter().find_map(|path| fs::read(path).ok());
    if bytes.is_none() {
        let _ = writeln!(std::io::stderr().lock(), "left out: ../shared/data/{name} is not beside the checkout");
    }
    bytes
}

/// The alternatives of a transform: ` $OR ` between expressions is not JSONata.
fn split_or(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut quote, mut escaped) = (0, None, false);
    for (at, char) in text.char_indices() {
        match quote {
            Some(open) => {
                if char == open && !escaped {
                    quote = None;
                }
                escaped = char == '\\' && !escaped;
            }
            None if matches!(char, '"' | '\'' | '`') => quote = Some(char),
            None if text[at..].starts_with("$OR") => {
                parts.push(text[start..at].trim());
                start = at + 3;
            }
            None => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

#[test]
fn alternatives_are_split_outside_of_quotes_only() {
    assert_eq!(split_or("a $OR $f(\"x $OR \\\" y\") $OR '$OR'"), ["a", "$f(\"x $OR \\\" y\")", "'$OR'"]);
}

struct Transform {
    name: String,
    /// Without `properties`.
    path: Vec<String>,
    alternatives: Vec<String>,
}

fn transforms() -> Option<BTreeMap<(String, String), Transform>> {
    let all: Value = serde_json::from_slice(&shared("property_transforms.json")?).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = all["transforms"].as_array().unwrap().iter().map(|row| {
        let (kind, path) = (text(&row["typeName"]), text(&row["path"]));
        let segments = path.trim_start_matches('/').split('/').skip(1).map(str::to_owned).collect();
        let alternatives = split_or(row["expression"].as_str().unwrap()).into_iter().map(str::to_owned).collect();
        let name = format!("{kind} {path}");
        ((kind, path), Transform { name, path: segments, alternatives })
    });
    Some(rows.collect())
}

/// The containing object, and the whole.
fn documents(path: &[String], value: Option<&Value>, siblings: Option<&Value>) -> (Value, Value) {
    let (leaf, above) = path.split_last().unwrap();
    let mut parent: Map<String, Value> = siblings.and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(value) = value {
        parent.insert(leaf.clone(), value.clone());
    }
    let parent = Value::Object(parent);
    let root = above.iter().rev().fold(parent.clone(), |inner, name| match name.as_str() {
        "*" => json!([inner]),
        _ => json!({ name: inner }),
    });
    (parent, root)
}

/// In the form of the recorded vectors.
fn ours(expression: &Expression, document: &Value) -> Value {
    let limits = limits();
    match expression.evaluate(&Input::new(document, &limits).unwrap(), &[], &limits) {
        Ok(Outcome::Value(value)) => json!({ "value": value }),
        Ok(Outcome::Undefined) => json!({"undefined": true}),
        Err(error) => json!({"error": error.code.unwrap_or(error.message)}),
    }
}

/// Numbers by value, the rest as it is; of errors only that there is one, unless both have a code of the language.
fn agree(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| agree(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.contains_key("error") && other.contains_key("error")
                || one.len() == other.len()
                    && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| agree(value, other)))
        }
        _ => one == other,
    }
}

#[test]
fn every_transform_of_aws_gives_what_the_reference_gave() {
    let (Some(transforms), Some(packed)) = (transforms(), shared("property_transform_vectors.json.zst")) else {
        return;
    };
    let vectors: Value = serde_json::from_slice(&zstd::decode_all(&*packed).unwrap()).unwrap();
    let (mut compared, mut same_code, mut errors) = (0, 0, 0);
    let mut wrong = Vec::new();
    for vector in vectors["vectors"].as_array().unwrap() {
        let text = |name: &str| vector[name].as_str().unwrap().to_owned();
        let transform = &transforms[&(text("t"), text("p"))];
        let (parent, root) = documents(&transform.path, vector["in"].get("value"), vector.get("sib"));
        let recorded = vector["alts"].as_array().unwrap();
        assert_eq!(recorded.len(), transform.alternatives.len(), "{}", transform.name);
        for (alternative, recorded) in transform.alternatives.iter().zip(recorded) {
            let expression = Expression::parse(alternative, &limits()).unwrap();
            for (context, expected) in recorded.as_object().unwrap() {
                let document = if context == "parent" { &parent } else { &root };
                let got = ours(&expression, document);
                compared += 1;
                errors += usize::from(expected.get("error").is_some());
                same_code += usize::from(expected.get("error").is_some() && expected == &got);
                if !agree(&got, expected) {
                    wrong.push(format!("{} `{alternative}` on {document}: {got}, not {expected}", transform.name));
                }
            }
        }
    }
    assert!(compared > 8_000, "only {compared} were compared");
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
    let _ = writeln!(std::io::stderr().lock(), "{compared} agree; {same_code} of {errors} errors have the same code");
}

/// Numbers that are the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn value(&mut self, known: &[Value]) -> Value {
        match self.roll(12) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!(self.roll(70_000)),
            3 => json!(-0.25 * f64::from(u32::try_from(self.roll(99)).unwrap())),
            4 => json!([]),
            5 => Value::Array((0..self.roll(3)).map(|_| self.value(known)).collect()),
            6 => json!({ "Name": self.value(known), "Owner": "CUSTOM_LAMBDA" }),
            7 => json!(self.address()),
            _ => match &known[self.roll(known.len())] {
                Value::String(text) => json!(self.mutated(text)),
                other => other.clone(),
            },
        }
    }

    fn address(&mut self) -> String {
        let hex: Vec<String> = (0..8).map(|_| format!("{:x}", self.roll(0x1_0000) >> self.roll(17))).collect();
        match self.roll(2) {
            0 => format!("{}/{}", hex.join(":"), self.roll(129)),
            _ => {
                format!("{}.{}.{}.{}/{}", self.roll(256), self.roll(256), self.roll(256), self.roll(256), self.roll(33))
            }
        }
    }

    fn mutated(&mut self, text: &str) -> String {
        const PIECES: [&str; 14] =
            [":", "/", ".", "-", "_", "$", "\n", " ", "0", "Z", "é", "😀", "ſ", "autoScalingGroupName/"];
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..=self.roll(3) {
            let at = self.roll(chars.len() + 1);
            match self.roll(4) {
                0 if at < chars.len() => drop(chars.remove(at)),
                1 => chars.truncate(at),
                2 if at < chars.len() => chars[at] = chars[at].to_ascii_uppercase(),
                _ => drop(chars.splice(at..at, PIECES[self.roll(PIECES.len())].chars())),
            }
        }
        chars.into_iter().collect()
    }
}

/// Expressions that AWS does not publish today and may tomorrow: every function that is replaced or checked here.
const MORE: [&str; 43] = [
    "($f := $reduce(?, function($a, $b){$a & $b}); $f([Name, Name]))",
    "($f := $contains(?, /a/); $f($string(Name)))",
    "$map([[{'a': Name}, {'b': 1}]], $merge)",
    "$replace(Name, /(a)|(b)/, '[$1$2$0$$$3]')",
    "$replace(Name, /[aeiou]/i, function($m){$uppercase($m.match)})",
    "$replace(Name, 'a', 'bb', 2)",
    "$replace(Name, /a/, 'bb', 1)",
    "$replace(Name, /x?/, 'y')",
    "Name.$replace(/a/, 'b')",
    "Name ~> $replace(/[0-9]+/, '#')",
    "$match(Name, /([a-z])([0-9])?/)",
    "$match(Name, /[a-z]/, 2).index",
    "$match(Name, /é|😀/).(index & match)",
    "($re := /o+/; $match(Name, $re).match)",
    "Name.$match(/(:)/)[0].groups",
    "$contains(Name, /^arn:/)",
    "Name ~> $contains(/\\d/)",
    "Name.$contains(/[.]$/) ? 1 : 2",
    "$split(Name, /[:\\/]/)",
    "$split(Name, /[:\\/]/, 2)",
    "Name ~> $split(/-/)",
    "Name.$split(/ /)",
    "$split(Name, '') ~> $distinct() ~> $join()",
    "$distinct([Name, Name, [Name], [Name], {'a': 1, 'b': Name}, {'b': Name, 'a': 1}, 0, -0])",
    "$pad(Name, 12, '*')",
    "$pad(Name, -12)",
    "Name.$pad(20, 'ab')",
    "$map([Name, 'x'], $pad(?, 5, '.'))",
    "$map([1, 5, 10], $string)",
    "[1, 4, 2021].$formatInteger('I')",
    "$map([1, 12], $formatInteger(?, 'w'))",
    "$formatInteger(7, Name = 'x' ? 'i' : 'a')",
    "$join([Name, 'b'], Name)",
    "$join($split(Name, ':'), '::')",
    "Name & [Name, {'a': Name}] & 1.50 & null",
    "$string({'a': [Name, 1], 'b': null}, true)",
    "$base64decode($base64encode($replace($string(Name), /[^ -~]/, '')))",
    "($f := function($n){$n <= 0 ? Name : $f($n - 1) & '.'}; $f(5))",
    "$reduce($split(Name, ''), function($a, $b){$b & $a})",
    "{'a': Name, 'b': [Name, [Name]]}.(a & b)",
    "$zip([Name, 1], [2, [3]])",
    "$append(Name, [Name]) ~> $count()",
    "$merge([{'a': Name}, {'b': [Name]}]) ~> |$|{'c': a}, 'a'|",
];

#[test]
fn made_up_inputs_give_what_the_reference_gives() {
    let Some(folder) = std::env::var_os("DRIFTLINE_TEST_JSONATA") else {
        skip("DRIFTLINE_TEST_JSONATA names no folder with npm's jsonata installed; scripts/test makes one");
        return;
    };
    let mut dice = Dice(2_026);
    let known: Vec<Value> = [
        "MixedCase.Name",
        "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab",
        "alias/aws/s3",
        "example.com.",
        "8.0.35",
        "10.0.17.5/20",
        "2001:db8:1234:1a00:0:0:0:0/56",
        "arn:aws:lambda:us-east-1:123456789012:function:my-fn:PROD",
        "tcp",
        "123456789012:function:my-fn:7",
        "03:07:00.25Z",
        "t2.micro",
        "a\n",
        "",
        "-1",
    ]
    .iter()
    .map(|text| json!(text))
    .chain([
        json!({"SourceDetails": [{"MessageType": "ConfigurationItemChangeNotification"}], "Owner": "CUSTOM_LAMBDA"}),
    ])
    .collect();
    let mut cases: Vec<(String, Value)> = Vec::new();
    for expression in MORE {
        for _ in 0..25 {
            cases.push((expression.to_owned(), json!({ "Name": dice.value(&known) })));
        }
    }
    for transform in transforms().into_iter().flatten().map(|(_, transform)| transform) {
        for alternative in &transform.alternatives {
            for _ in 0..16 {
                let siblings = json!({"IpProtocol": dice.value(&known), "Engine": "aurora-mysql", "InstanceId": dice.value(&known)});
                let (parent, root) = documents(&transform.path, Some(&dice.value(&known)), Some(&siblings));
                cases.push((alternative.clone(), if dice.roll(2) == 0 { parent } else { root }));
            }
        }
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/npm/answer.mjs");
    let mut node = Command::new("node");
    node.arg(script).env("DRIFTLINE_TEST_JSONATA", folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().unwrap();
    let mut pipe = node.stdin.take().unwrap();
    let lines: String =
        cases.iter().map(|(expr, data)| json!({"expr": expr, "data": data}).to_string() + "\n").collect();
    let feeder = std::thread::spawn(move || pipe.write_all(lines.as_bytes()));
    let mut wrong = Vec::new();
    let mut answers = BufReader::new(node.stdout.take().unwrap()).lines();
    for (expression, document) in &cases {
        let expected: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        let parsed = Expression::parse(expression, &limits()).unwrap();
        let got = ours(&parsed, document);
        if !agree(&got, &expected) {
            wrong.push(format!("`{expression}` on {document}: {got}, not {expected}"));
        }
    }
    feeder.join().unwrap().unwrap();
    assert!(node.wait().unwrap().success());
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let _ = writeln!(std::io::stderr().lock(), "{} agree with the reference", cases.len());
}
