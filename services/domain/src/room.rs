//! Room: how much a text may take, in the two measures that hosts use at once.

/// How much a text takes, in the two measures that hosts use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    ascii: usize,
    others: usize,
}

impl Size {
    /// The size of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let others = crate::bounds::units(text) - ascii;
        Self { ascii, others }
    }

    /// The size of so many ASCII characters.
    #[must_use]
    pub const fn ascii(count: usize) -> Self {
        Self {
            ascii: count,
            others: 0,
        }
    }

    /// UTF-16 code units.
    #[must_use]
    pub const fn units(self) -> usize {
        self.ascii + self.others
    }

    /// Estimated tokens (contract, "Units").
    #[must_use]
    pub const fn tokens(self) -> usize {
        self.ascii.div_ceil(4) + self.others
    }
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ascii: self.ascii + other.ascii,
            others: self.others + other.others,
        }
    }
}

impl std::ops::Sub for Size {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            ascii: self.ascii.saturating_sub(other.ascii),
            others: self.others.saturating_sub(other.others),
        }
    }
}

/// How much a text may take: in both measures at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Room {
    /// UTF-16 code units.
    pub units: usize,
    /// Estimated tokens; `usize::MAX` for a host that counts units alone.
    pub tokens: usize,
}

impl Room {
    /// No limit at all.
    pub const ENDLESS: Self = Self::units(usize::MAX);

    /// Room of so many units.
    #[must_use]
    pub const fn units(units: usize) -> Self {
        Self {
            units,
            tokens: usize::MAX,
        }
    }

    /// Whether a text of this size has room.
    #[must_use]
    pub const fn holds(self, size: Size) -> bool {
        size.units() <= self.units && size.tokens() <= self.tokens
    }

    /// What is left beside a text.
    #[must_use]
    pub const fn less(self, size: Size) -> Self {
        Self {
            units: self.units.saturating_sub(size.units()),
            tokens: self.tokens.saturating_sub(size.tokens()),
        }
    }

    /// So many hundredths of it.
    #[must_use]
    pub fn share(self, hundredths: usize) -> Self {
        let part = |whole: usize| whole / 100 * hundredths + whole % 100 * hundredths / 100;
        Self {
            units: part(self.units),
            tokens: part(self.tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_measures_are_held() {
        let size = Size::of("abcd修");
        assert_eq!((size.units(), size.tokens()), (5, 2));
        let room = Room {
            units: 5,
            tokens: 1,
        };
        assert!(!room.holds(size) && Room::units(5).holds(size) && !Room::units(4).holds(size));
        assert_eq!(Room::units(10_000).share(30).units, 3_000);
        assert!(Room::ENDLESS.share(30).less(size).units > 1_000_000_000);
        assert_eq!(Room::units(7).less(size).units, 2);
    }
}
