//! Who may read and who may write: tokens, the cookie of a browser that signed in, and the proof that a form is ours.
//!
//! A token is compared through a keyed digest, so that how long it takes says nothing. The cookie carries what it
//! allows and until when, sealed with a key that is made from the tokens: it outlives a restart and ends with them.

use axum::http::{HeaderMap, header};
use hmac::{Hmac, KeyInit, Mac};
use jiff::{SignedDuration, Timestamp};
use sha2::Sha256;

/// How long a browser stays signed in.
const SESSION: SignedDuration = SignedDuration::from_hours(12);
pub(crate) const COOKIE: &str = "driftline-session";

/// What somebody may do, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    Nothing,
    Read,
    Write,
}

impl Permission {
    fn letter(self) -> char {
        match self {
            Permission::Nothing => 'n',
            Permission::Read => 'r',
            Permission::Write => 'w',
        }
    }
}

/// Who may do what. Without a token to read, everybody may; without one to write, everybody who needs none to read.
#[derive(Clone, Default)]
pub struct Access {
    pub read_token: Option<String>,
    pub write_token: Option<String>,
    /// Nobody may write, whatever they show.
    pub read_only: bool,
    /// Chance, new for each run.
    pub secret: [u8; 32],
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("read_only", &self.read_only).finish_non_exhaustive()
    }
}

/// How somebody showed who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing was shown, or nothing that holds.
    None,
    /// A token, by a program: no browser adds it by itself.
    Bearer,
    Cookie(String),
}

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub permission: Permission,
    pub proof: Proof,
    /// A token was shown, and it is not one of ours.
    pub refused: bool,
    pub csrf: String,
}

impl Access {
    /// Whether anybody has to show a token.
    pub fn is_guarded(&self) -> bool {
        self.read_token.is_some() || self.write_token.is_some()
    }

    fn anonymous(&self) -> Permission {
        let permission = match (&self.read_token, &self.write_token) {
            (None, None) => Permission::Write,
            (None, Some(_)) => Permission::Read,
            (Some(_), _) => Permission::Nothing,
        };
        self.capped(permission)
    }

    fn capped(&self, permission: Permission) -> Permission {
        if self.read_only { permission.min(Permission::Read) } else { permission }
    }

    /// Why nobody may write here, if nobody may.
    pub(crate) fn why_no_one_writes(&self) -> Option<&'static str> {
        match (self.read_only, &self.read_token, &self.write_token) {
            (true, ..) => Some("This server was started with --read-only."),
            (false, Some(_), None) => Some("This server was started without a token for writing."),
            _ => None,
        }
    }

    /// What a token allows.
    fn of_token(&self, token: &str) -> Option<Permission> {
        let same = |own: &Option<String>| own.as_ref().is_some_and(|own| self.is_same(own, token));
        // Both are compared, whatever the first says.
        let (write, read) = (same(&self.write_token), same(&self.read_token));
        match (write, read) {
            (true, _) => Some(self.capped(Permission::Write)),
            (false, true) => Some(Permission::Read),
            (false, false) => None,
        }
    }

    fn is_same(&self, own: &str, given: &str) -> bool {
        let digest = self.mac(&self.secret, &[b"token", own.as_bytes()]).finalize().into_bytes();
        self.mac(&self.secret, &[b"token", given.as_bytes()]).verify(&digest).is_ok()
    }

    #[expect(clippy::unused_self, reason = "one word for all digests of this file")]
    fn mac(&self, key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length of key will do");
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }

    /// The key that seals cookies: it changes when a token does.
    fn session_key(&self) -> Vec<u8> {
        let text = |token: &Option<String>| token.clone().unwrap_or_default();
        if !self.is_guarded() {
            return self.secret.to_vec();
        }
        let (read, write) = (text(&self.read_token), text(&self.write_token));
        let key = format!("driftline session 1\0{}\0{read}\0{write}", read.len());
        self.mac(key.as_bytes(), &[b"session"]).finalize().into_bytes().to_vec()
    }

    /// A cookie for whoever shows this token, and what it allows.
    pub(crate) fn sign_in(&self, token: &str, now: Timestamp) -> Option<(String, Permission)> {
        let permission = self.of_token(token)?;
        let until = now.checked_add(SESSION).ok()?.as_second();
        let letter = permission.letter();
        Some((format!("{letter}.{until}.{}", self.seal(&format!("{letter}.{until}"))), permission))
    }

    fn seal(&self, text: &str) -> String {
        hex(&self.mac(&self.session_key(), &[b"cookie", text.as_bytes()]).finalize().into_bytes())
    }

    fn of_cookie(&self, cookie: &str, now: Timestamp) -> Option<Permission> {
        let (text, seal) = cookie.rsplit_once('.')?;
        let given = unhex(seal)?;
        self.mac(&self.session_key(), &[b"cookie", text.as_bytes()]).verify_slice(&given).ok()?;
        let (letter, until) = text.split_once('.')?;
        if until.parse::<i64>().ok()? <= now.as_second() {
            return None;
        }
        match letter {
            "w" => Some(self.capped(Permission::Write)),
            "r" => Some(Permission::Read),
            _ => None,
        }
    }

    pub(crate) fn visitor(&self, headers: &HeaderMap, now: Timestamp) -> Visitor {
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let text = value.to_str().unwrap_or_default();
            let token = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            let known = token.and_then(|(_, token)| self.of_token(token.trim()));
            // A token that means nothing here is refused rather than overlooked.
            let permission = known.unwrap_or(Permission::Nothing);
            return Visitor { permission, proof: Proof::Bearer, refused: known.is_none(), csrf: String::new() };
        }
        let cookie = cookie(headers, COOKIE).filter(|_| self.is_guarded());
        if let Some(cookie) = cookie
            && let Some(permission) = self.of_cookie(cookie, now)
        {
            let csrf = self.csrf(cookie);
            return Visitor { permission, proof: Proof::Cookie(cookie.to_owned()), refused: false, csrf };
        }
        Visitor { permission: self.anonymous(), proof: Proof::None, refused: false, csrf: self.csrf("") }
    }

    /// What a form of ours carries; another site cannot know it.
    fn csrf(&self, cookie: &str) -> String {
        let digest = self.mac(&self.session_key(), &[b"csrf", cookie.as_bytes()]).finalize().into_bytes();
        hex(&digest[..16])
    }

    pub(crate) fn is_ours(&self, visitor: &Visitor, csrf: &str) -> bool {
        !visitor.csrf.is_empty() && self.is_same(&visitor.csrf, csrf)
    }
}

