//! The facts of one type as text: first what is said of the type, then its properties as a tree.
//!
//! ```text
//! :id /QueueUrl
//! :also /Arn
//! :unreadable
//! :transform /Name "cfn-lint 1.58.0" "$lowercase(Name)"
//! :corrected /Rules +unordered "the priority decides"
//! Rules u
//!  *
//!   Priority i =1
//! ```
//! A tree because paths share their beginnings; one property a line because then two tables can be compared with
//! `diff`. The letters are those of [`Mark::ALL`].

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::pointer::PointerError;
use driftline_core::{Pattern, Pointer, Value};
use thiserror::Error;

use super::{Correction, Facts, Mark, Transform, alternatives};

#[derive(Debug, Error)]
#[error("line {line} of {name}: {reason}")]
pub struct RecordError {
    pub name: String,
    pub line: usize,
    pub reason: String,
}

#[derive(Default)]
struct Place {
    letters: BTreeSet<usize>,
    default: Option<Value>,
}

/// The text of a type's facts. Equal facts give equal text, in whatever order they were found.
pub fn write(facts: &Facts) -> String {
    let mut text = String::new();
    let pointers = |pointers: &[Pointer]| pointers.iter().map(|it| format!(" {it}")).collect::<String>();
    let quoted = |text: &str| Value::from(text).to_json();
    text.push_str(&format!(":id{}\n", pointers(&facts.primary)));
    for identifier in &facts.additional {
        text.push_str(&format!(":also{}\n", pointers(identifier)));
    }
    if !facts.readable {
        text.push_str(":unreadable\n");
    }
    let mut lines: Vec<String> = Vec::new();
    for Transform { path, expression, source, .. } in &facts.transforms {
        lines.push(format!(":transform {path} {} {}\n", quoted(source), quoted(expression)));
    }
    for Correction { path, what, reason } in &facts.corrections {
        lines.push(format!(":corrected {path} {} {}\n", quoted(what), quoted(reason)));
    }
    lines.sort_unstable();
    text.extend(lines);

    let mut places: BTreeMap<Vec<String>, Place> = BTreeMap::new();
    let segments = |path: &Pattern| path.to_string().split('/').skip(1).map(ToOwned::to_owned).collect::<Vec<String>>();
    for (mark, path) in facts.marks() {
        let number = Mark::ALL.iter().position(|(known, _, _)| *known == mark).expect("the table has every mark");
        places.entry(segments(path)).or_default().letters.insert(number);
    }
    for (path, value) in &facts.defaults {
        places.entry(segments(path)).or_default().default = Some(value.clone());
    }
    let mut above: &[String] = &[];
    for (path, place) in &places {
        let shared = path.iter().zip(above).take_while(|(a, b)| a == b).count();
        for (depth, segment) in path.iter().enumerate().skip(shared) {
            text.push_str(&" ".repeat(depth));
            text.push_str(segment);
            if depth + 1 == path.len() {
                if !place.letters.is_empty() {
                    text.push(' ');
                    text.extend(place.letters.iter().map(|&number| Mark::ALL[number].1));
                }
                if let Some(value) = &place.default {
                    text.push_str(" =");
                    text.push_str(&value.to_json());
                }
            }
            text.push('\n');
        }
        above = path;
    }
    text
}

/// Reads what [`write`] wrote.
pub fn parse(name: &str, text: &str) -> Result<Facts, RecordError> {
    let mut facts = Facts { name: name.to_owned(), readable: true, ..Facts::default() };
    let mut path = Path::default();
    for (at, line) in text.lines().enumerate() {
        let read = match line.strip_prefix(':') {
            Some(line) => parse_saying(line, &mut facts),
            None => parse_property(line, &mut path, &mut facts),
        };
        read.map_err(|reason| RecordError { name: name.to_owned(), line: at + 1, reason })?;
    }
    Ok(facts)
}

