//! Runs any number of sequences together on one model.
//!
//! [`policy`] decides, the rest acts: [`run_loop`] holds the queue and takes turns, [`start`] takes
//! a job apart, [`prefill`] and [`decode`] compute, [`recovery`] says who pays when a step fails.

mod decode;
mod entry;
mod policy;
mod prefill;
mod recovery;
mod request;
mod run_loop;
mod sequence;
mod start;

pub(crate) use run_loop::Scheduler;
