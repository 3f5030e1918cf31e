//! Tests of the spool as a whole.
