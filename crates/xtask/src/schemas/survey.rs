//! One schema, walked through: every place in a thing of that type, and what the schema says of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use driftline_core::{Pattern, Pointer, Value};
use driftline_sources::schema::{Correction, Facts, Mark, Scalar, Transform, alternatives};
use serde_json::{Map, Value as Json};

use super::Result;

/// The steps to a place; `*` is any element of an array or value of a map, `**` any number of steps.
pub(super) type Steps = Vec<String>;

#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) marks: BTreeSet<Mark>,
    pub(super) default: Option<Value>,
    pub(super) is_array: bool,
    pub(super) is_text: bool,
}

#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) places: BTreeMap<Steps, Place>,
    /// Where something begins that has its like beneath it.
    recursions: BTreeSet<Steps>,
    pub(super) transforms: Vec<Transform>,
    pub(super) corrections: Vec<Correction>,
    primary: Vec<Pointer>,
    additional: Vec<Vec<Pointer>>,
    readable: bool,
}

const LISTS: [(&str, Mark); 5] = [
    ("readOnlyProperties", Mark::ReadOnly),
    ("writeOnlyProperties", Mark::WriteOnly),
    ("createOnlyProperties", Mark::CreateOnly),
    ("conditionalCreateOnlyProperties", Mark::ConditionalCreateOnly),
    ("deprecatedProperties", Mark::Deprecated),
];

impl Survey {
    pub(super) fn of(schema: &Json, package: &str) -> Result<Self> {
        let mut survey = Self { readable: schema.pointer("/handlers/read").is_some(), ..Self::default() };
        survey.visit(schema, &[schema], &mut Steps::new(), &mut Vec::new())?;
        for (list, mark) in LISTS {
            for pointer in texts(schema.get(list))? {
                let steps = survey.steps(&pointer)?;
                survey.places.entry(steps).or_default().marks.insert(mark);
            }
        }
        for name in texts(schema.get("required"))? {
            survey.places.entry(vec![name]).or_default().marks.insert(Mark::Required);
        }
        survey.find_tags(schema);
        let named = |list: Option<&Json>| {
            texts(list)?
                .iter()
                .map(|pointer| Ok(to_text(&survey.steps(pointer)?).parse()?))
                .collect::<Result<Vec<Pointer>>>()
        };
        let primary = named(schema.get("primaryIdentifier"))?;
        let identifiers = schema.get("additionalIdentifiers").and_then(Json::as_array);
        let additional = identifiers.into_iter().flatten().map(|list| named(Some(list))).collect::<Result<Vec<_>>>()?;
        for (pointer, expression) in schema.get("propertyTransform").and_then(Json::as_object).into_iter().flatten() {
            let expression = expression.as_str().ok_or("a transform is not text")?.to_owned();
            let path = to_pattern(&survey.steps(pointer)?)?;
            let alternatives = alternatives(&expression);
            survey.transforms.push(Transform { path, expression, alternatives, source: package.to_owned() });
        }
        Ok(Self { primary, additional, ..survey }.generalized())
    }

