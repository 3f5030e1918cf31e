//! mem_search.
