//! The canonical encoding of properties, and the content id made from it.
//!
//! The encoding is ours, tagged and versioned, because the id of a value must not change when a JSON library
//! changes how it prints. Version 1, each value beginning with its tag:
//!
//! | value | bytes |
//! |---|---|
//! | null, false, true | `n`, `f`, `t` |
//! | integer >= 0 | `p`, the value as LEB128 |
//! | integer < 0 | `m`, `-1 - value` as LEB128 |
//! | other number | `d`, the IEEE double, 8 bytes big endian |
//! | string | `s`, its length in bytes as LEB128, UTF-8 |
//! | array | `[`, the items, `]` |
//! | object | `{`, for each member in byte order of its name: length, name, value; `}` |
//!
//! A name's length is never written with tag bytes in front, so `}` (0x7d) could also begin a name of 125
//! bytes; each member is therefore led by `:`.

use std::fmt;
use std::sync::OnceLock;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use sha2::{Digest, Sha256};

use crate::value::{MAX_DEPTH, Number, Value, too_deep, write_json_string};

/// What a value is, in 16 bytes: the front half of a SHA-256 over its canonical encoding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub [u8; 16]);

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentId({self})")
    }
}

/// Exactly one SHA-256 block, so that its effect is computed once per process and not once per resource.
const DOMAIN: &[u8; 64] =
    b"driftline/properties/v1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

fn content_hasher() -> Sha256 {
    static START: OnceLock<Sha256> = OnceLock::new();
    START.get_or_init(|| Sha256::new_with_prefix(DOMAIN)).clone()
}

/// Properties in their canonical encoding.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Properties(Box<[u8]>);

/// Borrowed [`Properties`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PropertiesRef<'a>(&'a [u8]);

impl Properties {
    pub fn new(value: &Value) -> Self {
        let mut out = Vec::new();
        encode(value, &mut out);
        Self(out.into())
    }

    pub fn as_ref(&self) -> PropertiesRef<'_> {
        PropertiesRef(&self.0)
    }

    pub fn id(&self) -> ContentId {
        self.as_ref().id()
    }

    pub fn to_value(&self) -> Value {
        self.as_ref().to_value()
    }

    pub fn to_json(&self) -> String {
        self.as_ref().to_json()
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// Shows the id and not the content: properties are never logged.
impl fmt::Debug for PropertiesRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Properties({})", self.id())
    }
}

impl From<PropertiesRef<'_>> for Properties {
    fn from(properties: PropertiesRef<'_>) -> Self {
        Self(properties.0.into())
    }
}

impl<'a> PropertiesRef<'a> {
    /// A member of the outermost object that is a text, without decoding the rest.
    pub fn text(self, wanted: &str) -> Option<&'a str> {
        let mut decoder = Decoder(self.0);
        if decoder.byte() != b'{' {
            return None;
        }
        while decoder.byte() == b':' {
            let name = decoder.text();
            if name == wanted {
                return (decoder.byte() == b's').then(|| decoder.text());
            }
            decoder.skip();
        }
        None
    }
}

impl PropertiesRef<'_> {
    pub fn id(self) -> ContentId {
        let digest = content_hasher().chain_update(self.0).finalize();
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        ContentId(id)
    }

    pub fn to_value(self) -> Value {
        Decoder(self.0).value()
    }

    /// Compact JSON text, members in key order; the same text as [`Value::to_json`].
    pub fn to_json(self) -> String {
        let mut text = String::with_capacity(self.0.len() + self.0.len() / 4);
        Decoder(self.0).json(&mut text);
        text
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0
    }

    pub fn is_object(self) -> bool {
        self.0.first() == Some(&b'{')
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    #[expect(clippy::cast_possible_truncation, reason = "the low seven bits are what is written")]
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).expect("below 0x80 after the loop"));
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn encode_number(number: Number, out: &mut Vec<u8>) {
    if let Some(value) = number.as_integer() {
        let (tag, magnitude) = if value < 0 { (b'm', -1 - value) } else { (b'p', value) };
        out.push(tag);
        varint(u64::try_from(magnitude).expect("a Number's integers fit 64 bits"), out);
    } else {
        out.push(b'd');
        out.extend_from_slice(&number.as_f64().to_bits().to_be_bytes());
    }
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(b'n'),
        Value::Bool(false) => out.push(b'f'),
        Value::Bool(true) => out.push(b't'),
        Value::Number(number) => encode_number(*number, out),
        Value::String(text) => {
            out.push(b's');
            encode_bytes(text.as_bytes(), out);
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                encode(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (name, member) in members {
                out.push(b':');
                encode_bytes(name.as_bytes(), out);
                encode(member, out);
            }
            out.push(b'}');
        }
    }
}

