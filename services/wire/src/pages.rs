//! Pages of lists that have no filters of their own (contract 16).

use cairn_domain::Rejection;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::query::Pairs;

/// Which page of a list, as it is documented. It is read by [`PageAsk::read`].
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters that are read as pairs")]
pub struct PageQuery {
    /// Items of a page: 1 to 200, 50 by default.
    limit: Option<u32>,
    /// Where the page before ended.
    cursor: Option<String>,
}

/// Which page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageAsk {
    /// Items of it.
    pub limit: u32,
    /// Where the page before ended, as it was answered.
    pub cursor: Option<String>,
}

impl PageAsk {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `invalid_field` naming the parameter and what is allowed.
    pub fn read(pairs: &Pairs) -> Result<Self, Rejection> {
        Ok(Self {
            limit: pairs.page()?,
            cursor: pairs.text("cursor").map(str::to_owned),
        })
    }
}

/// A page of a list, as a client reads one that it only passes on.
#[derive(Clone, Debug, Deserialize)]
pub struct Page<T> {
    /// Its items.
    pub items: Vec<T>,
    /// The cursor of the next page; none on the last one.
    #[serde(default)]
    pub next_cursor: Option<String>,
}
