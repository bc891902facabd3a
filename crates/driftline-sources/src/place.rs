//! The places of cloud accounts: `aws/<account>/<region>`.

use driftline_core::key::{GLOBAL, NOWHERE};

/// Writes the place made of an account and a region, filling in from an ARN what is not given.
pub fn write_place(account: Option<&str>, region: Option<&str>, id: &str, out: &mut String) {
    out.clear();
    let mut arn = id.starts_with("arn:").then(|| id.splitn(6, ':').skip(3));
    let arn_region = arn.as_mut().and_then(Iterator::next).filter(|part| !part.is_empty());
    let arn_account = arn.as_mut().and_then(Iterator::next).filter(|part| !part.is_empty());
    match (account.or(arn_account), region.or(arn_region)) {
        (None, None) => out.push_str(NOWHERE),
        (account, region) => {
            out.push_str("aws/");
            out.push_str(account.unwrap_or(NOWHERE));
            out.push('/');
            out.push_str(region.unwrap_or(GLOBAL));
        }
    }
}

/// The account and region of a place that has them.
pub fn account_and_region(place: &str) -> (Option<&str>, Option<&str>) {
    let mut parts = place.split('/');
    if parts.next() != Some("aws") {
        return (None, None);
    }
    let account = parts.next().filter(|part| *part != NOWHERE);
    let region = parts.next().filter(|part| *part != GLOBAL);
    (account, region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_from_what_is_given_and_then_from_the_arn() {
        for (account, region, id, place) in [
            (Some("1"), Some("eu-west-1"), "sg-1", "aws/1/eu-west-1"),
            (None, None, "arn:aws:lambda:us-east-1:2:function:f", "aws/2/us-east-1"),
            (Some("1"), None, "arn:aws:lambda:us-east-1:2:function:f", "aws/1/us-east-1"),
            (None, None, "arn:aws:s3:::bucket", "-"),
            (Some("1"), None, "arn:aws:iam::1:user/u", "aws/1/global"),
            (None, Some("eu-west-1"), "x", "aws/-/eu-west-1"),
            (None, None, "anything", "-"),
        ] {
            let mut out = String::from("old");
            write_place(account, region, id, &mut out);
            assert_eq!(out, place);
        }
        assert_eq!(account_and_region("aws/1/global"), (Some("1"), None));
        assert_eq!(account_and_region("k8s/prod/default"), (None, None));
    }
}