/// Reads what [`encode`] or an [`Encoder`] wrote; only they can make the bytes it is given.
struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().expect("a canonical encoding is whole");
        self.0 = rest;
        *first
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    fn text(&mut self) -> &'a str {
        let length = usize::try_from(self.varint()).expect("lengths were lengths of slices in memory");
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        std::str::from_utf8(text).expect("only `str`s are encoded")
    }

    fn number(&mut self, tag: u8) -> Number {
        match tag {
            b'p' => Number::from(self.varint()),
            b'm' => Number::from(-1 - i64::try_from(self.varint()).expect("negative integers fit i64")),
            _ => {
                let (bits, rest) = self.0.split_first_chunk().expect("a double has 8 bytes");
                self.0 = rest;
                Number::from_f64(f64::from_bits(u64::from_be_bytes(*bits))).expect("only finite doubles are encoded")
            }
        }
    }

    fn skip(&mut self) {
        match self.byte() {
            b's' => drop(self.text()),
            b'p' | b'm' => drop(self.varint()),
            b'd' => self.0 = &self.0[8..],
            b'[' => {
                while self.0[0] != b']' {
                    self.skip();
                }
                self.byte();
            }
            b'{' => {
                while self.byte() == b':' {
                    self.text();
                    self.skip();
                }
            }
            _ => {}
        }
    }

    fn value(&mut self) -> Value {
        match self.byte() {
            b'n' => Value::Null,
            b'f' => Value::Bool(false),
            b't' => Value::Bool(true),
            b's' => Value::String(self.text().to_owned()),
            b'[' => {
                let mut items = Vec::new();
                while self.0[0] != b']' {
                    items.push(self.value());
                }
                self.byte();
                Value::Array(items)
            }
            b'{' => {
                let mut members = std::collections::BTreeMap::new();
                while self.byte() == b':' {
                    let name = self.text().to_owned();
                    members.insert(name, self.value());
                }
                Value::Object(members)
            }
            tag => Value::Number(self.number(tag)),
        }
    }

    fn json(&mut self, out: &mut String) {
        use fmt::Write;
        match self.byte() {
            b'n' => out.push_str("null"),
            b'f' => out.push_str("false"),
            b't' => out.push_str("true"),
            b's' => write_json_string(self.text(), out),
            b'[' => {
                out.push('[');
                let start = out.len();
                while self.0[0] != b']' {
                    if out.len() > start {
                        out.push(',');
                    }
                    self.json(out);
                }
                self.byte();
                out.push(']');
            }
            b'{' => {
                out.push('{');
                let start = out.len();
                while self.byte() == b':' {
                    if out.len() > start {
                        out.push(',');
                    }
                    write_json_string(self.text(), out);
                    out.push(':');
                    self.json(out);
                }
                out.push('}');
            }
            tag => write!(out, "{}", self.number(tag)).expect("writing to a String does not fail"),
        }
    }
}

/// Encodes straight from a parser, without a [`Value`] in between, reusing its buffers: parsing a million
/// resources is then as fast as the parser.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    out: Vec<u8>,
    members: Vec<Member>,
    scratch: Vec<u8>,
}

