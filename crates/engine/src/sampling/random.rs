//! Random numbers as a pure function of seed, step and purpose, so that a draw never depends on
//! what else the machine has drawn.

/// What a number is for; different purposes of one step are independent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Draw = 1,
    Xtc = 2,
}

/// Uniform in `[0, 1)` with 23 bits: times any positive `f32` it stays strictly below that number,
/// which a draw from a cumulative distribution relies on.
pub(super) fn uniform(seed: u64, step: u64, purpose: Purpose) -> f32 {
    let mixed = mix(mix(mix(seed).wrapping_add(step)).wrapping_add(purpose as u64));
    (mixed >> 41) as f32 / (1_u64 << 23) as f32
}

/// `SplitMix64`: <https://prng.di.unimi.it/splitmix64.c>.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_and_uncorrelated() {
        let draws = 100_000_u64;
        let (mut sum, mut square, mut lagged) = (0.0, 0.0, 0.0);
        let mut previous = 0.0;
        for step in 0..draws {
            let value = f64::from(uniform(3, step, Purpose::Draw)) - 0.5;
            sum += value;
            square += value * value;
            lagged += value * previous;
            previous = value;
        }
        let count = draws as f64;
        assert!((sum / count).abs() < 0.005);
        assert!((square / count - 1.0 / 12.0).abs() < 0.002);
        assert!((lagged / count).abs() < 0.002);
    }

    #[test]
    fn seeds_steps_and_purposes_differ() {
        let bits = |seed, step, purpose| uniform(seed, step, purpose).to_bits();
        let one = bits(1, 1, Purpose::Draw);
        assert_ne!(one, bits(2, 1, Purpose::Draw));
        assert_ne!(one, bits(1, 2, Purpose::Draw));
        assert_ne!(one, bits(1, 1, Purpose::Xtc));
        // Neighbouring seeds must not be the same numbers one step later.
        assert_ne!(bits(1, 2, Purpose::Draw), bits(2, 1, Purpose::Draw));
    }
}
