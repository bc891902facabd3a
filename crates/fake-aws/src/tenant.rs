//! CloudFront is not done when it has answered: what was written is `InProgress` for a while. Emulators skip that.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::request::{Asked, element};

/// How many reads each thing stays `InProgress`, by id.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    left: BTreeMap<String, u32>,
}

const DONE: &str = "<Status>Deployed</Status>";
const BUSY: &str = "<Status>InProgress</Status>";

impl Progress {
    /// The reply as a client would get it whose write takes `gets` reads to be deployed.
    pub(crate) fn rewrite(&mut self, asked: &Asked, gets: u32, body: &Bytes) -> Bytes {
        let Ok(text) = std::str::from_utf8(body) else { return body.clone() };
        let operation = asked.operation.as_str();
        if operation.starts_with("List") {
            return Bytes::from(self.rewrite_each(text));
        }
        let Some(id) = element(text, "Id").map(str::to_owned) else { return body.clone() };
        if operation.starts_with("Create") || operation.starts_with("Update") {
            self.left.insert(id, gets);
            return Bytes::from(text.replacen(DONE, BUSY, usize::from(gets > 0)));
        }
        match self.left.get_mut(&id).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                Bytes::from(text.replacen(DONE, BUSY, 1))
            }
            None => body.clone(),
        }
    }

    /// In a listing each thing has the status that it has by itself; looking at the list does not speed it up.
    fn rewrite_each(&self, text: &str) -> String {
        let mut parts = text.split("<Id>");
        let mut rewritten = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let id = part.split("</Id>").next().unwrap_or_default();
            let busy = self.left.get(id).is_some_and(|left| *left > 0);
            rewritten.push_str("<Id>");
            rewritten.push_str(&if busy { part.replacen(DONE, BUSY, 1) } else { part.to_owned() });
        }
        rewritten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::ask;

    #[test]
    fn a_write_is_in_progress_for_as_many_reads_as_asked() {
        let mut progress = Progress::default();
        let body = Bytes::from_static(b"<T><Id>dt_1</Id><Status>Deployed</Status></T>");
        let busy = |bytes: &Bytes| String::from_utf8_lossy(bytes).contains("InProgress");
        let create = ask("cloudfront", &[], "POST", "/2020-05-31/distribution-tenant", "<R/>");
        let get = ask("cloudfront", &[], "GET", "/2020-05-31/distribution-tenant/dt_1", "");
        let list = ask("cloudfront", &[], "POST", "/2020-05-31/distribution-tenants", "");
        assert!(!busy(&progress.rewrite(&get, 2, &body)), "nothing was written yet");
        assert!(busy(&progress.rewrite(&create, 2, &body)));
        assert!(busy(&progress.rewrite(&get, 2, &body)));
        assert!(busy(&progress.rewrite(&list, 2, &body)));
        assert!(busy(&progress.rewrite(&get, 2, &body)));
        assert!(!busy(&progress.rewrite(&get, 2, &body)));
        assert!(!busy(&progress.rewrite(&list, 2, &body)));
    }
}
