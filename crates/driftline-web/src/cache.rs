//! What was rendered, kept as long as it is true and there is room.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use xxhash_rust::xxh3::xxh3_128;

/// How many bytes are kept in all.
const ROOM: usize = 32 << 20;
/// What is shorter is not worth compressing.
const LEAST: usize = 1_024;

/// An answer as it goes over the wire.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub kind: &'static str,
    pub body: Bytes,
    pub tag: String,
    zipped: OnceLock<Option<Bytes>>,
}

impl Rendered {
    pub(crate) fn new(kind: &'static str, body: Vec<u8>) -> Self {
        // Weak: the same answer, whether compressed or not.
        let tag = format!("W/\"{:032x}\"", xxh3_128(&body));
        Self { kind, body: body.into(), tag, zipped: OnceLock::new() }
    }

    /// The body compressed, where that is worth it; done once.
    pub(crate) fn zipped(&self) -> Option<Bytes> {
        self.zipped
            .get_or_init(|| {
                if self.body.len() < LEAST {
                    return None;
                }
                let mut out = GzEncoder::new(Vec::with_capacity(self.body.len() / 4), Compression::new(5));
                out.write_all(&self.body).ok()?;
                out.finish().ok().map(Bytes::from)
            })
            .clone()
    }

    fn size(&self) -> usize {
        self.body.len() + self.body.len() / 4
    }
}

#[derive(Debug, Default)]
pub(crate) struct Cache {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    edition: String,
    bytes: usize,
    answers: BTreeMap<String, Arc<Rendered>>,
    /// The oldest first.
    order: VecDeque<String>,
}

impl Cache {
    pub(crate) fn get(&self, edition: &str, key: &str) -> Option<Arc<Rendered>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.edition == edition { kept.answers.get(key).cloned() } else { None }
    }

    pub(crate) fn put(&self, edition: &str, key: String, rendered: Arc<Rendered>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.edition != edition {
            *kept = Kept { edition: edition.to_owned(), ..Kept::default() };
        }
        let size = rendered.size() + key.len();
        if size > ROOM / 4 || kept.answers.contains_key(&key) {
            return;
        }
        kept.bytes += size;
        kept.answers.insert(key.clone(), rendered);
        kept.order.push_back(key);
        while kept.bytes > ROOM {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some(gone) = kept.answers.remove(&oldest) {
                kept.bytes -= gone.size() + oldest.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_what_is_kept_and_another_edition_has_nothing_of_it() {
        let cache = Cache::default();
        let page = || Arc::new(Rendered::new("text/html", vec![b'x'; 1 << 20]));
        for number in 0..100 {
            cache.put("one", format!("/{number}"), page());
        }
        let there =
            |edition: &str| (0..100).filter(|number| cache.get(edition, &format!("/{number}")).is_some()).count();
        assert!((20..=32).contains(&there("one")), "{}", there("one"));
        assert!(cache.get("one", "/99").is_some() && cache.get("one", "/0").is_none());
        assert_eq!(there("two"), 0);
        cache.put("two", "/new".into(), page());
        assert_eq!(there("one"), 0);
    }
}
