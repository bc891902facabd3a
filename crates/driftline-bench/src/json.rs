//! JSON by templates: `$` stands for the next part. Parts are written as they are, so a text must need no escapes.

/// What can stand for a `$`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    Number(u64),
    /// Lower-case hexadecimal, this many digits.
    Hex(u64, u32),
}

impl<'a> From<&'a str> for Part<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Part<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Part<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Part<'_> {
    fn from(truth: bool) -> Self {
        Self::Text(if truth { "true" } else { "false" })
    }
}

/// Appends `template` to `out`, with every `$` replaced by the next of `parts`.
pub(crate) fn fill_parts(out: &mut String, template: &str, parts: &[Part<'_>]) {
    let mut parts = parts.iter();
    let mut pieces = template.split('$');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        match *parts.next().expect("a part for every `$`") {
            Part::Text(text) => out.push_str(text),
            Part::Number(number) => push_number(out, number),
            Part::Hex(number, digits) => push_hex(out, number, digits),
        }
        out.push_str(piece);
    }
    debug_assert!(parts.next().is_none(), "a `$` for every part");
}

/// `fill_parts(out, template, &[…])` with the parts written plainly.
macro_rules! fill {
    ($out:expr, $template:expr $(, $part:expr)* $(,)?) => {
        $crate::json::fill_parts($out, $template, &[$($crate::json::Part::from($part)),*])
    };
}
pub(crate) use fill;

fn push_number(out: &mut String, number: u64) {
    if number >= 10 {
        push_number(out, number / 10);
    }
    out.push(digit(number % 10));
}

fn push_hex(out: &mut String, number: u64, digits: u32) {
    for at in (0..digits).rev() {
        out.push(digit((number >> (4 * at)) & 0xF));
    }
}

fn digit(value: u64) -> char {
    u32::try_from(value).ok().and_then(|value| char::from_digit(value, 16)).expect("below 16")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_take_the_place_of_dollars() {
        let mut out = String::from("> ");
        fill!(&mut out, r#"{"a":"$","b":$,"c":$,"d":"$"}"#, "x", 1024_u64, true, Part::Hex(0xBEEF, 6));
        assert_eq!(out, r#"> {"a":"x","b":1024,"c":true,"d":"00beef"}"#);
    }
}