/// The value of a cookie.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|text| text.split(';')).find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const READ: &str = "a token to read with";
    const WRITE: &str = "a token to write with";

    fn access(read: Option<&str>, write: Option<&str>, read_only: bool) -> Access {
        Access {
            read_token: read.map(ToOwned::to_owned),
            write_token: write.map(ToOwned::to_owned),
            read_only,
            secret: [7; 32],
        }
    }

    fn now() -> Timestamp {
        "2026-06-29T10:00:00Z".parse().unwrap()
    }

    fn bearer(token: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        headers
    }

    fn with_cookie(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, format!("other=1; {COOKIE}={cookie}; x=y").parse().unwrap());
        headers
    }

    #[test]
    fn everybody_may_do_what_their_token_says_and_no_more() {
        use Permission::{Nothing, Read, Write};
        let (r, w) = (Some(READ), Some(WRITE));
        for (read, write, read_only, anonymous, reader, writer) in [
            (None, None, false, Write, Nothing, Nothing),
            (None, None, true, Read, Nothing, Nothing),
            (r, None, false, Nothing, Read, Nothing),
            (r, w, false, Nothing, Read, Write),
            (r, w, true, Nothing, Read, Read),
            (None, w, false, Read, Nothing, Write),
        ] {
            let access = access(read, write, read_only);
            let of = |headers: &HeaderMap| access.visitor(headers, now()).permission;
            assert_eq!(of(&HeaderMap::new()), anonymous, "{read:?} {write:?} {read_only}");
            assert_eq!(of(&bearer(READ)), reader, "{read:?} {write:?} {read_only}");
            assert_eq!(of(&bearer(WRITE)), writer, "{read:?} {write:?} {read_only}");
            assert_eq!(of(&bearer("something else")), Nothing);
            for token in [READ, WRITE] {
                let signed = access.sign_in(token, now());
                let by_cookie = signed.map_or(anonymous, |(cookie, _)| of(&with_cookie(&cookie)));
                let by_token = of(&bearer(token));
                assert_eq!(by_cookie, if by_token == Nothing { anonymous } else { by_token });
            }
        }
    }

    #[test]
    fn a_cookie_ends_and_cannot_be_made_better() {
        let access = access(Some(READ), Some(WRITE), false);
        let (cookie, _) = access.sign_in(READ, now()).unwrap();
        let at = |cookie: &str, time: Timestamp| access.visitor(&with_cookie(cookie), time).permission;
        assert_eq!(at(&cookie, now()), Permission::Read);
        assert_eq!(at(&cookie, now() + SESSION), Permission::Nothing);
        assert_eq!(at(&cookie.replacen('r', "w", 1), now()), Permission::Nothing);
        for end in 0..cookie.len() {
            assert_eq!(at(&cookie[..end], now()), Permission::Nothing);
        }
        // Another run knows it again, and one with another token does not.
        let again = Access { secret: [9; 32], ..access.clone() };
        assert_eq!(again.visitor(&with_cookie(&cookie), now()).permission, Permission::Read);
        let other = Access { write_token: Some("quite another token".into()), ..access.clone() };
        assert_eq!(other.visitor(&with_cookie(&cookie), now()).permission, Permission::Nothing);
    }

    #[test]
    fn a_form_is_ours_only_with_what_we_gave_this_visitor() {
        let access = access(Some(READ), Some(WRITE), false);
        let (one, _) = access.sign_in(WRITE, now()).unwrap();
        let (two, _) = access.sign_in(WRITE, now() + SignedDuration::from_secs(1)).unwrap();
        let (one, two) = (access.visitor(&with_cookie(&one), now()), access.visitor(&with_cookie(&two), now()));
        assert!(access.is_ours(&one, &one.csrf) && access.is_ours(&two, &two.csrf));
        assert!(!access.is_ours(&one, &two.csrf) && !access.is_ours(&one, "") && !access.is_ours(&one, "x"));
        let program = access.visitor(&bearer(WRITE), now());
        assert!(!access.is_ours(&program, ""));
    }

    #[test]
    fn tokens_are_not_told() {
        assert!(!format!("{:?}", access(Some(READ), Some(WRITE), false)).contains("token to"));
    }
}
