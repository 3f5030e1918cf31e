//! How a command ends: the exit statuses of the client and the sentence that goes with each.
//!
//! A hook does not use these: it always ends with 0.

use crate::problem::Problem;

/// What stands before why there was no answer.
pub const UNREACHABLE: &str = "the service cannot be reached: ";

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something went wrong that fits none of the others.
    #[error("{0}")]
    Failed(String),
    /// No credential, or one that the service does not accept.
    #[error("{0}; sign in with: cairn login")]
    NotSignedIn(String),
    /// No answer in time.
    #[error("{UNREACHABLE}{0}")]
    Unreachable(String),
    /// The service answered, and could not do its work.
    #[error("the service failed: {0}")]
    Fault(String),
    /// Git did not name the repository in this time.
    #[error("git did not name this repository's first commit within {} s", .0.as_secs_f32())]
    Slow(std::time::Duration),
    /// The service understood and said no.
    #[error("{}", .0.text())]
    Refused(Box<Problem>),
    /// The command was called wrongly.
    #[error("{0}")]
    Usage(String),
    /// Input that cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A file of the client cannot be written.
    #[error("cannot write {what}: {cause}")]
    CannotWrite {
        /// The file or folder.
        what: String,
        /// What the system said.
        cause: std::io::Error,
    },
}

impl Failure {
    /// The exit status. Never 2: agent hosts read a 2 as an order to stop.
    #[must_use]
    pub const fn status(&self) -> u8 {
        match self {
            Self::Failed(_) | Self::Fault(_) | Self::Slow(_) => 1,
            Self::NotSignedIn(_) => 3,
            Self::Unreachable(_) => 4,
            Self::Refused(_) => 5,
            Self::Usage(_) => 64,
            Self::Unreadable(_) => 65,
            Self::CannotWrite { .. } => 73,
        }
    }

    /// The failure that a problem of the service is for a command.
    #[must_use]
    pub fn of(problem: Problem) -> Self {
        match problem.status {
            401 => Self::NotSignedIn(problem.detail.unwrap_or(problem.title)),
            _ if problem.status == 500 => Self::Fault(problem.text()),
            _ if problem.status >= 500 => Self::Unreachable(problem.text()),
            _ => Self::Refused(Box::new(problem)),
        }
    }

    /// For `map_err` on a write: names the file.
    pub fn writing(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |cause| Self::CannotWrite {
            what: path.display().to_string(),
            cause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_fails_is_not_one_that_is_away() {
        let failure = |code| Failure::of(Problem::of_status(code));
        let fault = failure(500);
        assert_eq!(fault.status(), 1);
        assert!(
            fault
                .to_string()
                .starts_with("the service failed: internal"),
            "{fault}"
        );
        assert_eq!(failure(503).status(), 4);
    }
}
