//! Measures: a rate with its latencies, and what several rounds of two sides come to.

use anyhow::bail;
use hdrhistogram::Histogram;

/// Latencies are kept to this many digits.
const DIGITS: u8 = 3;

/// One run of one side.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Operations a second.
    pub rate: f64,
    /// Microseconds of each operation.
    pub latencies: Histogram<u64>,
}

impl Measure {
    /// A rate and the latencies in microseconds behind it.
    ///
    /// # Errors
    /// If there are none.
    pub fn of(rate: f64, latencies: impl Iterator<Item = u64>) -> anyhow::Result<Self> {
        let mut histogram = Histogram::new(DIGITS)?;
        for latency in latencies {
            histogram.record(latency)?;
        }
        if histogram.is_empty() {
            bail!("nothing was done in the time given");
        }
        Ok(Self {
            rate,
            latencies: histogram,
        })
    }
}

/// Rounds of the service and of the raw limit, one after the other.
#[derive(Debug, Default)]
pub struct Rounds {
    pairs: Vec<(Measure, Measure)>,
}

/// What one side came to over all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// The median of the rounds' rates.
    pub rate: f64,
    /// Milliseconds that half of all operations stayed within.
    pub p50: f64,
    /// That 95 of 100 stayed within.
    pub p95: f64,
    /// That 99 of 100 stayed within.
    pub p99: f64,
}

impl Rounds {
    /// Adds a round.
    pub fn push(&mut self, service: Measure, raw: Measure) {
        self.pairs.push((service, raw));
    }

    /// The median of the rounds' ratios of the service's rate to the raw one.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        median(
            self.pairs
                .iter()
                .map(|(service, raw)| service.rate / raw.rate)
                .collect(),
        )
    }

    /// The service's side.
    ///
    /// # Errors
    /// If latencies of rounds cannot be added.
    pub fn service(&self) -> anyhow::Result<Side> {
        side(self.pairs.iter().map(|(service, _)| service))
    }

    /// The raw side.
    ///
    /// # Errors
    /// As [`Self::service`].
    pub fn raw(&self) -> anyhow::Result<Side> {
        side(self.pairs.iter().map(|(_, raw)| raw))
    }
}

fn side<'a>(measures: impl Iterator<Item = &'a Measure>) -> anyhow::Result<Side> {
    let mut all = Histogram::new(DIGITS)?;
    let mut rates = Vec::new();
    for measure in measures {
        all.add(&measure.latencies)?;
        rates.push(measure.rate);
    }
    let millis = |quantile| all.value_at_quantile(quantile) as f64 / 1_000.0;
    Ok(Side {
        rate: median(rates),
        p50: millis(0.50),
        p95: millis(0.95),
        p99: millis(0.99),
    })
}

/// The number in the middle, or between the two that are; not a number of none.
#[must_use]
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => numbers[count / 2],
        count => f64::midpoint(numbers[count / 2 - 1], numbers[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_the_median_of_the_rounds() {
        let measure = |rate| Measure::of(rate, [1_000, 3_000].into_iter()).expect("made");
        let mut rounds = Rounds::default();
        for (service, raw) in [(50.0, 100.0), (90.0, 100.0), (200.0, 250.0)] {
            rounds.push(measure(service), measure(raw));
        }
        assert!((rounds.ratio() - 0.8).abs() < 1e-9);
        let side = rounds.service().expect("added");
        assert!(
            (side.rate - 90.0).abs() < 1e-9 && side.p50 < 1.1 && side.p99 >= 3.0,
            "{side:?}"
        );
    }

    #[test]
    fn a_median_of_an_even_count_lies_between() {
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn nothing_done_is_no_measure() {
        assert!(Measure::of(1.0, std::iter::empty()).is_err());
    }
}
