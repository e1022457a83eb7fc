//! Grammars of JSON schemas, judged by the JSON Schema test suite and by schemas that people wrote,
//! with the starter model's tokenizer and with what it draws.
//!
//! `cargo xtask test schemas` fetches all of it and prints the figures at the end.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod accepts;
mod conformance;
mod corpus;
mod figures;
mod functions;
mod sampled;
mod starter;

use std::{sync::Arc, time::Duration};

use libtest_mimic::{Arguments, Trial};

use crate::{figures::Figures, starter::Starter};

fn main() {
    let arguments = Arguments::from_args();
    let figures = Arc::new(Figures::default());
    let starter = Arc::new(Starter::import());
    let corpus = Arc::new(corpus::schemas());
    let mut trials: Vec<Trial> = conformance::trials(&starter, &figures);
    trials.extend(corpus::trials(&corpus, &starter, &figures));
    trials.extend(sampled::trials(&corpus, &starter, &figures));
    let conclusion = libtest_mimic::run(&arguments, trials);
    figures.print();
    // A process must not end while MLX computes.
    drop(starter);
    assert!(macmlx_engine::wait_for_end(Duration::from_mins(1)));
    conclusion.exit();
}
