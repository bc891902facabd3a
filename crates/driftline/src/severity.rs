//! How much each finding matters: `[[severity]]` of the configuration first, then the built-in table.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use cel::objects::Key;
use cel::{Context, Env, Program, Value as Cel};
use driftline_core::compare::Change;
use driftline_core::rule::Subject;
use driftline_core::severity::{Leaf, Severity, leaves};
use driftline_core::verdict::{DriftKind, Status};
use driftline_core::{KeyRef, Pattern, Pointer};
use driftline_sources::place::account_and_region;
use driftline_sources::severity::{Rows, Table, may_allow_everything, may_name_the_internet};

use crate::error::{CommandError, CommandResult};
use crate::filter::{compile, to_cel};
use crate::report::{Changes, Entry};

/// What a condition can ask about.
const NAMES: [&str; 5] = ["resource", "type", "path", "expected", "actual"];

/// Names that CEL itself has: its types.
const TYPES: [&str; 12] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "list", "map", "null_type", "string", "timestamp", "uint"];

/// An entry of the user's.
#[derive(Debug)]
pub(crate) struct OwnSeverity {
    /// How messages name it, e.g. `driftline.toml [[severity]] 2`.
    pub name: String,
    pub subject: Subject,
    pub path: Option<Pattern>,
    pub when: Option<Condition>,
    pub level: Severity,
    pub reason: String,
}

/// A CEL expression over one value that differs.
pub(crate) struct Condition {
    env: Arc<Env>,
    program: Program,
    text: String,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({})", self.text)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Condition {
    pub(crate) fn new(text: &str) -> CommandResult<Self> {
        let env = Arc::new(Env::stdlib());
        let program = compile(&env, text).map_err(|error| {
            error
                .about(format!("`when = '{text}'` is not a CEL expression"))
                .hint("example: when = 'actual == false && expected == true'")
        })?;
        let mut unknown: Vec<String> = program.references().variables().into_iter().map(ToOwned::to_owned).collect();
        // `list.exists(each, …)` brings a name of its own, and the macros some that no one can write.
        unknown.retain(|name| {
            !NAMES.iter().chain(&TYPES).any(|known| known == name)
                && !is_bound(text, name)
                && !name.starts_with(['@', '_'])
        });
        unknown.sort();
        match unknown.first() {
            None => Ok(Self { env, program, text: text.to_owned() }),
            Some(name) => Err(CommandError::new(format!("`when = '{text}'` asks for `{name}`, which there is not"))
                .hint("the names are resource, type, path, expected and actual")),
        }
    }

    fn holds(&self, about: &About<'_>, leaf: &Leaf<'_>) -> CommandResult<bool> {
        let mut context = Context::with_env(self.env.clone());
        let text = |text: &str| Cel::String(Arc::new(text.to_owned()));
        let (account, region) = account_and_region(about.key.place);
        let resource: HashMap<Key, Cel> = [
            ("id", about.key.id),
            ("type", about.key.kind),
            ("place", about.key.place),
            ("account", account.unwrap_or_default()),
            ("region", region.unwrap_or_default()),
            ("source", about.source),
            ("status", about.status.name()),
            ("kind", about.kind.map_or("", DriftKind::name)),
        ]
        .map(|(name, value)| (name.into(), text(value)))
        .into();
        context.add_variable_from_value("resource", Cel::Map(resource.into()));
        context.add_variable_from_value("type", text(about.key.kind));
        context.add_variable_from_value("path", text(&leaf.path.to_string()));
        context.add_variable_from_value("expected", leaf.expected.map_or(Cel::Null, to_cel));
        context.add_variable_from_value("actual", leaf.actual.map_or(Cel::Null, to_cel));
        let failed = |what: String| {
            CommandError::new(what)
                .about(format!("`when = '{}'` cannot be answered for {} at `{}`", self.text, about.key.id, leaf.path))
                .hint("what is not there is null; ask for the type first: type(actual) == int && actual > 100")
        };
        match self.program.execute(&context) {
            Ok(Cel::Bool(answer)) => Ok(answer),
            Ok(other) => Err(failed(format!("it gives a value of type {}, not true or false", other.type_of()))),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// Whether an expression binds a name itself, as the first argument of a macro.
fn is_bound(text: &str, name: &str) -> bool {
    text.match_indices('(').any(|(at, _)| {
        text[at + 1..].trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(','))
    })
}

/// What is judged.
pub(crate) struct About<'a> {
    pub key: KeyRef<'a>,
    pub source: &'a str,
    pub status: Status,
    pub kind: Option<DriftKind>,
}

/// How bad, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grade<'a> {
    pub level: Severity,
    pub reason: &'a str,
}

