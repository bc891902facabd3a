//! Times as people write and read them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::error::{CommandError, CommandResult};

/// `90s`, `30m`, `2h`, `7d`, `4w`.
pub(crate) fn parse_duration(text: &str) -> CommandResult<SignedDuration> {
    let wrong =
        || CommandError::new(format!("`{text}` is not a length of time")).hint("write it like 30m, 2h, 7d or 4w");
    let split = text.find(|char: char| !char.is_ascii_digit()).ok_or_else(wrong)?;
    let number: i64 = text[..split].parse().map_err(|_| wrong())?;
    let seconds = match &text[split..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(wrong()),
    };
    number.checked_mul(seconds).map(SignedDuration::from_secs).ok_or_else(wrong)
}

/// A moment: RFC 3339, a date (its start, UTC), or how long ago.
pub(crate) fn parse_moment(text: &str, now: Timestamp) -> CommandResult<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    if let Ok(date) = text.parse::<Date>()
        && let Ok(start) = date.to_zoned(TimeZone::UTC)
    {
        return Ok(start.timestamp());
    }
    if let Ok(ago) = parse_duration(text)
        && let Ok(moment) = now.checked_sub(ago)
    {
        return Ok(moment);
    }
    Err(CommandError::new(format!("`{text}` is not a time"))
        .hint("write it like 2026-06-29T10:00:00Z, 2026-06-29, or 2h for two hours ago"))
}

/// How long ago, in one unit: `3 h ago`.
pub(crate) fn ago(moment: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(moment).as_secs();
    let (amount, unit) = match seconds.unsigned_abs() {
        0..60 => return "just now".into(),
        60..3_600 => (seconds / 60, "min"),
        3_600..172_800 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    if amount < 0 { format!("in {} {unit}", -amount) } else { format!("{amount} {unit} ago") }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now: Timestamp = "2026-06-29T10:00:00Z".parse().unwrap();
        for (text, moment) in [
            ("2026-06-01T00:00:00Z", Some("2026-06-01T00:00:00Z")),
            ("2026-06-01", Some("2026-06-01T00:00:00Z")),
            ("2h", Some("2026-06-29T08:00:00Z")),
            ("7d", Some("2026-06-22T10:00:00Z")),
            ("soon", None),
            ("", None),
            ("99999999999999999999d", None),
        ] {
            let expected = moment.map(|moment| moment.parse::<Timestamp>().unwrap());
            assert_eq!(parse_moment(text, now).ok(), expected, "{text}");
        }
        assert_eq!(ago("2026-06-29T07:00:00Z".parse().unwrap(), now), "3 h ago");
        assert_eq!(ago("2026-06-29T11:00:00Z".parse().unwrap(), now), "in 1 h");
    }
}
