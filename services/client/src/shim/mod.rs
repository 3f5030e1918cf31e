//! The shim: an MCP server on standard input and output that forwards to the service.

use crate::exit::Failure;

/// Serves until standard input ends.
pub fn run() -> Result<(), Failure> {
    Err(Failure::Failed("not yet".to_owned()))
}