/// What is said of one finding: the worst of its changes, and each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rating<'a> {
    pub worst: Grade<'a>,
    pub changes: Vec<Grade<'a>>,
}

/// Grades by path, where a path is enough.
type ByPath = HashMap<String, Option<Grade<'static>>>;

/// The rows for one type, and what is known to hold at a path whatever the values are.
struct Known<'t> {
    rows: Rows<'t>,
    /// Once for values none of which allows everything, and once for others. Nothing where the user's entries have a
    /// say.
    by_path: Option<[ByPath; 2]>,
}

impl Known<'_> {
    /// Rates changes without reading them, where their paths are enough to go by.
    fn rate<'a>(&mut self, changes: Changes<'_>) -> Option<Rating<'a>> {
        let (Changes::Unread(text), Some(by_path)) = (changes, &mut self.by_path) else { return None };
        let parts = plain_changes(text).filter(|_| !may_name_the_internet(text))?;
        let wide = may_allow_everything(text);
        let by_path = &mut by_path[usize::from(wide)];
        let mut worst: Option<Grade<'a>> = None;
        let mut grades = Vec::with_capacity(1);
        for part in parts {
            let path = &part[..part.find('"').filter(|end| !part[..*end].contains('\\'))?];
            let grade = match by_path.get(path) {
                Some(grade) => *grade,
                None => {
                    let found = path.parse().ok().and_then(|pointer: Pointer| self.rows.of_path(&pointer, wide));
                    let grade = found.map(|(level, reason)| Grade { level, reason });
                    by_path.insert(path.to_owned(), grade);
                    grade
                }
            }?;
            if worst.is_none_or(|known| grade.level > known.level) {
                worst = Some(grade);
            }
            grades.push(grade);
        }
        Some(Rating { worst: worst?, changes: grades })
    }
}

/// How a list of changes that the store keeps begins, and how one change in it follows another.
pub(crate) const FIRST: &str = r#"[{"path":""#;
pub(crate) const NEXT: &str = r#"},{"path":""#;

/// The changes of such a list as text, each from its path on, where none has an object or an array in it.
pub(crate) fn plain_changes(text: &str) -> Option<std::str::Split<'_, &'static str>> {
    let parts = text.strip_prefix(FIRST)?.split(NEXT);
    // Inside of a text the quotes of `NEXT` would be escaped, and any other place that has it has a brace more.
    let braces = text.bytes().filter(|byte| *byte == b'{').count();
    let brackets = text.bytes().filter(|byte| *byte == b'[').count();
    (brackets == 1 && braces == parts.clone().count()).then_some(parts)
}

/// Asks the user's entries, then the table.
pub(crate) struct Rater<'a> {
    own: &'a [OwnSeverity],
    table: Table,
}

impl<'a> Rater<'a> {
    pub(crate) fn new(own: &'a [OwnSeverity]) -> Self {
        Self { own, table: Table::default() }
    }