fn parse_saying(line: &str, facts: &mut Facts) -> Result<(), String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let wrong = |error: PointerError| error.to_string();
    let pointers = || rest.split_whitespace().map(str::parse).collect::<Result<Vec<Pointer>, _>>().map_err(wrong);
    let path_and_texts = || {
        let (path, texts) = rest.split_once(' ').ok_or("a path and two texts were expected")?;
        let mut texts = serde_json::Deserializer::from_str(texts).into_iter::<String>();
        let mut text = || texts.next().and_then(Result::ok).ok_or("two texts were expected");
        Ok::<_, String>((path.parse::<Pattern>().map_err(wrong)?, text()?, text()?))
    };
    match word {
        "id" => facts.primary = pointers()?,
        "also" => facts.additional.push(pointers()?),
        "unreadable" => facts.readable = false,
        "transform" => {
            let (path, source, expression) = path_and_texts()?;
            facts.transforms.push(Transform { path, alternatives: alternatives(&expression), expression, source });
        }
        "corrected" => {
            let (path, what, reason) = path_and_texts()?;
            facts.corrections.push(Correction { path, what, reason });
        }
        _ => return Err(format!("`:{word}` means nothing here")),
    }
    Ok(())
}

/// The path of the property that is being read, and where each of its steps ends.
#[derive(Default)]
struct Path {
    text: String,
    ends: Vec<usize>,
}

fn parse_property(line: &str, path: &mut Path, facts: &mut Facts) -> Result<(), String> {
    let rest = line.trim_start_matches(' ');
    let depth = line.len() - rest.len();
    if depth > path.ends.len() {
        return Err("it is indented too far".to_owned());
    }
    let (step, said) = rest.split_once(' ').map_or((rest, None), |(step, said)| (step, Some(said)));
    if step.is_empty() {
        return Err("it is empty".to_owned());
    }
    path.ends.truncate(depth);
    path.text.truncate(path.ends.last().copied().unwrap_or_default());
    path.text.push('/');
    path.text.push_str(step);
    path.ends.push(path.text.len());
    let Some(said) = said else { return Ok(()) };
    let pattern: Pattern = path.text.parse().map_err(|error: PointerError| error.to_string())?;
    let (letters, default) = match said.split_once('=') {
        Some((letters, default)) => (letters.trim_end(), Some(default)),
        None => (said, None),
    };
    for letter in letters.chars() {
        let known = Mark::ALL.iter().find(|(_, known, _)| *known == letter);
        let (mark, _, _) = known.ok_or_else(|| format!("`{letter}` marks nothing"))?;
        facts.mark(*mark, pattern.clone());
    }
    if let Some(default) = default {
        let value = serde_json::from_str(default).map_err(|error| format!("the default is not JSON: {error}"))?;
        facts.defaults.push((pattern, value));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const TEXT: &str = "\
:id /A /B
:also /C
:unreadable
:corrected /R \"+unordered\" \"why\"
:transform /N \"here\" \"a $OR\\n b\"
B r
R uq
 *
  Priority i =1
  Text =\"a = b\"
 ** w
Z j
";

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let facts = parse("T", TEXT).unwrap();
        assert_eq!(write(&facts), TEXT);
        assert!(!facts.readable);
        assert_eq!(facts.transforms[0].alternatives, ["a", "b"]);
        let defaults: Vec<String> =
            facts.defaults.iter().map(|(path, value)| format!("{path}={}", value.to_json())).collect();
        assert_eq!(defaults, ["/R/*/Priority=1", "/R/*/Text=\"a = b\""]);
        assert_eq!(facts.write_only[0].to_string(), "/R/**");
    }

    #[test]
    fn a_record_in_another_form_is_refused_with_its_line() {
        for (text, line) in
            [(":who", 1), ("A\n   B", 2), ("A r\nB !", 2), ("A =x", 1), (":transform /A \"b\"", 1), ("\n", 1)]
        {
            assert_eq!(parse("T", text).unwrap_err().line, line, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_read_is_written_in_one_form(text in r#"((:(id|also|unreadable|transform|corrected)|[ ]{0,2}[A-B*]{1,2})[ ]?(/A|"x"|[rwuqtij]{0,3}|=1| ){0,4}\n){0,8}|.{0,40}"#) {
            if let Ok(facts) = parse("T", &text) {
                let written = write(&facts);
                let again = parse("T", &written);
                proptest::prop_assert_eq!(again.map(|facts| write(&facts)).ok(), Some(written));
            }
        }
    }
}
