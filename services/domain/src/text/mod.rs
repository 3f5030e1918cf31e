//! The one analyser of search text: for indexing, querying, ranking.
