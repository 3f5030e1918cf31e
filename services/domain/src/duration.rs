//! Durations in words, as a person says them (contract 5.4).

/// How long ago something was: `1 minute`, `about 47 hours`, `about 3 days`. What lies in the
/// future was a minute ago.
#[must_use]
pub fn ago(ms: i64) -> String {
    let minutes = half_up(ms.max(0), 60_000).max(1);
    let hours = half_up(minutes, 60);
    if minutes < 60 {
        counted(minutes, "minute", "")
    } else if hours < 48 {
        counted(hours, "hour", "about ")
    } else {
        counted(half_up(hours, 24), "day", "about ")
    }
}

const fn half_up(amount: i64, unit: i64) -> i64 {
    amount / unit + (amount % unit >= unit - unit / 2) as i64
}

fn counted(count: i64, noun: &str, about: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{about}{count} {noun}{s}")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const MINUTE: i64 = 60_000;

    #[rstest]
    #[case(-5, "1 minute")]
    #[case(0, "1 minute")]
    #[case(89_999, "1 minute")]
    #[case(90_000, "2 minutes")]
    #[case(59 * MINUTE + 29_999, "59 minutes")]
    #[case(59 * MINUTE + 30_000, "about 1 hour")]
    #[case(90 * MINUTE, "about 2 hours")]
    #[case((47 * 60 + 29) * MINUTE, "about 47 hours")]
    #[case((47 * 60 + 30) * MINUTE, "about 2 days")]
    #[case(3 * 24 * 60 * MINUTE, "about 3 days")]
    #[case(i64::MAX, "about 106751991167 days")]
    fn a_duration_is_said_as_people_do(#[case] ms: i64, #[case] said: &str) {
        assert_eq!(ago(ms), said);
    }
}
