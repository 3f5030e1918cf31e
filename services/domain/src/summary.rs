//! Summary: what one session came to.

/// A summary as it is about to be stored: within its limits, not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryDraft {
    /// What was asked; its title.
    pub request: String,
    /// What was looked into.
    pub investigated: String,
    /// What was learned.
    pub learned: String,
    /// What was done.
    pub completed: String,
    /// What comes next.
    pub next_steps: String,
    /// Anything else.
    pub notes: String,
}

impl SummaryDraft {
    /// Whether its first five fields all say nothing; notes alone make no summary.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        [
            &self.request,
            &self.investigated,
            &self.learned,
            &self.completed,
            &self.next_steps,
        ]
        .into_iter()
        .all(|field| field.trim().is_empty())
    }
}
