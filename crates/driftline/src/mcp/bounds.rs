//! Answers of bounded size, and without what is sealed.

use driftline_core::seal::SEALED;
use serde_json::{Map, Value as Json};

/// An answer as text has no more bytes than this, or little more.
const LARGEST: usize = 60_000;
/// How long a text may be.
const TEXT: usize = 400;

/// What is sealed shows that there is something, and not even its digest.
pub(crate) fn unsealed(value: &mut Json) {
    match value {
        Json::Object(members) if members.len() == 1 && members.contains_key(SEALED) => *value = "(sealed)".into(),
        Json::Object(members) => members.values_mut().for_each(unsealed),
        Json::Array(items) => items.iter_mut().for_each(unsealed),
        // A document inside a text, as columns of a query are.
        Json::String(text) if text.contains(SEALED) => {
            if let Ok(mut inside) = serde_json::from_str::<Json>(text)
                && (inside.is_object() || inside.is_array())
            {
                unsealed(&mut inside);
                *text = inside.to_string();
            }
        }
        _ => {}
    }
}

/// Cuts lists, texts and objects until the whole is short enough, and says what was left out.
pub(crate) fn bounded(answer: &Json, remarks: &[String]) -> Json {
    let mut most = 200;
    loop {
        let mut cuts = Vec::new();
        let mut cut = shortened(answer.clone(), "", most, &mut cuts);
        let more = cuts.len().saturating_sub(20);
        cuts.truncate(20);
        if more > 0 {
            cuts.push(format!("and {more} more places"));
        }
        if let Some(members) = cut.as_object_mut() {
            let words = |list: &[String]| Json::from(list.iter().map(|text| short(text)).collect::<Vec<_>>());
            if !cuts.is_empty() {
                members.insert("truncated".into(), words(&cuts));
            }
            if !remarks.is_empty() {
                members.insert("warnings".into(), words(&remarks[..remarks.len().min(20)]));
            }
        }
        if most <= 2 || cut.to_string().len() <= LARGEST {
            return cut;
        }
        most /= 2;
    }
}

fn shortened(value: Json, path: &str, most: usize, cuts: &mut Vec<String>) -> Json {
    match value {
        Json::String(text) => short(&text).into(),
        Json::Array(items) => {
            if items.len() > most {
                cuts.push(format!("{path}: {most} of {} shown", items.len()));
            }
            let kept = items.into_iter().take(most).enumerate();
            kept.map(|(at, item)| shortened(item, &format!("{path}/{at}"), most, cuts)).collect()
        }
        Json::Object(members) => {
            // The names at the top are the answer's own, and few.
            let room = if path.is_empty() { usize::MAX } else { most.max(20) };
            if members.len() > room {
                cuts.push(format!("{path}: {room} of {} members shown", members.len()));
            }
            let kept: Map<String, Json> = members
                .into_iter()
                .take(room)
                .map(|(name, member)| {
                    let beneath = format!("{path}/{name}");
                    (short(&name), shortened(member, &beneath, most, cuts))
                })
                .collect();
            kept.into()
        }
        other => other,
    }
}

fn short(text: &str) -> String {
    crate::output::short(text, TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_short_whatever_is_in_it_and_says_what_it_left_out() {
        let wide: Vec<Json> = (0..5_000).map(|at| json!({"id": at, "text": "x".repeat(5_000)})).collect();
        let deep = json!({"resources": [{"changes": wide.clone(), "more": {"a": wide}}], "total": 5_000});
        let found = bounded(&deep, &["stale".to_owned()]);
        assert!(found.to_string().len() < 2 * LARGEST, "{}", found.to_string().len());
        assert_eq!((&found["total"], &found["warnings"][0]), (&json!(5_000), &json!("stale")));
        assert!(found["truncated"][0].as_str().is_some_and(|text| text.contains("of 5000 shown")), "{found}");
    }

    #[test]
    fn a_short_answer_is_as_it_was() {
        let answer = json!({"resources": [{"a": 1, "b": [true, null]}]});
        assert_eq!(bounded(&answer, &[]), answer);
    }

    #[test]
    fn not_even_the_digest_of_a_secret_is_told() {
        let mut answer = json!({"a": [{"$sealed": "0123"}], "b": {"$sealed": 1, "c": 2}});
        unsealed(&mut answer);
        assert_eq!(answer, json!({"a": ["(sealed)"], "b": {"$sealed": 1, "c": 2}}));
        let mut answer = json!({"properties": r#"{"a":{"$sealed":"0123"},"b":1}"#, "id": "$sealed"});
        unsealed(&mut answer);
        assert_eq!(answer, json!({"properties": r#"{"a":"(sealed)","b":1}"#, "id": "$sealed"}));
    }
}
