//! Which accounts are meant: by id, in a file, of the organization, or beneath one of its units.

use std::collections::{BTreeMap, BTreeSet};

use driftline_sources::organization::{ACTIVE, is_account, is_parent};
use serde::Deserialize;

use crate::error::{CommandError, CommandResult};

/// Accounts as they were chosen; who is in an organization is not known yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub ids: BTreeSet<String>,
    /// Every account of the organization.
    pub organization: bool,
    /// Every account beneath these roots or units.
    pub parents: BTreeSet<String>,
    /// What a file calls some of them.
    pub names: BTreeMap<String, String>,
}

impl Chosen {
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.parents.is_empty() && !self.organization
    }

    fn take(&mut self, word: &str) -> bool {
        match word {
            "org" | "organization" => self.organization = true,
            _ if is_account(word) => drop(self.ids.insert(word.to_owned())),
            _ if is_parent(word) => drop(self.parents.insert(word.to_owned())),
            _ => return false,
        }
        true
    }
}

/// Reads what was said: ids, `org`, roots and units, and `@FILE` for a file of them.
pub(crate) fn chosen(words: &[String]) -> CommandResult<Chosen> {
    let mut chosen = Chosen::default();
    for word in words {
        let word = word.trim();
        if let Some(path) = word.strip_prefix('@') {
            let about = |error: CommandError| error.about(format!("cannot read the accounts in `{path}`"));
            let text = std::fs::read_to_string(path).map_err(|error| about(CommandError::new(error.to_string())))?;
            read(&text, &mut chosen).map_err(about)?;
        } else if !chosen.take(word) {
            return Err(CommandError::new(format!("`{word}` names no account"))
                .hint("an account is twelve digits, `org` the whole organization, ou-ab12-cd34ef56 a unit of it, and @FILE a file of these"));
        }
    }
    Ok(chosen)
}

/// A file of accounts alone, for what is expected.
pub(crate) fn from_file(path: &std::path::Path) -> CommandResult<Chosen> {
    chosen(&[format!("@{}", path.display())])
}

/// As `aws organizations list-accounts` writes an account.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Account {
    id: String,
    name: Option<String>,
    state: Option<String>,
    status: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Listed {
    Id(String),
    Account(Account),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    List(Vec<Listed>),
    #[serde(rename_all = "PascalCase")]
    Answer {
        accounts: Vec<Listed>,
    },
}

/// JSON as AWS's own tools print it, or a line each: the account, and behind it whatever one calls it.
fn read(text: &str, chosen: &mut Chosen) -> CommandResult<()> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let before = chosen.clone();
    if text.trim_start().starts_with(['{', '[']) {
        let file: File = serde_json::from_str(text).map_err(|_| {
            CommandError::new("it is neither a list of ids nor what `aws organizations list-accounts` prints")
        })?;
        let (File::List(listed) | File::Answer { accounts: listed }) = file;
        for one in listed {
            let (id, name) = match one {
                Listed::Id(id) => (id, None),
                Listed::Account(Account { state, status, .. })
                    if state.as_ref().or(status.as_ref()).is_some_and(|state| state != ACTIVE) =>
                {
                    continue;
                }
                Listed::Account(account) => (account.id, account.name),
            };
            if !is_account(&id) {
                return Err(CommandError::new(format!("`{id}` is not the id of an account, which has twelve digits")));
            }
            chosen.names.extend(name.map(|name| (id.clone(), name)));
            chosen.ids.insert(id);
        }
    } else {
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let (word, name) = line.split_once([' ', '\t', ',', ';']).unwrap_or((line, ""));
            if word.is_empty() {
                continue;
            }
            if !chosen.take(word) {
                return Err(CommandError::new(format!("line {}: `{word}` names no account", at + 1))
                    .hint("each line begins with twelve digits, `org`, or a unit like ou-ab12-cd34ef56"));
            }
            let name = name.trim_matches([' ', '\t', ',', ';']);
            if is_account(word) && !name.is_empty() {
                chosen.names.insert(word.to_owned(), name.to_owned());
            }
        }
    }
    // A file that was cut off or is of something else would quietly be a fleet of none.
    if *chosen == before && before.is_empty() {
        return Err(CommandError::new("it names no account that is active"));
    }
    Ok(())
}

