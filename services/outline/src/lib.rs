//! What code looks like: symbols, their lines and their source. Nothing stands here yet; the crate
//! holds its place in the direction of dependencies.
