//! Times an encoder's batches without the engine, as JSON.
//!
//! `encoder_times FOLDER [texts] [tokens] [runs]`

#![expect(clippy::print_stdout, reason = "an example talks to its terminal")]

use std::{error::Error, path::Path, time::Instant};

use macmlx_models::{EncoderOptions, EncoderText, load_encoder};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let folder = arguments.first().ok_or("which folder?")?;
    let number = |index: usize, default| {
        arguments
            .get(index)
            .map_or(Ok(default), |text| text.parse::<usize>())
    };
    let (count, length, runs) = (number(1, 8)?, number(2, 32)?, number(3, 20)?);
    let encoder = load_encoder(Path::new(folder), &EncoderOptions::default())?.encoder;
    let tokens: Vec<Vec<u32>> = (0..count)
        .map(|text| {
            (0..length)
                .map(|i| ((text * 31 + i * 7) % 1000) as u32)
                .collect()
        })
        .collect();
    let texts: Vec<_> = tokens
        .iter()
        .map(|tokens| EncoderText {
            tokens,
            second_segment: None,
        })
        .collect();
    let mut times = Vec::with_capacity(runs);
    for _ in 0..=runs {
        let start = Instant::now();
        encoder.forward(&texts)?.eval()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.remove(0);
    times.sort_by(f64::total_cmp);
    println!(
        "{{\"texts\": {count}, \"tokens\": {length}, \"median_ms\": {:.2}, \"best_ms\": {:.2}}}",
        times[runs / 2],
        times[0],
    );
    Ok(())
}
