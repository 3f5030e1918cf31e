//! Why a step is as it is: a code for programs, a sentence for the reader.

/// The reason a step gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Step 1 found nothing.
    NoResults,
    /// Step 2 found none of the anchors.
    ContextNotFound,
    /// Step 3 found none of the records.
    DetailsNotFound,
    /// Rows were left out to stay within the size limit.
    IndexTruncated,
    /// The caller chose to stop.
    CallerStopped,
    /// No title of the index shares a word with the query.
    NoRelevantCandidates,
    /// Nothing around the best hits shares a word with the query.
    NoRelevantContext,
    /// The continuation could not be kept.
    ContinuationUnavailable,
}

impl Reason {
    /// All reasons, in the order of the contract's table.
    pub const ALL: [Self; 8] = [
        Self::NoResults,
        Self::ContextNotFound,
        Self::DetailsNotFound,
        Self::IndexTruncated,
        Self::CallerStopped,
        Self::NoRelevantCandidates,
        Self::NoRelevantContext,
        Self::ContinuationUnavailable,
    ];

    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoResults => "no_results",
            Self::ContextNotFound => "context_not_found",
            Self::DetailsNotFound => "details_not_found",
            Self::IndexTruncated => "index_truncated",
            Self::CallerStopped => "caller_stopped",
            Self::NoRelevantCandidates => "no_relevant_candidates",
            Self::NoRelevantContext => "no_relevant_context",
            Self::ContinuationUnavailable => "continuation_unavailable",
        }
    }

    /// The sentence in the text of a step.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NoResults => "Nothing in memory matches this query.",
            Self::ContextNotFound => "Nothing is left around the selected ids.",
            Self::DetailsNotFound => "The selected records are gone or no longer readable.",
            Self::IndexTruncated => "Some rows were left out to stay within the size limit.",
            Self::CallerStopped => "Search ended without selection.",
            Self::NoRelevantCandidates => {
                "No title matches the query's words; these are the nearest. Choose yourself."
            }
            Self::NoRelevantContext => "Nothing around the best hits matches the query.",
            Self::ContinuationUnavailable => "The search cannot be continued just now.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_sentence() {
        let lines: Vec<String> = Reason::ALL
            .into_iter()
            .map(|reason| format!("{}: {}", reason.code(), reason.sentence()))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        no_results: Nothing in memory matches this query.
        context_not_found: Nothing is left around the selected ids.
        details_not_found: The selected records are gone or no longer readable.
        index_truncated: Some rows were left out to stay within the size limit.
        caller_stopped: Search ended without selection.
        no_relevant_candidates: No title matches the query's words; these are the nearest. Choose yourself.
        no_relevant_context: Nothing around the best hits matches the query.
        continuation_unavailable: The search cannot be continued just now.
        ");
    }
}
