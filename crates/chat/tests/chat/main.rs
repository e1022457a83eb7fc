//! The crate as the engine sees it, on small tokenizers and on templates judged by jinja2.

mod detokenizer;
mod model;
mod model_output;
mod output_cases;
mod templates;
mod tokenizers;
