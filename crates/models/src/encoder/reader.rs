//! An architecture and its head as an [`Encoder`].

use mlx_rs::{Array, Device, DeviceType, Stream, ops, with_stream};

use super::{Encoder, EncoderSizes, EncoderText, Head};
use crate::{ModelError, Result, arch::EncoderArchitecture, compute::Compute};

/// Reads texts with an architecture and gives what its head makes of them.
#[derive(Debug)]
pub(crate) struct Reader<T> {
    architecture: T,
    head: Head,
    sizes: EncoderSizes,
    /// Tokens of the longest text.
    positions: Option<usize>,
    compute: Compute,
    /// A second stream of the CPU, where half of the texts are computed beside the others: most of
    /// MLX's work there is on one thread a stream.
    second_stream: Option<Stream>,
}

impl<T: EncoderArchitecture> Reader<T> {
    pub(crate) fn new(
        architecture: T,
        head: Head,
        positions: Option<usize>,
        compute: Compute,
    ) -> Result<Self> {
        let second_stream = compute
            .saves_operations
            .then(|| Ok::<_, ModelError>(Stream::new_with_device(&Device::new(DeviceType::Cpu, 0))))
            .transpose()?;
        Ok(Self {
            sizes: architecture.sizes(),
            architecture,
            head,
            positions,
            compute,
            second_stream,
        })
    }

    /// Refuses what would read past the end of a table.
    fn check(&self, texts: &[EncoderText<'_>]) -> Result<()> {
        for text in texts {
            let tokens = text.tokens.len();
            match self.positions {
                Some(limit) if tokens > limit => {
                    return Err(ModelError::TextTooLong { tokens, limit });
                }
                _ => {}
            }
            let vocab = self.sizes.vocab.unsigned_abs();
            if let Some(&token) = text.tokens.iter().find(|&&token| token >= vocab) {
                return Err(ModelError::UnknownToken { token, vocab });
            }
        }
        Ok(())
    }

    fn read(&self, texts: &[EncoderText<'_>]) -> Result<Array> {
        let rows = self.architecture.forward(texts, self.compute)?;
        self.head.forward(&rows)
    }
}

impl<T: EncoderArchitecture> Encoder for Reader<T> {
    fn forward(&self, texts: &[EncoderText<'_>]) -> Result<Array> {
        self.check(texts)?;
        if texts.is_empty() {
            return Ok(ops::zeros::<f32>(&[0, self.features() as i32])?);
        }
        let Some(stream) = &self.second_stream else {
            return self.read(texts);
        };
        let mut order: Vec<_> = (0..texts.len()).collect();
        order.sort_by_key(|&index| texts[index].tokens.len());
        let sorted: Vec<_> = order.iter().map(|&index| texts[index]).collect();
        let (short, long) = sorted.split_at(even_split(&sorted));
        if short.is_empty() {
            return self.read(texts);
        }
        let short = with_stream(stream, || self.read(short))?;
        let sorted = ops::concatenate(&[short, self.read(long)?], 0)?;
        let mut places = vec![0; order.len()];
        for (place, &index) in order.iter().enumerate() {
            places[index] = place as u32;
        }
        Ok(sorted.take_axis(Array::from_slice(&places, &[places.len() as i32]), 0)?)
    }

    fn pads(&self) -> bool {
        !self.compute.saves_operations
    }

    fn features(&self) -> u32 {
        self.head.features()
    }

    fn vocab_size(&self) -> u32 {
        self.sizes.vocab.unsigned_abs()
    }
}

/// How many of the first texts have about half of the tokens.
fn even_split(texts: &[EncoderText<'_>]) -> usize {
    let total: usize = texts.iter().map(|text| text.tokens.len()).sum();
    let mut before = 0;
    let larger_part = |text: &EncoderText<'_>| {
        let part = before.max(total - before);
        before += text.tokens.len();
        part
    };
    let parts = texts.iter().map(larger_part).enumerate();
    parts
        .min_by_key(|(_, part)| *part)
        .map_or(0, |(split, _)| split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_even_by_tokens() {
        let tokens = [0; 64];
        let split = |lengths: &[usize]| {
            let texts = lengths.iter().map(|&length| EncoderText {
                tokens: &tokens[..length],
                second_segment: None,
            });
            even_split(&texts.collect::<Vec<_>>())
        };
        assert_eq!(split(&[9]), 0);
        assert_eq!(split(&[9, 9]), 1);
        assert_eq!(split(&[9; 8]), 4);
        assert_eq!(split(&[5, 5, 5, 5, 20]), 4);
        assert_eq!(split(&[1, 40]), 1);
        assert_eq!(split(&[10, 10, 10, 30, 30]), 3);
    }
}
