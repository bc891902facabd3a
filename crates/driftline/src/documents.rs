//! Where documents come from: files, patterns of files, standard input, the web.

use std::io::Read;
use std::path::PathBuf;

use crate::error::{CommandError, CommandResult};

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Text {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Reads every document that is named, each once, in the order of their names.
pub(crate) fn read_all(named: &[String]) -> CommandResult<Vec<Text>> {
    let mut names: Vec<String> = Vec::new();
    for name in named {
        names.extend(expand(name)?);
    }
    names.sort();
    names.dedup();
    names.into_iter().map(read).collect()
}

/// A pattern stands for the files it matches; that there is none is an error, because it is never what was meant.
fn expand(name: &str) -> CommandResult<Vec<String>> {
    if name == "-" || name.contains("://") || !name.contains(['*', '?', '[']) || PathBuf::from(name).exists() {
        return Ok(vec![name.to_owned()]);
    }
    let bad = |error: &dyn std::fmt::Display| CommandError::new(format!("`{name}` is not a usable pattern: {error}"));
    let mut found = Vec::new();
    for path in glob::glob(name).map_err(|error| bad(&error))? {
        let path = path.map_err(|error| bad(&error))?;
        if path.is_file() {
            let text = path
                .to_str()
                .ok_or_else(|| CommandError::new(format!("the name of `{}` is not UTF-8", path.display())))?;
            found.push(text.to_owned());
        }
    }
    match found.is_empty() {
        true => Err(CommandError::new(format!("no file matches `{name}`"))),
        false => Ok(found),
    }
}

fn read(name: String) -> CommandResult<Text> {
    let bytes = match name.as_str() {
        "-" => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        }
        path => std::fs::read(path),
    };
    match bytes {
        Ok(bytes) => Ok(Text { name: if name == "-" { "standard input".into() } else { name }, bytes }),
        Err(error) => Err(CommandError::because(format!("cannot read `{name}`"), &error)),
    }
}
