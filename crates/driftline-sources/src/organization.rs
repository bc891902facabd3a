//! Accounts and organizations: how their ids look, and what a kept list of accounts is called.

/// What an account of an organization is called.
pub const KIND: &str = "AWS::Organizations::Account";

/// The source that lists of accounts are kept as. Its scopes are `<manager>/global` for a whole organization and
/// `<manager>/<unit>` for what is beneath a unit, with [`EXCLUDED`] behind it if it was listed to be left out.
pub const SOURCE: &str = "organization";

/// Ends the scope of a list of accounts that nobody wants to look at.
pub const EXCLUDED: &str = "excluded";

/// The state of an account that can be looked at.
pub const ACTIVE: &str = "ACTIVE";

/// Twelve digits.
pub fn is_account(id: &str) -> bool {
    id.len() == 12 && id.chars().all(|char| char.is_ascii_digit())
}

/// Whether this can be the root or a unit of an organization: `r-ab12`, `ou-ab12-cd34ef56`.
pub fn is_parent(id: &str) -> bool {
    let word = |text: &str, least: usize| {
        (least..=32).contains(&text.len())
            && text.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit())
    };
    match id.split_once('-') {
        Some(("r", root)) => word(root, 4),
        Some(("ou", rest)) => rest.split_once('-').is_some_and(|(root, unit)| word(root, 4) && word(unit, 8)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_roots_and_units_are_known_by_their_form() {
        for good in ["r-ab12", "ou-ab12-cd34ef56"] {
            assert!(is_parent(good), "{good}");
        }
        for bad in ["", "r-", "ou-ab12", "ou-AB12-CD34EF56", "o-ab12cd34", "ou-ab12-cd34ef56/x", "123456789012"] {
            assert!(!is_parent(bad), "{bad}");
        }
        assert!(is_account("123456789012") && !is_account("12345678901") && !is_account("12345678901a"));
    }
}
