//! XML as a tree, and the tree as JSON where the caller says what is a list.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Map, Value};

/// Deeper than any answer of AWS; a bound, so that no answer can exhaust the stack.
const DEEPEST: usize = 128;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Without its namespace prefix.
    pub name: String,
    pub attributes: Vec<(String, String)>,
    /// All text directly below, ends trimmed where there are children too.
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    /// The root element of a document.
    pub fn parse(bytes: &[u8]) -> Result<Element, String> {
        let mut reader = Reader::from_reader(bytes);
        let mut open: Vec<Element> = Vec::new();
        let mut root = None;
        loop {
            match reader.read_event().map_err(|error| error.to_string())? {
                Event::Start(start) => {
                    if open.len() >= DEEPEST {
                        return Err(format!("it is nested deeper than {DEEPEST} elements"));
                    }
                    open.push(element(&start)?);
                }
                Event::Empty(start) => close(element(&start)?, &mut open, &mut root)?,
                Event::End(_) => {
                    let mut done = open.pop().ok_or("an element ends that never began")?;
                    if !done.children.is_empty() {
                        done.text = done.text.trim().into();
                    }
                    close(done, &mut open, &mut root)?;
                }
                Event::Text(text) => append(&mut open, &text)?,
                Event::CData(text) => append(&mut open, &text)?,
                Event::GeneralRef(name) => {
                    let text = match name.resolve_char_ref().map_err(|error| error.to_string())? {
                        Some(char) => char.to_string(),
                        None => {
                            let name: &str = &name;
                            let known = quick_xml::escape::resolve_predefined_entity(name);
                            known.ok_or_else(|| format!("the entity `&{name};` is not known"))?.to_owned()
                        }
                    };
                    append(&mut open, &text)?;
                }
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
        if let Some(unfinished) = open.last() {
            return Err(format!("it ends within `{}`", unfinished.name));
        }
        root.ok_or_else(|| "it has no element".to_owned())
    }

    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The first element at a path of names such as `DescribeStacksResult/Stacks`.
    pub fn at(&self, path: &str) -> Option<&Element> {
        path.split('/').filter(|name| !name.is_empty()).try_fold(self, |at, name| at.child(name))
    }

    pub fn text_at(&self, path: &str) -> Option<&str> {
        self.at(path).map(|found| found.text.as_str())
    }

    /// Every element at a path; of several elements with one name all are followed.
    pub fn all(&self, path: &str) -> Vec<&Element> {
        let mut level = vec![self];
        for name in path.split('/').filter(|name| !name.is_empty()) {
            level = level.iter().flat_map(|at| at.children.iter().filter(|child| child.name == name)).collect();
        }
        level
    }

    /// The first element of that name anywhere below, or this one.
    pub fn find(&self, name: &str) -> Option<&Element> {
        if self.name == name {
            return Some(self);
        }
        self.children.iter().find_map(|child| child.find(name))
    }

    /// As JSON; every leaf is a text, for XML has no other type.
    ///
    /// XML does not tell a list of one from an object, nor an empty list from an empty text. What holds only
    /// `member` or `item` is a list; every other list has to be named in `lists`: by the name of the element around
    /// its items, or by the name of an item that repeats. A name may be a path's end: `ResourceRecordSet/Values`.
    pub fn to_json(&self, lists: &[&str]) -> Value {
        let mut path = Vec::new();
        self.value(lists, &mut path)
    }

    fn value<'e>(&'e self, lists: &[&str], path: &mut Vec<&'e str>) -> Value {
        path.push(&self.name);
        let wraps = |child: &Element| child.name == "member" || child.name == "item";
        let is_wrapper = !self.children.is_empty() && self.children.iter().all(wraps);
        let named = names(lists, path);
        let result = if is_wrapper || (named && self.wraps_its_items()) {
            let items = self.children.iter().map(|child| child.value(lists, path));
            Value::Array(items.collect())
        } else if self.children.is_empty() {
            Value::String(self.text.clone())
        } else {
            let mut object = Map::new();
            // Not said to be lists, and lists all the same.
            let mut turned: Vec<&str> = Vec::new();
            for child in &self.children {
                let value = child.value(lists, path);
                path.push(&child.name);
                let repeats = names(lists, path) && !child.wraps_its_items();
                path.pop();
                match object.get_mut(&child.name) {
                    Some(Value::Array(items)) if repeats || turned.contains(&child.name.as_str()) => items.push(value),
                    // Losing an item would be worse than an unexpected shape.
                    Some(first) if !repeats => {
                        turned.push(&child.name);
                        let first = std::mem::take(first);
                        object.insert(child.name.clone(), Value::Array(vec![first, value]));
                    }
                    _ => {
                        let value = if repeats { Value::Array(vec![value]) } else { value };
                        object.insert(child.name.clone(), value);
                    }
                }
            }
            Value::Object(object)
        };
        path.pop();
        result
    }

    /// Whether what is below are items of one name, rather than members of an object.
    fn wraps_its_items(&self) -> bool {
        let Some(first) = self.children.first() else {
            return self.text.trim().is_empty();
        };
        self.children.iter().all(|child| child.name == first.name)
    }
}