/// One member of the objects being written: where it starts, where its name is, where it ends.
#[derive(Clone, Copy, Debug)]
struct Member {
    start: usize,
    name: (usize, usize),
    end: usize,
}

impl Encoder {
    pub fn new() -> Self {
        Self::default()
    }

    /// A seed that reads one JSON value into this encoder, replacing what it held.
    pub fn seed(&mut self) -> impl for<'de> DeserializeSeed<'de, Value = ()> + '_ {
        self.out.clear();
        self.members.clear();
        EncodeSeed { encoder: self, depth: MAX_DEPTH }
    }

    pub fn encode_value(&mut self, value: &Value) {
        self.out.clear();
        encode(value, &mut self.out);
    }

    /// What was read last.
    pub fn properties(&self) -> PropertiesRef<'_> {
        PropertiesRef(&self.out)
    }

    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Forgets what was read, so that a value left out cannot be mistaken for the one before it.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Puts the members written since `first` into name order. Returns a name that stands twice.
    fn sort_members(&mut self, first: usize) -> Result<(), String> {
        let members = &mut self.members[first..];
        let out = &self.out;
        members.sort_unstable_by(|a, b| out[a.name.0..a.name.1].cmp(&out[b.name.0..b.name.1]));
        for pair in members.windows(2) {
            if out[pair[0].name.0..pair[0].name.1] == out[pair[1].name.0..pair[1].name.1] {
                let name = String::from_utf8_lossy(&out[pair[0].name.0..pair[0].name.1]);
                return Err(format!("the member `{name}` appears twice in one object"));
            }
        }
        let start = members.iter().map(|member| member.start).min().expect("sorting needs two members");
        self.scratch.clear();
        for member in members.iter() {
            self.scratch.extend_from_slice(&out[member.start..member.end]);
        }
        self.out[start..].copy_from_slice(&self.scratch);
        Ok(())
    }
}

struct EncodeSeed<'a> {
    encoder: &'a mut Encoder,
    depth: usize,
}

impl EncodeSeed<'_> {
    fn deeper<E: de::Error>(&mut self) -> Result<EncodeSeed<'_>, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(EncodeSeed { encoder: self.encoder, depth }),
            None => Err(E::custom(too_deep())),
        }
    }
}

impl<'de> DeserializeSeed<'de> for EncodeSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EncodeSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.encoder.out.push(b'n');
        Ok(())
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.encoder.out.push(if value { b't' } else { b'f' });
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        encode_number(value.into(), &mut self.encoder.out);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        encode_number(value.into(), &mut self.encoder.out);
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number that is not finite"))?;
        encode_number(number, &mut self.encoder.out);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.encoder.out.push(b's');
        encode_bytes(text.as_bytes(), &mut self.encoder.out);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        self.encoder.out.push(b'[');
        while seq.next_element_seed(self.deeper()?)?.is_some() {}
        self.encoder.out.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        // Checked before the first member, so that an empty object at the limit is treated like any other.
        let _deeper = self.deeper::<A::Error>()?;
        self.encoder.out.push(b'{');
        let first = self.encoder.members.len();
        let mut sorted = true;
        loop {
            let start = self.encoder.out.len();
            let Some(name) = map.next_key_seed(NameSeed(self.encoder))? else { break };
            let out = &self.encoder.out;
            if let Some(previous) = self.encoder.members[first..].last() {
                sorted &= out[previous.name.0..previous.name.1] < out[name.0..name.1];
            }
            self.encoder.members.push(Member { start, name, end: start });
            map.next_value_seed(self.deeper()?)?;
            let end = self.encoder.out.len();
            self.encoder.members.last_mut().expect("pushed above, and nested objects pop their own").end = end;
        }
        if !sorted {
            self.encoder.sort_members(first).map_err(de::Error::custom)?;
        }
        self.encoder.members.truncate(first);
        self.encoder.out.push(b'}');
        Ok(())
    }
}

