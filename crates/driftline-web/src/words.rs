//! The words of the domain as schemas: the types are of the core, which knows of no schema.

use driftline_core::{DriftKind, Severity, Status};
use schemars::{Schema, SchemaGenerator, json_schema};

pub(crate) const STATUSES: [Status; 4] = [Status::Drifted, Status::Unknown, Status::NotChecked, Status::InSync];
const KINDS: [DriftKind; 3] = [DriftKind::Modified, DriftKind::Deleted, DriftKind::Resolved];

pub(crate) fn status(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": STATUSES.map(Status::name)})
}

pub(crate) fn severity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": Severity::ALL.map(Severity::name)})
}

pub(crate) fn maybe_severity(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<Option<&str>> = Severity::ALL.iter().map(|level| Some(level.name())).chain([None]).collect();
    json_schema!({"type": ["string", "null"], "enum": words})
}

pub(crate) fn maybe_kind(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<Option<&str>> = KINDS.iter().map(|kind| Some(kind.name())).chain([None]).collect();
    json_schema!({"type": ["string", "null"], "enum": words})
}
