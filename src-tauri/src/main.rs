//! macMLX in the menu bar.

fn main() {}
