//! The squall binary.

fn main() {}
