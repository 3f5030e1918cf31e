//! What a context says about cost: the stats line and the footer (contract 6.4). The cost of one
//! record is counted where the record is made.

use super::{ContextObservation, Options};

/// The figures of the observations that a context delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many observations.
    pub observations: usize,
    /// Tokens to read them all.
    pub read: u64,
    /// Tokens it took to produce them all.
    pub work: u64,
}

impl Stats {
    /// The figures of these observations.
    #[must_use]
    pub fn of(observations: &[&ContextObservation]) -> Self {
        Self {
            observations: observations.len(),
            read: observations.iter().map(|o| u64::from(o.read_tokens)).sum(),
            work: observations.iter().map(|o| u64::from(o.work_tokens)).sum(),
        }
    }

    /// Tokens that reading saves over working it out again.
    #[must_use]
    pub const fn savings(self) -> u64 {
        self.work.saturating_sub(self.read)
    }

    /// The line before the days.
    pub(super) fn line(self, options: Options) -> String {
        let (count, read, work) = (self.observations, grouped(self.read), grouped(self.work));
        let savings = self.savings();
        let saved = if savings == 0 {
            String::new()
        } else if options.show_savings_percent {
            format!(" | {}% savings", rounded(100 * savings, self.work))
        } else if options.show_savings_amount {
            format!(" | {}t saved", grouped(savings))
        } else {
            String::new()
        };
        format!("Stats: {count} obs ({read}t read) | {work}t work{saved}")
    }

    /// The last line; `None` if reading saves nothing.
    pub(super) fn footer(self) -> Option<String> {
        let thousands = rounded(self.work, 1_000).max(1);
        (self.savings() > 0).then(|| {
            format!(
                "Access {thousands}k tokens of past work via get_observations([IDs]) or \
                 mem-search skill."
            )
        })
    }
}

/// A quotient rounded half up.
pub(super) const fn rounded(dividend: u64, divisor: u64) -> u64 {
    (2 * dividend + divisor) / (2 * divisor)
}

/// A number with a comma before every three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn options(show_savings_percent: bool, show_savings_amount: bool) -> Options {
        Options {
            show_savings_percent,
            show_savings_amount,
            ..Options::default()
        }
    }

    #[rstest]
    #[case(
        54,
        6_600,
        options(true, false),
        "(54t read) | 6,600t work | 99% savings"
    )]
    #[case(
        54,
        6_600,
        options(true, true),
        "(54t read) | 6,600t work | 99% savings"
    )]
    #[case(
        54,
        6_600,
        options(false, true),
        "(54t read) | 6,600t work | 6,546t saved"
    )]
    #[case(54, 6_600, options(false, false), "(54t read) | 6,600t work")]
    #[case(100, 100, options(true, false), "(100t read) | 100t work")]
    #[case(300, 0, options(true, false), "(300t read) | 0t work")]
    #[case(199, 200, options(true, false), "(199t read) | 200t work | 1% savings")]
    #[case(1_234_567, 0, options(true, false), "(1,234,567t read) | 0t work")]
    fn the_stats_line(
        #[case] read: u64,
        #[case] work: u64,
        #[case] options: Options,
        #[case] line: &str,
    ) {
        let stats = Stats {
            observations: 4,
            read,
            work,
        };
        assert_eq!(stats.line(options), format!("Stats: 4 obs {line}"));
    }

    #[rstest]
    #[case(0, 6_600, Some("7k"))]
    #[case(0, 6_499, Some("6k"))]
    #[case(0, 10, Some("1k"))]
    #[case(10, 10, None)]
    fn the_footer_tells_thousands_and_at_least_one(
        #[case] read: u64,
        #[case] work: u64,
        #[case] told: Option<&str>,
    ) {
        let stats = Stats {
            observations: 1,
            read,
            work,
        };
        let footer = stats.footer();
        let word = footer.as_deref().and_then(|line| line.split(' ').nth(1));
        assert_eq!(word, told);
    }
}
