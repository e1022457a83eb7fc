//! Times prefill and decode of a model folder, without the engine, as JSON.
//!
//! `step_times FOLDER [prompt tokens] [steps] [sequences]`

#![expect(clippy::print_stdout, reason = "an example talks to its terminal")]

use std::{error::Error, path::Path, time::Instant};

use macmlx_models::{LoadOptions, LogitsRows, Model, Segment, cache::CacheOptions, load};
use mlx_rs::{
    Array,
    ops::indexing::argmax_axis,
    transforms::{async_eval, eval},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let folder = arguments.first().ok_or("which folder?")?;
    let number = |index: usize, default| {
        arguments
            .get(index)
            .map_or(Ok(default), |text| text.parse::<usize>())
    };
    let (prompt, steps, sequences) = (number(1, 512)?, number(2, 64)?, number(3, 1)?);

    let start = Instant::now();
    let loaded = load(Path::new(folder), &LoadOptions::default())?;
    let load_ms = start.elapsed().as_secs_f64() * 1e3;
    let model = &*loaded.model;

    let new_cache = || model.new_cache(&CacheOptions::default());
    let mut caches = (0..sequences)
        .map(|_| new_cache())
        .collect::<macmlx_models::Result<Vec<_>>>()?;
    let ids: Vec<_> = (0..prompt).map(|i| (i * 7 % 50) as u32).collect();
    let ids = Array::from_slice(&ids, &[prompt as i32]);

    let start = Instant::now();
    let mut next = Vec::new();
    for cache in &mut caches {
        let segment = Segment {
            length: prompt,
            cache,
            logits: LogitsRows::Last,
        };
        let logits = model.forward(&ids, &mut [segment])?;
        next.push(argmax_axis(logits, -1, false)?);
        eval(next.iter().chain(cache.arrays()))?;
    }
    let prefill_ms = start.elapsed().as_secs_f64() * 1e3;

    // The next step is queued before the last one is read, as the engine does.
    let mut next = mlx_rs::ops::concatenate(&next, 0)?;
    let start = Instant::now();
    let mut building = 0.0;
    for _ in 0..steps {
        let begin = Instant::now();
        let following = decode(model, &next, &mut caches)?;
        building += begin.elapsed().as_secs_f64() * 1e3;
        async_eval([&following])?;
        next.eval()?;
        next = following;
    }
    next.eval()?;
    let step_ms = start.elapsed().as_secs_f64() * 1e3 / steps as f64;

    println!(
        "{{\"weights\": \"{}\", \"load_ms\": {load_ms:.0}, \"prefill_ms\": {prefill_ms:.1}, \
         \"step_ms\": {step_ms:.3}, \"build_ms\": {:.3}, \"peak_mb\": {}}}",
        loaded.facts.weights,
        building / steps as f64,
        mlx_rs::memory::peak_memory()? / 1_000_000,
    );
    Ok(())
}

/// One token for each sequence.
fn decode(
    model: &dyn Model,
    tokens: &Array,
    caches: &mut [macmlx_models::cache::SequenceCache],
) -> Result<Array> {
    let mut segments: Vec<_> = caches
        .iter_mut()
        .map(|cache| Segment {
            length: 1,
            cache,
            logits: LogitsRows::Last,
        })
        .collect();
    let logits = model.forward(tokens, &mut segments)?;
    Ok(argmax_axis(logits, -1, false)?)
}