/// One of several machines that share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// From 1.
    pub number: u64,
    pub of: u64,
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Shard {
    /// `2/5`, or `job/5` where `index` tells which one this is, counted from 0.
    pub(crate) fn parse(text: &str, index: Option<&str>) -> CommandResult<Self> {
        let wrong = |why: &str| {
            CommandError::new(format!("`{text}` is not a share of the work: {why}"))
                .hint("write it like 2/5 for the second of five, or job/5 in an Indexed Job of Kubernetes or an array job of AWS Batch")
        };
        let (number, of) = text.split_once('/').ok_or_else(|| wrong("it has no `/`"))?;
        let of: u64 = of.parse().map_err(|_| wrong("what is behind the `/` is no number"))?;
        let number: u64 = match (number, index) {
            ("job", Some(index)) => {
                let index: u64 = index.parse().map_err(|_| wrong(&format!("the job's index is `{index}`")))?;
                index + 1
            }
            ("job", None) => {
                return Err(wrong("neither JOB_COMPLETION_INDEX nor AWS_BATCH_JOB_ARRAY_INDEX is set"));
            }
            (number, _) => number.parse().map_err(|_| wrong("what is before the `/` is no number"))?,
        };
        if number == 0 || number > of {
            return Err(wrong(&format!("there is no {number} of {of}")));
        }
        Ok(Self { number, of })
    }

    /// Whether an account is this one's to look at. It depends on nothing but the id, so that shards never have to
    /// agree on who is in the fleet.
    #[cfg_attr(not(any(feature = "aws", test)), expect(dead_code, reason = "only what asks AWS acts on it"))]
    pub(crate) fn has(self, account: &str) -> bool {
        account.parse::<u64>().unwrap_or_default() % self.of == self.number - 1
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn accounts_are_ids_units_or_the_whole() {
        let chosen = chosen(&words(&["111111111111", " 222222222222", "org", "ou-ab12-cd34ef56"])).unwrap();
        assert_eq!(chosen.ids.len(), 2);
        assert!(chosen.organization && chosen.parents.contains("ou-ab12-cd34ef56"));
        for wrong in ["prod", "12345", "", "ou-x", "@/nowhere/at/all"] {
            assert!(super::chosen(&words(&[wrong])).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_is_lines_or_what_aws_prints() {
        let read = |text: &str| {
            let mut chosen = Chosen::default();
            super::read(text, &mut chosen).map(|()| chosen)
        };
        let lines = read("# ours\n111111111111 shop\n\n222222222222,\tpay; later # who\r\nou-ab12-cd34ef56\n").unwrap();
        assert_eq!(lines.ids.iter().collect::<Vec<_>>(), ["111111111111", "222222222222"]);
        assert_eq!(lines.names["111111111111"], "shop");
        assert_eq!(lines.names["222222222222"], "pay; later");
        assert_eq!(lines.parents.len(), 1);
        let answer = r#"{"Accounts": [{"Id": "111111111111", "Name": "shop", "Status": "ACTIVE", "Email": "a@b"},
            {"Id": "222222222222", "Name": "old", "State": "CLOSED", "Status": "ACTIVE"}, {"Id": "333333333333"}]}"#;
        let answer = read(answer).unwrap();
        assert_eq!(answer.ids.iter().collect::<Vec<_>>(), ["111111111111", "333333333333"]);
        assert_eq!(answer.names.len(), 1);
        assert_eq!(read("[\"111111111111\"]").unwrap().ids.len(), 1);
        for wrong in ["", "# nobody\n", "shop 111111111111", "{}", "[]", "[\"1\"]", "{\"Accounts\": []}", "@other"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_account_is_in_exactly_one_share() {
        let shards: Vec<Shard> = (1..=5).map(|number| Shard::parse(&format!("{number}/5"), None).unwrap()).collect();
        for account in 0..1000_u64 {
            let account = format!("{:012}", account * 7_919_000_003 % 1_000_000_000_000);
            assert_eq!(shards.iter().filter(|shard| shard.has(&account)).count(), 1, "{account}");
        }
        assert_eq!(Shard::parse("job/5", Some("0")).unwrap(), shards[0]);
        assert_eq!(Shard::parse("job/5", Some("4")).unwrap(), shards[4]);
        for (text, index) in [("0/5", None), ("6/5", None), ("5", None), ("a/5", None), ("1/0", None), ("1/x", None)] {
            assert!(Shard::parse(text, index).is_err(), "{text}");
        }
        assert!(Shard::parse("job/5", None).is_err() && Shard::parse("job/5", Some("5")).is_err());
    }
}