    /// Rates what is drifted or unknown; what is in sync or was not checked has no severity.
    pub(crate) fn rate_all(&self, entries: &mut [Entry<'a>]) -> CommandResult<()> {
        let mut known: BTreeMap<&str, Known<'_>> = BTreeMap::new();
        for entry in entries.iter_mut().filter(|entry| has_severity(entry.status)) {
            let kind = entry.key.kind.as_str();
            let known = known.entry(kind).or_insert_with(|| {
                let asked = self.own.iter().any(|own| own.subject.kind.as_ref().is_none_or(|glob| glob.matches(kind)));
                Known { rows: self.table.of_type(kind), by_path: (!asked).then(Default::default) }
            });
            if entry.kind == Some(DriftKind::Modified) {
                entry.rating = known.rate(entry.changes);
            }
            if entry.rating.is_none() {
                let (key, source) = (entry.key.as_ref(), entry.source);
                let about = About { key, source, status: entry.status, kind: entry.kind };
                entry.rating = self.rate_with(&known.rows, &about, &entry.changes.list())?;
            }
        }
        Ok(())
    }

    /// The same for one.
    pub(crate) fn rate(&self, about: &About<'_>, changes: &[Change]) -> CommandResult<Option<Rating<'a>>> {
        if !has_severity(about.status) {
            return Ok(None);
        }
        self.rate_with(&self.table.of_type(about.key.kind), about, changes)
    }

    fn rate_with(&self, rows: &Rows<'_>, about: &About<'_>, list: &[Change]) -> CommandResult<Option<Rating<'a>>> {
        let mut changes: Vec<Grade<'a>> = Vec::with_capacity(list.len());
        for change in list {
            let mut worst: Option<Grade<'a>> = None;
            for leaf in leaves(change) {
                let grade = self.grade(about, &leaf, || rows.of_value(&leaf))?;
                if worst.is_none_or(|known| grade.level > known.level) {
                    worst = Some(grade);
                }
            }
            // A change that has no value of its own is judged as it stands.
            let whole = Leaf { path: change.path.clone(), expected: None, actual: None };
            changes.push(worst.map_or_else(|| self.grade(about, &whole, || rows.of_value(&whole)), Ok)?);
        }
        // The first of the worst: the order of changes is that of their places.
        let worst = changes.iter().copied().reduce(|a, b| if b.level > a.level { b } else { a });
        let whole = Leaf { path: Pointer::root(), expected: None, actual: None };
        let worst = match (about.status, about.kind) {
            (_, Some(DriftKind::Deleted)) => self.grade(about, &whole, || rows.of_deleted())?,
            (Status::Unknown, _) => self.grade(about, &whole, || rows.of_new())?,
            _ => worst.map_or_else(|| self.grade(about, &whole, || rows.of_value(&whole)), Ok)?,
        };
        Ok(Some(Rating { worst, changes }))
    }

    fn grade(
        &self,
        about: &About<'_>,
        leaf: &Leaf<'_>,
        otherwise: impl FnOnce() -> (Severity, &'static str),
    ) -> CommandResult<Grade<'a>> {
        for own in self.own {
            let named = own.subject.matches(about.key, about.source)
                && own.path.as_ref().is_none_or(|path| path.covers(&leaf.path));
            if !named {
                continue;
            }
            let holds = own.when.as_ref().map_or(Ok(true), |when| when.holds(about, leaf));
            if holds.map_err(|error| error.about(own.name.clone()))? {
                return Ok(Grade { level: own.level, reason: &own.reason });
            }
        }
        let (level, reason) = otherwise();
        Ok(Grade { level, reason })
    }
}

fn has_severity(status: Status) -> bool {
    matches!(status, Status::Drifted | Status::Unknown)
}

/// How many findings have each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts([usize; 5]);

impl Counts {
    pub(crate) fn of(levels: impl Iterator<Item = Severity>) -> Self {
        let mut counts = Self::default();
        for level in levels {
            counts.0[level as usize] += 1;
        }
        counts
    }

    pub(crate) fn get(self, level: Severity) -> usize {
        self.0[level as usize]
    }

    /// Whether something is at least so bad.
    pub(crate) fn reaches(self, level: Severity) -> bool {
        Severity::ALL.into_iter().any(|one| one >= level && self.get(one) > 0)
    }

