//! The server over a real TCP connection, with backends that say what they are told to say.

mod guards;
mod limits;
mod routes;
mod shutdown;
mod streams;
mod support;