fn names(lists: &[&str], path: &[&str]) -> bool {
    lists.iter().any(|list| {
        let parts: Vec<&str> = list.split('/').collect();
        path.ends_with(&parts)
    })
}

fn element(start: &quick_xml::events::BytesStart<'_>) -> Result<Element, String> {
    let name = start.local_name().into_inner().to_owned();
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let key = attribute.key.local_name().into_inner().to_owned();
        let raw = attribute.value.clone().into_owned();
        let value = quick_xml::escape::unescape(&raw).map_or_else(|_| raw.clone(), std::borrow::Cow::into_owned);
        attributes.push((key, value));
    }
    Ok(Element { name, attributes, text: String::new(), children: Vec::new() })
}

fn append(open: &mut [Element], text: &str) -> Result<(), String> {
    match open.last_mut() {
        Some(current) => current.text += text,
        None if text.trim().is_empty() => {}
        None => return Err("there is text outside of every element".to_owned()),
    }
    Ok(())
}

fn close(done: Element, open: &mut [Element], root: &mut Option<Element>) -> Result<(), String> {
    match open.last_mut() {
        Some(parent) => parent.children.push(done),
        None if root.is_none() => *root = Some(done),
        None => return Err("it has two root elements".to_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(text: &str) -> Element {
        Element::parse(text.as_bytes()).expect("it is XML")
    }

    #[test]
    fn a_list_of_one_is_a_list() {
        let one = parse("<r><vpcSet><item><vpcId>vpc-1</vpcId></item></vpcSet><tagSet/></r>");
        assert_eq!(one.to_json(&["tagSet"]), json!({"vpcSet": [{"vpcId": "vpc-1"}], "tagSet": []}));
        assert_eq!(one.to_json(&[]), json!({"vpcSet": [{"vpcId": "vpc-1"}], "tagSet": ""}));
    }

    #[test]
    fn lists_with_items_of_another_name_are_named_by_the_caller() {
        let set = parse("<S><ResourceRecords><ResourceRecord><Value>a</Value></ResourceRecord></ResourceRecords></S>");
        assert_eq!(set.to_json(&["S/ResourceRecords"]), json!({"ResourceRecords": [{"Value": "a"}]}));
        let flat = parse("<L><Contents><Key>a</Key><Size>1</Size></Contents></L>");
        assert_eq!(flat.to_json(&["Contents"]), json!({"Contents": [{"Key": "a", "Size": "1"}]}));
        let two = parse(
            "<L><Contents><Key>a</Key><Size>1</Size></Contents><Contents><Key>b</Key><Size>2</Size></Contents></L>",
        );
        assert_eq!(two.to_json(&["Contents"])["Contents"].as_array().map(Vec::len), Some(2));
        assert_eq!(two.to_json(&[])["Contents"].as_array().map(Vec::len), Some(2), "no item is ever lost");
        let many = parse("<L><x/><a>1</a><a>2</a><a>3</a><a>4</a></L>");
        assert_eq!(many.to_json(&[])["a"], json!(["1", "2", "3", "4"]), "nor nested");
    }

    #[test]
    fn text_keeps_its_spaces_references_and_data_sections() {
        let text = parse("<r a='1&amp;2'><v>  a &lt;b&gt; &#65;<![CDATA[<c>]]> </v><n>\n  <x/>\n</n></r>");
        assert_eq!(text.text_at("v"), Some("  a <b> A<c> "));
        assert_eq!(text.at("n").map(|n| n.text.as_str()), Some(""));
        assert_eq!(text.attributes, [("a".to_owned(), "1&2".to_owned())]);
    }

    #[test]
    fn what_is_not_one_whole_document_is_refused() {
        for bad in ["", "<a>", "<a></b>", "no", "<a/><b/>", "<a>&nope;</a>"] {
            assert!(Element::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let deep = "<a>".repeat(DEEPEST + 1) + &"</a>".repeat(DEEPEST + 1);
        assert!(Element::parse(deep.as_bytes()).expect_err("too deep").contains("deeper"));
    }
}