    /// Looks at a place, of which several parts of the schema may speak, and at everything beneath it.
    ///
    /// `followed` are the definitions that we are inside of, each with the depth at which it began. A definition is
    /// not followed into itself; [`Survey::generalized`] says what holds further down.
    fn visit<'s>(
        &mut self,
        root: &'s Json,
        said: &[&'s Json],
        steps: &mut Steps,
        followed: &mut Vec<(&'s str, usize)>,
    ) -> Result<()> {
        let outside = followed.len();
        let mut pending: VecDeque<&Json> = said.iter().copied().collect();
        let mut all: Vec<&Map<String, Json>> = Vec::new();
        while let Some(part) = pending.pop_front() {
            let Some(part) = part.as_object() else { continue };
            if let Some(reference) = part.get("$ref").and_then(Json::as_str) {
                match followed.iter().find(|(known, _)| *known == reference) {
                    Some((_, depth)) if *depth == steps.len() => {}
                    Some((_, depth)) => {
                        self.recursions.insert(steps[..*depth].to_vec());
                    }
                    None => {
                        followed.push((reference, steps.len()));
                        let pointer = reference.strip_prefix('#').ok_or("a `$ref` leads out of the schema")?;
                        pending.push_back(root.pointer(pointer).ok_or_else(|| format!("`{reference}` leads nowhere"))?);
                    }
                }
            }
            let choices = ["oneOf", "anyOf", "allOf"].iter().filter_map(|key| part.get(*key)?.as_array());
            pending.extend(choices.flatten());
            all.push(part);
        }
        if !steps.is_empty() {
            let place = look(&all)?;
            self.places.insert(steps.clone(), place);
        }
        for (name, said) in children(&all) {
            steps.push(name.to_owned());
            self.visit(root, &said, steps, followed)?;
            steps.pop();
        }
        followed.truncate(outside);
        Ok(())
    }

    /// The steps of a pointer such as `/properties/A/*/B`. One that leads nowhere would be a fact that never holds.
    fn steps(&self, pointer: &str) -> Result<Steps> {
        let rest = pointer.strip_prefix("/properties/").ok_or_else(|| format!("`{pointer}` is no property"))?;
        let steps: Steps = rest.split('/').map(ToOwned::to_owned).collect();
        if !self.places.contains_key(&steps) {
            return Err(format!("`{pointer}` leads nowhere").into());
        }
        Ok(steps)
    }

    /// `tagProperty`, or the property that it is by default. Some types that name one do not have it.
    fn find_tags(&mut self, schema: &Json) {
        let named = schema.pointer("/tagging/tagProperty").and_then(Json::as_str);
        let taggable = schema.pointer("/tagging/taggable").and_then(Json::as_bool).unwrap_or(true);
        let pointer = named.or(taggable.then_some("/properties/Tags"));
        let place = pointer.and_then(|pointer| self.steps(pointer).ok()).and_then(|steps| self.places.get_mut(&steps));
        place.map(|place| place.marks.insert(Mark::Tags));
    }

    /// Says of every place beneath a recursion that it may be further down, too: a statement in a statement in a
    /// statement has what a statement has.
    fn generalized(mut self) -> Self {
        let mut recursions: Vec<&Steps> = self.recursions.iter().collect();
        // From the inside out: a star that is put in does not move the places of those above it.
        recursions.sort_by_key(|steps| std::cmp::Reverse(steps.len()));
        let general = |mut steps: Steps| {
            for recursion in &recursions {
                let beneath = steps.strip_prefix(recursion.as_slice()).unwrap_or_default();
                // Nothing but stars would name everything beneath.
                if beneath.iter().any(|step| !step.starts_with('*')) {
                    steps.insert(recursion.len(), "**".to_owned());
                }
            }
            steps
        };
        let places = std::mem::take(&mut self.places);
        let places = places.into_iter().map(|(steps, place)| (general(steps), place)).collect();
        Self { places, ..self }
    }

    pub(super) fn into_facts(self, name: &str) -> Result<Facts> {
        let mut facts = Facts { name: name.to_owned(), readable: self.readable, ..Facts::default() };
        for (steps, place) in self.places {
            let path = to_pattern(&steps)?;
            for mark in place.marks {
                facts.mark(mark, path.clone());
            }
            facts.defaults.extend(place.default.map(|value| (path, value)));
        }
        facts.primary = self.primary;
        facts.additional = self.additional;
        facts.transforms = self.transforms;
        facts.corrections = self.corrections;
        Ok(facts)
    }
}

/// What is said of one place.
fn look(all: &[&Map<String, Json>]) -> Result<Place> {
    let says = |key: &str, value: &Json| all.iter().any(|part| part.get(key) == Some(value));
    let mut types: BTreeSet<&str> = BTreeSet::new();
    for part in all {
        match part.get("type") {
            Some(Json::String(one)) => types.extend([one.as_str()]),
            Some(Json::Array(several)) => types.extend(several.iter().filter_map(Json::as_str)),
            _ => {}
        }
    }
    let mut place = Place {
        is_array: types.contains("array") || all.iter().any(|part| part.contains_key("items")),
        is_text: types.iter().eq(&["string"]),
        ..Place::default()
    };
    let mut mark = |mark: Mark, holds: bool| {
        if holds {
            place.marks.insert(mark);
        }
    };
    mark(Mark::Unordered, place.is_array && says("insertionOrder", &Json::Bool(false)));
    mark(Mark::Unique, place.is_array && says("uniqueItems", &Json::Bool(true)));
    mark(Mark::AttributeList, says("arrayType", &Json::from("AttributeList")));
    // Where text is allowed, too, `"30"` may be something else than `30`.
    mark(Mark::Scalar(Scalar::Integer), types.iter().eq(&["integer"]));
    mark(Mark::Scalar(Scalar::Number), types.iter().eq(&["number"]));
    mark(Mark::Scalar(Scalar::Boolean), types.iter().eq(&["boolean"]));
    let either = types.contains("object") && types.contains("string");
    mark(Mark::Document, either || says("format", &Json::from("json")));
    let default = all.iter().find_map(|part| part.get("default")).filter(|value| !value.is_null());
    place.default = default.map(|value| serde_json::from_str(&value.to_string())).transpose()?;
    Ok(place)
}

/// The places one step further down, each with all that is said of it.
fn children<'s>(all: &[&'s Map<String, Json>]) -> BTreeMap<&'s str, Vec<&'s Json>> {
    let mut children: BTreeMap<&str, Vec<&Json>> = BTreeMap::new();
    for part in all {
        for (name, said) in part.get("properties").and_then(Json::as_object).into_iter().flatten() {
            children.entry(name).or_default().push(said);
        }
        let values = part.get("patternProperties").and_then(Json::as_object).into_iter().flat_map(Map::values);
        let others = part.get("additionalProperties").filter(|said| said.is_object());
        let items = part.get("items");
        let each = items.and_then(Json::as_array).into_iter().flatten();
        let stars: Vec<&Json> = values.chain(others).chain(items.filter(|said| said.is_object())).chain(each).collect();
        if !stars.is_empty() {
            children.entry("*").or_default().extend(stars);
        }
    }
    children
}

