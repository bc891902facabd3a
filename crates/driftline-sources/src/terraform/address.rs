//! Addresses as `terraform state list` prints them, and the names of providers.

use driftline_core::Value;

/// The address of one instance of a resource. `None` when the index is neither a number nor a text.
pub(super) fn address(module: Option<&str>, kind: &str, name: &str, index: Option<&Value>) -> Option<String> {
    let mut text = String::new();
    if let Some(module) = module.filter(|module| !module.is_empty()) {
        text.push_str(module);
        text.push('.');
    }
    text.push_str(kind);
    text.push('.');
    text.push_str(name);
    match index {
        None | Some(Value::Null) => {}
        Some(Value::Number(number)) => text.push_str(&format!("[{number}]")),
        Some(Value::String(key)) => {
            text.push('[');
            quote(key, &mut text);
            text.push(']');
        }
        Some(_) => return None,
    }
    Some(text)
}

/// Writes a key the way HCL does: JSON's escapes, and the two signs that begin a template doubled.
fn quote(key: &str, out: &mut String) {
    out.push('"');
    for (at, char) in key.char_indices() {
        match char {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '$' | '%' => {
                out.push(char);
                if key[at + 1..].starts_with('{') {
                    out.push(char);
                }
            }
            char if is_printable(char) => out.push(char),
            char if u32::from(char) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => out.push_str(&format!("\\U{:08x}", u32::from(char))),
        }
    }
    out.push('"');
}

/// What Go calls printable. The standard library knows, but tells only by how it writes a text; a letter goes first
/// because it treats a mark that joins onto nothing as a special case.
fn is_printable(char: char) -> bool {
    match char.is_ascii() {
        true => char == ' ' || char.is_ascii_graphic(),
        false => !format!("a{char}").escape_debug().any(|written| written == '\\'),
    }
}

/// The part of an address that names the module, if it is in one.
pub(super) fn module(address: &str) -> Option<&str> {
    let mut end = 0;
    while let Some(rest) = address[end..].trim_start_matches('.').strip_prefix("module.") {
        let start = address.len() - rest.len();
        end = start + name_and_index(rest)?;
    }
    (end > 0).then(|| &address[..end])
}

/// How long a name with an index after it is; dots and brackets inside quotes do not count.
fn name_and_index(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'.' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether an address is of something that is only read.
pub(super) fn is_data(address: &str) -> bool {
    let within = module(address).map_or(address, |module| address[module.len()..].trim_start_matches('.'));
    within.starts_with("data.")
}

/// The address of a provider's source, and the alias of its configuration.
pub(super) fn provider(text: &str) -> (&str, Option<&str>) {
    if let Some((_, rest)) = text.split_once("provider[\"")
        && let Some((source, rest)) = rest.split_once("\"]")
    {
        return (source, rest.strip_prefix('.'));
    }
    // Before 0.13 providers had no source address, only a name.
    let lead = text.rfind("provider.").filter(|&at| at == 0 || text[..at].ends_with('.'));
    match lead {
        None => (text, None),
        Some(at) => match text[at + "provider.".len()..].split_once('.') {
            Some((name, alias)) => (name, Some(alias)),
            None => (&text[at + "provider.".len()..], None),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_what_terraform_prints() {
        // Left as Terraform 1.11.4 printed it, right what the state file has.
        for (printed, module, name, index) in [
            ("terraform_data.one", None, "one", None),
            ("terraform_data.c[1]", None, "c", Some(Value::from(1_i64))),
            ("terraform_data.f[\"a\"]", None, "f", Some(Value::from("a"))),
            (r#"terraform_data.f["b\"q\\\n$${x}"]"#, None, "f", Some(Value::from("b\"q\\\n${x}"))),
            ("terraform_data.f[\"é<&>\"]", None, "f", Some(Value::from("é<&>"))),
            (r#"terraform_data.f["%%{b} $ %\t\u0001"]"#, None, "f", Some(Value::from("%{b} $ %\t\u{1}"))),
            ("module.a[0].module.b.terraform_data.c[0]", Some("module.a[0].module.b"), "c", Some(Value::from(0_i64))),
        ] {
            assert_eq!(address(module, "terraform_data", name, index.as_ref()).as_deref(), Some(printed));
            assert_eq!(super::module(printed), module);
        }
        assert_eq!(address(None, "a", "b", Some(&Value::from(true))), None);
    }

    #[test]
    fn dots_and_brackets_in_a_key_do_not_end_a_module() {
        for (address, expected) in [
            (r#"module.net["a.b\"].c"].module.x.aws_vpc.main[0]"#, Some(r#"module.net["a.b\"].c"].module.x"#)),
            ("aws_vpc.module", None),
            ("module.", None),
            ("module.é", None),
            ("", None),
        ] {
            assert_eq!(module(address), expected, "{address}");
        }
        assert!(is_data("module.a[\"x.y\"].data.aws_region.here"));
        assert!(!is_data("module.data.aws_vpc.data"));
    }

    #[test]
    fn a_provider_is_its_source_and_its_alias() {
        for (text, expected) in [
            (r#"provider["registry.terraform.io/hashicorp/aws"]"#, ("registry.terraform.io/hashicorp/aws", None)),
            (r#"module.m.provider["example.com/a/b"].west"#, ("example.com/a/b", Some("west"))),
            ("provider.aws", ("aws", None)),
            ("module.m.provider.aws.west", ("aws", Some("west"))),
            ("registry.terraform.io/hashicorp/aws", ("registry.terraform.io/hashicorp/aws", None)),
            ("", ("", None)),
        ] {
            assert_eq!(provider(text), expected, "{text}");
        }
    }
}
