//! Text from outside, shown as what it is.

/// Whether a character cannot be seen or changes how others are read: control characters, those that turn the
/// direction of reading, and those without a width.
pub fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(char, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with everything hidden as an escape, `\u{202e}`.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if is_hidden(char) { out.extend(char.escape_unicode()) } else { out.push(char) }
    }
    out
}

/// At most so many characters; says how many were left out.
pub fn short(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most).collect();
    format!("{kept}… ({} more)", count - most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        for (text, shown) in [
            ("plain, ü, 日本", "plain, ü, 日本"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\r\n\0b", "a\\u{d}\\u{a}\\u{0}b"),
            ("a\u{200b}\u{feff}\u{e0041}", "a\\u{200b}\\u{feff}\\u{e0041}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn what_was_left_out_is_counted_in_characters() {
        assert_eq!(short("äöü", 3), "äöü");
        assert_eq!(short("äöüß", 3), "äöü… (1 more)");
    }
}
