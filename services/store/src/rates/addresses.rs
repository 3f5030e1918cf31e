//! What is counted by address, because there is no caller yet: sign-ins that failed, and what
//! strangers begin. Redis away lets everybody in.

use std::net::IpAddr;
use std::time::Duration;

use super::{Bucket, Draw, Drawn, Rates, digest, wait};

/// How something was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// There was enough left.
    Yes,
    /// Nobody could count.
    No,
}

/// What is counted.
#[derive(Clone, Copy)]
enum Of {
    FailedSignIns,
    Strangers,
}

impl Of {
    /// The end of its keys.
    const fn name(self) -> &'static str {
        match self {
            Self::FailedSignIns => "failed",
            Self::Strangers => "strangers",
        }
    }
}

impl Rates {
    /// Whether an address may present something that was never seen to be good; takes nothing.
    ///
    /// # Errors
    /// How long to wait, if too much of what it presented was worth nothing.
    pub async fn look_at_sign_ins(&self, address: IpAddr) -> Result<(), Duration> {
        let drawn = self.draw_of(address, Of::FailedSignIns, 0.0, 0.0).await;
        let bucket = self.bucket(Of::FailedSignIns);
        match drawn.map(|drawn| bucket.left(drawn.used[0])) {
            Some(left) if left < 1.0 => Err(wait(bucket, left, 1.0)),
            _ => Ok(()),
        }
    }

    /// Counts what an address presented and was worth nothing, however much that was before.
    pub async fn note_failed_sign_in(&self, address: IpAddr) {
        self.draw_of(address, Of::FailedSignIns, 1.0, 0.0).await;
    }

    /// Takes what a stranger begins from an address.
    ///
    /// # Errors
    /// How long to wait, if there was too much of it.
    pub async fn take_stranger(&self, address: IpAddr) -> Result<Counted, Duration> {
        let bucket = self.bucket(Of::Strangers);
        match self.draw_of(address, Of::Strangers, 0.0, 1.0).await {
            None => Ok(Counted::No),
            Some(drawn) if drawn.is_granted => Ok(Counted::Yes),
            Some(drawn) => Err(wait(bucket, bucket.left(drawn.used[0]), 1.0)),
        }
    }

    /// All of a minute may come at once.
    fn bucket(&self, of: Of) -> Bucket {
        let most = match of {
            Of::FailedSignIns => self.limits.failed_sign_ins,
            Of::Strangers => self.limits.strangers,
        };
        Bucket::of(u64::from(most), u64::from(most))
    }

    async fn draw_of(&self, address: IpAddr, of: Of, told: f64, cost: f64) -> Option<Drawn> {
        let tag = digest(&format!("address\0{}", network(address)));
        let draws = [Draw {
            key: format!("cairn:rate:{{{tag}}}:{}", of.name()),
            bucket: self.bucket(of),
            told,
            cost,
        }];
        self.draw(&tag, &draws).await
    }
}

/// Whom an address stands for: whoever has one of version 6 has a whole network of them.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => {
            let [a, b, c, d, ..] = six.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_version_6_is_one_address() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.7"), of("10.0.0.7"));
        assert_ne!(of("10.0.0.7"), of("10.0.0.8"));
    }
}
