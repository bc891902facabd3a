//! swamp's datastore: what its metadata and its command line's JSON say. Walking the tree is the program's part.
use crate::normalize::NormalizeError;
use jiff::Timestamp;

/// One piece of data, taken out of what `swamp data get` or `swamp data query` printed.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    pub name: String,
    pub content: &'a str,
    pub created_at: Option<Timestamp>,
}

pub(crate) fn unwrap<'a>(_name: &str, _text: &'a str) -> Result<Option<Vec<Item<'a>>>, NormalizeError> {
    Ok(None)
}
