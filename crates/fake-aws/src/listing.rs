//! A listing cut into pages, by the proxy, where the emulator gives it whole (EC2, CloudFront tenants).

use bytes::Bytes;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::request::{Asked, Protocol};

/// How a listing is cut. What is left out is what the service uses.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// Items on a page, or fewer if the client asks for fewer.
    pub size: usize,
    /// So many items of a page are on the next one again, as when something was created while the client was reading.
    #[serde(default)]
    pub overlap: usize,
    /// The element or member that holds the items.
    pub items: Option<String>,
    pub token_in: Option<String>,
    pub token_out: Option<String>,
    pub size_in: Option<String>,
}

/// The names of a service's page parameters: of the token asked for, the token given, and the size.
fn names(asked: &Asked) -> [&'static str; 3] {
    match (asked.service.as_str(), asked.protocol) {
        (_, Protocol::Ec2) => ["NextToken", "nextToken", "MaxResults"],
        ("iam", _) => ["Marker", "Marker", "MaxItems"],
        ("rds", _) => ["Marker", "Marker", "MaxRecords"],
        ("elasticloadbalancing", _) => ["Marker", "NextMarker", "PageSize"],
        ("lambda" | "cloudfront", _) => ["Marker", "NextMarker", "MaxItems"],
        ("kms", _) => ["Marker", "NextMarker", "Limit"],
        ("events" | "config", _) => ["NextToken", "NextToken", "Limit"],
        ("s3", _) => ["continuation-token", "ContinuationToken", "max-buckets"],
        ("tagging", _) => ["PaginationToken", "PaginationToken", "ResourcesPerPage"],
        _ => ["NextToken", "NextToken", "MaxResults"],
    }
}

/// A page that a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    start: usize,
    size: usize,
    token_in: String,
    token_out: String,
    size_in: String,
}

const TOKEN: &str = "fakepage-";

impl Paging {
    /// Which page is asked for; nothing if the token is not one that the proxy gave out.
    pub(crate) fn page(&self, asked: &Asked) -> Option<Page> {
        let [token_in, token_out, size_in] = names(asked);
        let or = |given: &Option<String>, usual: &str| given.clone().unwrap_or_else(|| usual.to_owned());
        let token_in = or(&self.token_in, token_in);
        let size_in = or(&self.size_in, size_in);
        let start = match asked.parameter(&token_in).filter(|token| !token.is_empty()) {
            None => 0,
            Some(token) => token.strip_prefix(TOKEN)?.parse().ok()?,
        };
        let wanted = asked.parameter(&size_in).and_then(|size| size.parse().ok()).unwrap_or(self.size);
        Some(Page {
            start,
            size: self.size.min(wanted).max(1),
            token_in,
            token_out: or(&self.token_out, token_out),
            size_in,
        })
    }
}

impl Page {
    /// The request for the whole listing.
    pub(crate) fn whole(&self, asked: &Asked) -> Asked {
        asked.without(&[&self.token_in, &self.size_in])
    }

    /// This page of a whole listing; nothing if no list was found in it.
    pub(crate) fn cut(&self, paging: &Paging, protocol: Protocol, body: &Bytes) -> Option<Bytes> {
        match protocol {
            Protocol::Query | Protocol::Ec2 | Protocol::RestXml => {
                self.cut_xml(paging, std::str::from_utf8(body).ok()?)
            }
            Protocol::Json10 | Protocol::Json11 | Protocol::RestJson => self.cut_json(paging, body),
        }
    }

    /// The items of this page, and the token of the next.
    fn range(&self, paging: &Paging, total: usize) -> (std::ops::Range<usize>, Option<String>) {
        let start = self.start.min(total);
        let end = (start + self.size).min(total);
        let next = (end < total).then(|| format!("{TOKEN}{end}"));
        let again = if self.start > 0 { start.saturating_sub(paging.overlap) } else { start };
        (again..end, next)
    }

    fn cut_json(&self, paging: &Paging, body: &[u8]) -> Option<Bytes> {
        let mut reply: Json = serde_json::from_slice(body).ok()?;
        let members = reply.as_object_mut()?;
        let name = match &paging.items {
            Some(name) => name.clone(),
            None => members.iter().find(|(_, value)| value.is_array())?.0.clone(),
        };
        let list = members.get_mut(&name)?.as_array_mut()?;
        let (range, next) = self.range(paging, list.len());
        *list = list[range].to_vec();
        members.remove(&self.token_out);
        if let Some(next) = next {
            members.insert(self.token_out.clone(), Json::String(next));
        }
        Some(Bytes::from(reply.to_string()))
    }

    fn cut_xml(&self, paging: &Paging, body: &str) -> Option<Bytes> {
        let root = tree(body)?;
        let (parent, list) = root.list(paging.items.as_deref())?;
        let (range, next) = self.range(paging, list.children.len());
        let first = list.children.first().map_or(list.end, |item| item.start);
        let last = list.children.last().map_or(list.end, |item| item.end);
        let mut cut = String::with_capacity(body.len());
        cut.push_str(&body[..first]);
        list.children[range].iter().for_each(|item| cut.push_str(&body[item.start..item.end]));
        cut.push_str(&body[last..list.end]);
        if let Some(next) = next {
            cut.push_str(&format!("<{0}>{next}</{0}>", self.token_out));
        }
        // The emulator's own token, empty or not, would be a second one.
        let old = parent.children.iter().find(|node| node.name == self.token_out && node.start >= list.end);
        match old {
            Some(old) => {
                cut.push_str(&body[list.end..old.start]);
                cut.push_str(&body[old.end..]);
            }
            None => cut.push_str(&body[list.end..]),
        }
        Some(Bytes::from(cut))
    }
}