/// Writes a member's lead and name; returns where the name's bytes are.
struct NameSeed<'a>(&'a mut Encoder);

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = (usize, usize);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(usize, usize), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = (usize, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<(usize, usize), E> {
        let out = &mut self.0.out;
        out.push(b':');
        encode_bytes(name.as_bytes(), out);
        Ok((out.len() - name.len(), out.len()))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn streamed(text: &str) -> Result<Properties, serde_json::Error> {
        let mut encoder = Encoder::new();
        encoder.seed().deserialize(&mut serde_json::Deserializer::from_str(text))?;
        Ok(encoder.properties().into())
    }

    /// Accepting a new value here re-addresses every store ever written: every resource looks changed once.
    /// That is a new format version, never a test to update.
    #[test]
    fn a_text_is_found_without_decoding_what_is_around_it() {
        let value: Value = serde_json::from_str(
            r#"{"a":{"id":"inner","n":[1,-2,3.5,"x",{"y":null}]},"b":"second","c":7,"id":"outer","z":true}"#,
        )
        .unwrap();
        let properties = Properties::new(&value);
        for (name, expected) in [("id", Some("outer")), ("b", Some("second")), ("c", None), ("a", None), ("x", None)] {
            assert_eq!(properties.as_ref().text(name), expected, "{name}");
        }
        assert_eq!(Properties::new(&Value::Null).as_ref().text("id"), None);
    }

    #[test]
    fn the_content_id_of_a_known_value_is_pinned() {
        let golden = value(
            r#"{"b":[1,-1,0.5,"é",null,true,false,{},[]],"a":{"":"x","z":18446744073709551615},"c":-9223372036854775808,"d":1e300}"#,
        );
        assert_eq!(Properties::new(&golden).id().to_string(), "8b3faa90dc0dfd1186076781b1c762cc");
        assert_eq!(Properties::new(&value("{}")).id().to_string(), "51de09986d04422031b7c0bc8012f067");
    }

    #[test]
    fn the_order_of_members_and_the_form_of_numbers_do_not_matter() {
        let a = streamed(r#"{"b":{"y":1,"x":30.0},"a":[1,2]}"#).unwrap();
        let b = streamed(r#"{"a":[1,2],"b":{"x":30,"y":1e0}}"#).unwrap();
        assert_eq!(a, b);
        assert_ne!(a.id(), streamed(r#"{"a":[2,1],"b":{"x":30,"y":1}}"#).unwrap().id());
    }

    #[test]
    fn a_member_given_twice_is_refused_wherever_it_stands() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"a":1,"b":2,"a":3}"#, r#"[{"x":{"k":1,"k":1}}]"#] {
            assert!(streamed(text).unwrap_err().to_string().contains("appears twice"), "{text}");
        }
    }

    #[test]
    fn nesting_beyond_the_limit_is_refused_and_not_a_crash() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let mut parser = serde_json::Deserializer::from_str(&deep);
        assert!(Encoder::new().seed().deserialize(&mut parser).is_err());
    }

    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-3i64..4).prop_map(Value::from),
            any::<f64>().prop_filter_map("finite", |double| Number::from_f64(double).map(Value::Number)),
            "[a-c]{0,2}".prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map("[a-d]{0,2}", inner, 0..4).prop_map(Value::Object),
            ]
        })
    }

    proptest! {
        #[test]
        fn ids_are_equal_if_and_only_if_values_are(a in any_value(), b in any_value()) {
            let (left, right) = (Properties::new(&a), Properties::new(&b));
            prop_assert_eq!(a == b, left == right);
            prop_assert_eq!(a == b, left.id() == right.id());
        }

        #[test]
        fn decoding_gives_back_what_was_encoded(a in any_value()) {
            let properties = Properties::new(&a);
            prop_assert_eq!(&properties.to_value(), &a);
            prop_assert_eq!(properties.to_json(), a.to_json());
            prop_assert_eq!(streamed(&a.to_json()).unwrap(), properties);
        }
    }
}
