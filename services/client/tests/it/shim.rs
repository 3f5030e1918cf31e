//! The shim as an agent host sees it.
