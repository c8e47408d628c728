//! Development tasks: tidy, schema, man page.

fn main() {}
