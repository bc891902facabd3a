//! A property transform may hold several expressions with `$OR` between them, which is no part of JSONata.

/// The expressions of a transform, in the order in which they are tried.
///
/// `$OR` counts only between expressions: not in a text, a quoted name, a regular expression or brackets.
pub fn alternatives(expression: &str) -> Vec<String> {
    let bytes = expression.as_bytes();
    let (mut found, mut start, mut at, mut depth) = (Vec::new(), 0, 0, 0_usize);
    // Whether a value has just ended: then `/` divides. Otherwise it begins a regular expression.
    let mut after_value = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' | b'`' => {
                at = end_of_quoted(bytes, at, byte);
                after_value = true;
                continue;
            }
            b'/' if !after_value => {
                at = end_of_regex(bytes, at);
                after_value = true;
                continue;
            }
            b'(' | b'[' | b'{' => {
                depth += 1;
                after_value = false;
            }
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                after_value = true;
            }
            b'$' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | 0x80.. => {
                let end = end_of_word(bytes, at);
                if depth == 0 && &expression[at..end] == "$OR" {
                    found.push(&expression[start..at]);
                    start = end;
                    after_value = false;
                } else {
                    after_value = !matches!(&expression[at..end], "and" | "or" | "in");
                }
                at = end;
                continue;
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => after_value = false,
        }
        at += 1;
    }
    found.push(&expression[start..]);
    found.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn end_of_word(bytes: &[u8], at: usize) -> usize {
    let goes_on = |byte: &u8| matches!(byte, b'$' | b'_') || byte.is_ascii_alphanumeric() || *byte >= 0x80;
    bytes[at..].iter().position(|byte| !goes_on(byte)).map_or(bytes.len(), |length| at + length)
}

fn end_of_quoted(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut at = at + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if quote != b'`' => at += 1,
            _ if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// As JSONata reads it: a `/` inside brackets does not end the expression; flags may follow.
fn end_of_regex(bytes: &[u8], at: usize) -> usize {
    let (mut at, mut depth) = (at + 1, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'/' if depth == 0 => return end_of_word(bytes, at + 1),
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn or_counts_between_expressions_only() {
        for (expression, parts) in [
            ("Name", &["Name"][..]),
            ("Name $OR $join([Name, \".\"])", &["Name", "$join([Name, \".\"])"]),
            ("a $OR\nb $OR c", &["a", "b", "c"]),
            ("$replace(a, 'x $OR y', '') $OR b", &["$replace(a, 'x $OR y', '')", "b"]),
            (r#""it\" $OR " $OR b"#, &[r#""it\" $OR ""#, "b"]),
            ("`a $OR b` $OR c", &["`a $OR b`", "c"]),
            ("$replace(a, /[ $OR /]/i, '') $OR b", &["$replace(a, /[ $OR /]/i, '')", "b"]),
            (r"a ~> /x\/ $OR y/ $OR b", &[r"a ~> /x\/ $OR y/", "b"]),
            ("a / 2 $OR b / 2", &["a / 2", "b / 2"]),
            ("(a) / 2 $OR b", &["(a) / 2", "b"]),
            ("(a $OR b)", &["(a $OR b)"]),
            ("$ORDER $OR b", &["$ORDER", "b"]),
            ("x in /a $OR b/", &["x in /a $OR b/"]),
            ("\"unclosed $OR b", &["\"unclosed $OR b"]),
        ] {
            assert_eq!(alternatives(expression), parts, "{expression}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_split_without_losing_anything_but_the_words_between(text in r#"[a/$OR"'`()\[\]{} \\]{0,40}|.{0,20}"#) {
            let parts = alternatives(&text);
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            let joined: String = parts.iter().map(|part| squeezed(part)).collect();
            let mut rest = squeezed(&text);
            for part in &parts {
                let at = rest.find(&squeezed(part));
                proptest::prop_assert!(at.is_some(), "{:?}", parts);
                rest.drain(..at.unwrap_or_default() + squeezed(part).len());
            }
            proptest::prop_assert!(joined.len() <= squeezed(&text).len());
        }
    }
}