    /// `1 critical, 3 low`; nothing when there is nothing.
    pub(crate) fn words(self) -> String {
        let some = Severity::ALL.into_iter().filter(|level| self.get(*level) > 0);
        some.map(|level| format!("{} {level}", self.get(level))).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn json(self) -> serde_json::Map<String, serde_json::Value> {
        Severity::ALL.into_iter().map(|level| (level.name().to_owned(), self.get(level).into())).collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use driftline_core::Value;

    #[test]
    fn a_condition_knows_its_names_when_it_is_read() {
        for (text, message) in [
            ("actual == ", "not a CEL expression"),
            ("current == 1", "asks for `current`"),
            ("each == 1", "asks for `each`"),
        ] {
            let error = Condition::new(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        for text in ["true", "actual.exists(each, each == 1)", "resource.source == 'a' && type(actual) == int"] {
            assert!(Condition::new(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_users_entries_go_first_and_the_first_of_them_decides() {
        let own = |path: Option<&str>, when: Option<&str>, level| OwnSeverity {
            name: "f [[severity]] 1".into(),
            subject: Subject::default(),
            path: path.map(|path| path.parse().unwrap()),
            when: when.map(|when| Condition::new(when).unwrap()),
            level,
            reason: "a test says so".into(),
        };
        let entries = [
            own(Some("/timeout"), Some("type(actual) == int && actual > 100"), Severity::Critical),
            own(Some("/timeout"), None, Severity::Info),
        ];
        let rater = Rater::new(&entries);
        let key = KeyRef { kind: "T", place: "p", id: "x" };
        let about = About { key, source: "s", status: Status::Drifted, kind: Some(DriftKind::Modified) };
        let change = |path: &str, actual: i64| Change {
            path: path.parse().unwrap(),
            expected: None,
            actual: Some(Value::from(actual)),
        };
        let rate = |changes: &[Change]| {
            let rating = rater.rate(&about, changes).unwrap().unwrap();
            (rating.worst.level, rating.changes.iter().map(|grade| grade.level).collect::<Vec<_>>())
        };
        assert_eq!(rate(&[change("/timeout", 3)]), (Severity::Info, vec![Severity::Info]));
        assert_eq!(rate(&[change("/timeout", 300)]).0, Severity::Critical);
        let both = rate(&[change("/other", 1), change("/timeout", 3)]);
        assert_eq!(both, (Severity::Medium, vec![Severity::Medium, Severity::Info]));
        let not_checked = About { status: Status::NotChecked, kind: None, ..about };
        assert_eq!(rater.rate(&not_checked, &[]).unwrap(), None);
    }

    #[test]
    fn what_is_rated_unread_is_rated_as_if_it_were_read() {
        let table = Table::default();
        let rater = Rater::new(&[]);
        let mut unread = 0;
        for text in [
            r#"[{"path":"/timeout","op":"replace","baseline":3,"current":30}]"#,
            r#"[{"path":"/a","op":"add","current":"x"},{"path":"/tags/b","op":"remove","baseline":"},{\"path\":\"/c"}]"#,
            r#"[{"path":"/a","op":"add","current":{"x":1}},{"path":"/description","op":"add","current":"y"}]"#,
            r#"[{"path":"/a","op":"add","current":[{"z":1},{"path":"/tags"}]}]"#,
            r#"[{"path":"/cidr","op":"replace","baseline":"10.0.0.0/8","current":"0.0.0.0/0"}]"#,
            r#"[{"path":"/versioning","op":"replace","baseline":"Enabled","current":"Suspended"}]"#,
            r#"[{"path":"/a\"b","op":"add","current":1}]"#,
            r#"[{"path":"/description","op":"add","current":"y"},{"path":"/tags/a","op":"add","current":"b"}]"#,
        ] {
            let changes = Changes::Unread(text);
            let mut known = Known { rows: table.of_type("T"), by_path: Some(Default::default()) };
            let key = KeyRef { kind: "T", place: "p", id: "x" };
            let about = About { key, source: "s", status: Status::Drifted, kind: Some(DriftKind::Modified) };
            let read = rater.rate(&about, &changes.list()).unwrap().unwrap();
            if let Some(rating) = known.rate(changes) {
                assert_eq!(rating, read, "{text}");
                unread += 1;
            }
        }
        assert_eq!(unread, 2);
    }

    #[test]
    fn a_condition_that_cannot_be_answered_is_an_error_and_not_a_no() {
        let entries = [OwnSeverity {
            name: "f [[severity]] 1".into(),
            subject: Subject::default(),
            path: None,
            when: Some(Condition::new("actual > 100").unwrap()),
            level: Severity::Low,
            reason: "a test says so".into(),
        }];
        let key = KeyRef { kind: "T", place: "p", id: "x" };
        let about = About { key, source: "s", status: Status::Drifted, kind: Some(DriftKind::Deleted) };
        let error = Rater::new(&entries).rate(&about, &[]).unwrap_err().to_string();
        assert!(error.contains("[[severity]] 1") && error.contains("cannot be answered for x"), "{error}");
    }
}