/// An element by where it stands in its document.
#[derive(Debug)]
struct Node {
    name: String,
    start: usize,
    end: usize,
    children: Vec<Node>,
}

impl Node {
    /// The list and what it stands in: the one of this name, or the first whose children are all `item` or `member`.
    fn list<'a>(&'a self, name: Option<&str>) -> Option<(&'a Node, &'a Node)> {
        let is_list = |node: &Node| match name {
            Some(name) => node.name == name,
            None => {
                !node.children.is_empty()
                    && node.children.iter().all(|child| child.name == "item" || child.name == "member")
            }
        };
        let here = self.children.iter().find(|node| is_list(node)).map(|node| (self, node));
        here.or_else(|| self.children.iter().find_map(|child| child.list(name)))
    }
}

fn tree(body: &str) -> Option<Node> {
    let mut reader = Reader::from_str(body);
    let mut open: Vec<Node> = Vec::new();
    loop {
        let start = usize::try_from(reader.buffer_position()).ok()?;
        let event = reader.read_event().ok()?;
        let end = usize::try_from(reader.buffer_position()).ok()?;
        let name = str::to_owned;
        let closed = match event {
            Event::Start(tag) => {
                open.push(Node { name: name(tag.local_name().as_ref()), start, end, children: Vec::new() });
                continue;
            }
            Event::Empty(tag) => Node { name: name(tag.local_name().as_ref()), start, end, children: Vec::new() },
            Event::End(_) => Node { end, ..open.pop()? },
            Event::Eof => return None,
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.children.push(closed),
            None => return Some(closed),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::request::element;
    use crate::request::tests::ask;

    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
    const GROUPS: &str = "<DescribeSecurityGroupsResponse><requestId>r</requestId><securityGroupInfo>\
        <item><groupId>a</groupId><tagSet><item><key>k</key></item></tagSet></item><item><groupId>b</groupId></item>\
        <item><groupId>c</groupId></item></securityGroupInfo><nextToken/></DescribeSecurityGroupsResponse>";

    fn ids(body: &str) -> Vec<&str> {
        body.split("<groupId>").skip(1).map(|rest| rest.split('<').next().unwrap()).collect()
    }

    /// All pages of a listing, each as the client sees it.
    fn pages(paging: &Paging, asked_for: &str, whole: &str) -> Vec<String> {
        let mut token = String::new();
        let mut seen = Vec::new();
        loop {
            let asked = ask("ec2", &[FORM], "POST", "/", &format!("{asked_for}&NextToken={token}"));
            let page = paging.page(&asked).unwrap();
            assert_eq!(page.whole(&asked).parameter("NextToken"), None);
            let body = page.cut(paging, asked.protocol, &Bytes::copy_from_slice(whole.as_bytes())).unwrap();
            let body = String::from_utf8(body.to_vec()).unwrap();
            let next = element(&body, "nextToken").map(str::to_owned);
            seen.push(body);
            match next {
                Some(next) => token = next,
                None => return seen,
            }
        }
    }

    #[test]
    fn the_pages_of_a_listing_are_the_listing() {
        let paging = Paging { size: 2, ..Paging::default() };
        let seen = pages(&paging, "Action=DescribeSecurityGroups", GROUPS);
        let seen: Vec<Vec<&str>> = seen.iter().map(|page| ids(page)).collect();
        assert_eq!(seen, [vec!["a", "b"], vec!["c"]]);
        let smaller = pages(&paging, "Action=DescribeSecurityGroups&MaxResults=1", GROUPS);
        assert_eq!(smaller.len(), 3);
    }

    #[test]
    fn an_overlap_shows_the_end_of_a_page_on_the_next_one_again() {
        let paging = Paging { size: 2, overlap: 1, ..Paging::default() };
        let seen = pages(&paging, "Action=DescribeSecurityGroups", GROUPS);
        assert_eq!(seen.iter().map(|page| ids(page)).collect::<Vec<_>>(), [vec!["a", "b"], vec!["b", "c"]]);
    }

    #[test]
    fn a_token_that_nobody_gave_out_is_no_page() {
        let paging = Paging { size: 2, ..Paging::default() };
        assert_eq!(paging.page(&ask("ec2", &[FORM], "POST", "/", "Action=X&NextToken=other")), None);
    }

    #[test]
    fn json_and_named_lists_are_cut_too() {
        let paging = Paging { size: 1, ..Paging::default() };
        let asked = ask("lambda", &[], "GET", "/2015-03-31/functions?Marker=fakepage-1", "");
        let page = paging.page(&asked).unwrap();
        let whole = Bytes::from_static(br#"{"Functions":[{"n":1},{"n":2},{"n":3}]}"#);
        let body: Json = serde_json::from_slice(&page.cut(&paging, asked.protocol, &whole).unwrap()).unwrap();
        assert_eq!(body, serde_json::json!({"Functions": [{"n": 2}], "NextMarker": "fakepage-2"}));

        let paging = Paging { size: 1, items: Some("DistributionTenantList".to_owned()), ..Paging::default() };
        let asked = ask("cloudfront", &[], "POST", "/2020-05-31/distribution-tenants", "<R></R>");
        let whole = Bytes::from_static(
            b"<R><DistributionTenantList><S><Id>1</Id></S><S><Id>2</Id></S></DistributionTenantList></R>",
        );
        let body = paging.page(&asked).unwrap().cut(&paging, asked.protocol, &whole).unwrap();
        let expected = "<R><DistributionTenantList><S><Id>1</Id></S></DistributionTenantList>\
                        <NextMarker>fakepage-1</NextMarker></R>";
        assert_eq!(std::str::from_utf8(&body).unwrap(), expected);
    }
}
