//! Turns texts into rows of numbers.

use macmlx_models::{Encoder, EncoderText};

use crate::error::{Result, StepError};

/// One row a text.
pub(super) fn forward(encoder: &dyn Encoder, texts: &[EncoderText<'_>]) -> Result<Vec<Vec<f32>>> {
    let features = encoder.features() as usize;
    let array = encoder.forward(texts)?;
    mlx_rs::transforms::eval([&array])?;
    let numbers = array.to_vec_exact::<f32>()?;
    if features == 0 || numbers.len() != features * texts.len() {
        return Err(StepError::Broken(
            "an encoder gave another number of rows than texts",
        ));
    }
    if !numbers.iter().all(|number| number.is_finite()) {
        return Err(StepError::Broken(
            "the model gave numbers that are none; its weights may be damaged",
        ));
    }
    Ok(numbers
        .chunks_exact(features)
        .map(<[f32]>::to_vec)
        .collect())
}

/// The first features, scaled to length 1.
pub(super) fn shorten(mut row: Vec<f32>, dimensions: u32) -> Vec<f32> {
    row.truncate(dimensions as usize);
    let length = row
        .iter()
        .map(|number| f64::from(*number).powi(2))
        .sum::<f64>()
        .sqrt();
    if length > 0.0 {
        for number in &mut row {
            *number = (f64::from(*number) / length) as f32;
        }
    }
    row
}