fn texts(list: Option<&Json>) -> Result<Vec<String>> {
    let list = list.and_then(Json::as_array).into_iter().flatten();
    list.map(|text| Ok(text.as_str().ok_or("a list of properties has something else in it")?.to_owned())).collect()
}

pub(super) fn to_text(steps: &[String]) -> String {
    steps.iter().map(|step| format!("/{step}")).collect()
}

pub(super) fn to_pattern(steps: &[String]) -> Result<Pattern> {
    Ok(to_text(steps).parse()?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use driftline_sources::schema::write;
    use serde_json::json;

    use super::*;

    fn check(schema: &Json, record: &str) {
        let facts = Survey::of(schema, "here").unwrap().into_facts("T").unwrap();
        assert_eq!(write(&facts), record);
    }

    #[test]
    fn a_schema_is_told_place_by_place() {
        let schema = json!({
            "primaryIdentifier": ["/properties/Id"],
            "additionalIdentifiers": [["/properties/Name"]],
            "readOnlyProperties": ["/properties/Id"],
            "writeOnlyProperties": ["/properties/Rules/*/Secret"],
            "propertyTransform": {"/properties/Name": "a $OR b"},
            "handlers": {"read": {}},
            "definitions": {"Count": {"type": "integer", "default": 3}},
            "properties": {
                "Id": {"type": "string"},
                "Name": {"type": "string", "default": null},
                "Tags": {"type": "object", "patternProperties": {".*": {"type": "string"}}},
                "Rules": {"type": "array", "insertionOrder": false, "uniqueItems": true, "items": {"properties": {
                    "Secret": {"type": "string"},
                    "Count": {"$ref": "#/definitions/Count"},
                    "Either": {"type": ["integer", "string"]},
                }}},
                "Limits": {"additionalProperties": {"type": "number"}},
                "Policy": {"oneOf": [{"type": "object"}, {"type": "string"}]},
            },
        });
        let record = "\
:id /Id
:also /Name
:transform /Name \"here\" \"a $OR b\"
Id r
Limits
 * n
Policy j
Rules uq
 *
  Count i =3
  Secret w
Tags t
";
        check(&schema, record);
    }

    #[test]
    fn what_has_its_like_beneath_it_is_told_once_for_all_depths() {
        let schema = json!({
            "primaryIdentifier": [],
            "definitions": {"Statement": {"properties": {
                "Size": {"type": "integer"},
                "Not": {"$ref": "#/definitions/Statement"},
                "And": {"type": "array", "insertionOrder": false, "items": {"$ref": "#/definitions/Statement"}},
                "Any": {"additionalProperties": {"type": "boolean"}},
            }}},
            "properties": {"Rule": {"$ref": "#/definitions/Statement"}, "Other": {"type": "integer"}},
        });
        let record = ":id\n:unreadable\nOther i\nRule\n **\n  And u\n  Any\n   * b\n  Size i\n";
        check(&schema, record);
    }

    #[test]
    fn a_map_of_maps_does_not_name_everything_beneath_it() {
        let schema = json!({
            "primaryIdentifier": [],
            "definitions": {"Map": {"additionalProperties": {"$ref": "#/definitions/Map"}, "type": "object"}},
            "properties": {"Deep": {"$ref": "#/definitions/Map"}},
        });
        check(&schema, ":id\n:unreadable\n");
    }

    #[test]
    fn a_pointer_that_leads_nowhere_is_refused() {
        for schema in [
            json!({"primaryIdentifier": ["/properties/B"], "properties": {"A": {}}}),
            json!({"readOnlyProperties": ["/properties/A/B"], "properties": {"A": {"type": "array", "items": {}}}}),
            json!({"propertyTransform": {"properties/A": "x"}, "properties": {"A": {}}}),
            json!({"properties": {"A": {"$ref": "#/definitions/Missing"}}}),
        ] {
            assert!(Survey::of(&schema, "here").is_err(), "{schema}");
        }
        // But a tag property that is not there only means that there are no tags.
        check(&json!({"tagging": {"tagProperty": "/properties/Tags"}, "properties": {"A": {}}}), ":id\n:unreadable\n");
    }
}
