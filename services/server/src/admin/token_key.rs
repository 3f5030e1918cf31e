//! `admin token-key`: a fresh key for `CAIRN_TOKEN_KEYS`.

use clap::Args;

use crate::auth::token::TokenKeys;

/// What the key is called.
#[derive(Clone, Debug, Args)]
pub struct TokenKeyCommand {
    /// The name under which tokens say that they are signed with it: 1 to 32 of A-Z a-z 0-9 _ -.
    #[arg(default_value = "k1", value_parser = parse_kid)]
    kid: String,
}

impl TokenKeyCommand {
    /// An entry of the ring, to be printed.
    #[must_use]
    pub fn run(&self) -> String {
        TokenKeys::generate(&self.kid)
    }
}

fn parse_kid(kid: &str) -> Result<String, String> {
    let read = TokenKeys::parse(&TokenKeys::generate(kid));
    read.map(|_| kid.to_owned())
        .map_err(|error| error.to_string())
}
