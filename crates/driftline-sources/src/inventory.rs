use crate::normalize::{Context, Document, Listing, NormalizeError};

pub(crate) fn normalize(_documents: &[Document<'_>], _context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    Ok(Vec::new())
}
