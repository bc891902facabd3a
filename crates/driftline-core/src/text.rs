//! Text from outside, made safe to look at.

/// What is not seen but does something: control characters, what turns the direction of reading, what has no width.
pub fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(char, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Names and values come from outside: what would move a terminal's cursor, or hide something, is shown as an escape.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if is_hidden(char) { out.extend(char.escape_unicode()) } else { out.push(char) }
    }
    out
}
