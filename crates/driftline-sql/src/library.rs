//! Named queries: those that ship, and those of a folder. Each is SQL with a heading that says what it tells.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Told;
use crate::parameters::{Kind, Parameter};

/// A query with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub title: String,
    pub tells: String,
    pub parameters: Vec<Parameter>,
    pub sql: String,
    /// The file, if it is not one that ships.
    pub file: Option<String>,
}

/// All queries that have a name. One of a folder goes before one that ships.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    queries: BTreeMap<String, Named>,
    /// Files that cannot be used, by the names that they would have.
    bad: BTreeMap<String, Told>,
}

const SHIPPED: [(&str, &str); 10] = [
    ("account-comparison", include_str!("../queries/account-comparison.sql")),
    ("biggest-resources", include_str!("../queries/biggest-resources.sql")),
    ("changes-by-day", include_str!("../queries/changes-by-day.sql")),
    ("drift-by-tag", include_str!("../queries/drift-by-tag.sql")),
    ("drift-by-type", include_str!("../queries/drift-by-type.sql")),
    ("flapping", include_str!("../queries/flapping.sql")),
    ("mean-time-in-drift", include_str!("../queries/mean-time-in-drift.sql")),
    ("oldest-unresolved", include_str!("../queries/oldest-unresolved.sql")),
    ("stale-sources", include_str!("../queries/stale-sources.sql")),
    ("topology-degrees", include_str!("../queries/topology-degrees.sql")),
];

impl Library {
    /// What ships, and the `.sql` files of a folder.
    pub fn load(folder: Option<&Path>) -> Result<Self, Told> {
        let mut library = Self::default();
        for (name, text) in SHIPPED {
            let query = heading(name, text, None).map_err(|message| Told { message, hints: Vec::new() })?;
            library.queries.insert(name.to_owned(), query);
        }
        let Some(folder) = folder else { return Ok(library) };
        let refused = |error: std::io::Error| Told {
            message: format!("cannot read the folder of queries `{}`: {error}", folder.display()),
            hints: vec!["`[query] folder` of the configuration names it".into()],
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(refused)? {
            files.push(entry.map_err(refused)?.path());
        }
        files.retain(|file| file.extension().is_some_and(|ending| ending == "sql"));
        files.sort();
        for file in files {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let read = || {
                if !is_name(&stem) {
                    return Err("its name is not of a-z, 0-9 and `-`".into());
                }
                let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
                heading(&stem, &text, Some(file.display().to_string()))
            };
            match read() {
                Ok(query) => drop(library.queries.insert(stem, query)),
                Err(reason) => {
                    let told = Told {
                        message: format!("cannot use the query `{}`: {reason}", file.display()),
                        hints: vec!["docs/query.md shows how a named query begins".into()],
                    };
                    // Not even one that ships stands in for it.
                    library.queries.remove(&stem);
                    library.bad.insert(stem, told);
                }
            }
        }
        Ok(library)
    }

    /// The query of a name, or why there is none of it; nothing if nobody has heard of it.
    pub fn get(&self, name: &str) -> Option<Result<&Named, &Told>> {
        self.bad.get(name).map(Err).or_else(|| self.queries.get(name).map(Ok))
    }

    /// Files of the folder that cannot be used, and why.
    pub fn bad(&self) -> impl Iterator<Item = &Told> {
        self.bad.values()
    }

    pub fn all(&self) -> impl Iterator<Item = &Named> {
        self.queries.values()
    }

    /// A name that may have been meant.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let like = |other: &str| strsim::jaro_winkler(name, other);
        let best = self.queries.keys().max_by(|a, b| like(a).total_cmp(&like(b)))?;
        (like(best) > 0.7).then_some(best)
    }
}

/// Whether a word can be the name of a query; SQL cannot be one word of these.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The comment lines that a query begins with: `title`, `tells` (any number of lines), `param NAME: KIND = DEFAULT | about`.
pub fn heading(name: &str, text: &str, file: Option<String>) -> Result<Named, String> {
    let mut query = Named {
        name: name.to_owned(),
        title: String::new(),
        tells: String::new(),
        parameters: Vec::new(),
        sql: text.to_owned(),
        file,
    };
    for line in text.lines().map_while(|line| line.strip_prefix("--")) {
        let Some((word, rest)) = line.trim().split_once(':') else { continue };
        match word.split_once(' ') {
            None if word == "title" => rest.trim().clone_into(&mut query.title),
            None if word == "tells" => {
                let gap = if query.tells.is_empty() { "" } else { " " };
                query.tells = format!("{}{gap}{}", query.tells, rest.trim());
            }
            Some(("param", name)) => query.parameters.push(parameter(name.trim(), rest)?),
            _ => {}
        }
    }
    if query.title.is_empty() {
        return Err("it has no line `-- title: …` at its beginning".into());
    }
    Ok(query)
}

/// The parameters that any SQL text declares, named or not.
pub fn declared(text: &str) -> Result<Vec<Parameter>, String> {
    heading("", &format!("-- title: x\n{text}"), None).map(|query| query.parameters)
}

fn parameter(name: &str, rest: &str) -> Result<Parameter, String> {
    let (form, about) = rest.split_once('|').unwrap_or((rest, ""));
    let (kind, default) = match form.split_once('=') {
        Some((kind, default)) => (kind.trim(), Some(default.trim().to_owned())),
        None => (form.trim(), None),
    };
    let kind = match kind {
        "text" => Kind::Text,
        "number" => Kind::Number,
        "time" => Kind::Time,
        other => {
            return Err(format!(
                "its parameter `{name}` is of the kind `{other}`; there are `text`, `number` and `time`"
            ));
        }
    };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(format!("`{name}` is no name of a parameter; use letters, digits and `_`"));
    }
    Ok(Parameter { name: name.to_owned(), kind, default, about: about.trim().to_owned() })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn every_query_that_ships_says_what_it_tells() {
        for query in Library::load(None).unwrap().all() {
            assert!(is_name(&query.name) && !query.tells.is_empty(), "{}", query.name);
            assert!(
                query.parameters.iter().all(|one| !one.about.is_empty() && one.default.is_some()),
                "{}",
                query.name
            );
        }
    }

    #[test]
    fn a_folder_adds_queries_and_a_bad_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.sql"), "-- title: Mine\n-- param n: number = 3 | how many\nSELECT $n")
            .unwrap();
        std::fs::write(folder.path().join("README.txt"), "not a query").unwrap();
        let library = Library::load(Some(folder.path())).unwrap();
        assert_eq!(library.get("mine").map(|query| query.unwrap().parameters[0].kind), Some(Kind::Number));
        assert_eq!(library.nearest("mime"), Some("mine"));
        for name in ["bad.sql", "flapping.sql", "Not A Name.sql"] {
            std::fs::write(folder.path().join(name), "SELECT 1").unwrap();
        }
        let library = Library::load(Some(folder.path())).unwrap();
        assert!(library.get("mine").unwrap().is_ok() && library.get("stale-sources").unwrap().is_ok());
        for name in ["bad", "flapping"] {
            let told = library.get(name).unwrap().unwrap_err();
            assert!(told.message.contains(name) && told.message.contains("-- title"), "{}", told.message);
        }
        assert_eq!(library.bad().count(), 3);
    }
}
