//! Vectors on their way to a client.

/// How far the square of a length may be from 1 by rounding alone.
const ROUNDING: f32 = 1e-5;

/// Scales a vector to length 1. One that has it, but for rounding, stays as it is, so that all
/// dialects give the same numbers; so does one of zeros.
pub(crate) fn normalize(vector: &mut [f32]) {
    let square: f32 = vector.iter().map(|feature| feature * feature).sum();
    if square > 0.0 && (square - 1.0).abs() > ROUNDING {
        let length = square.sqrt();
        for feature in vector {
            *feature /= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(vector: &[f32]) -> Vec<f32> {
        let mut vector = vector.to_vec();
        normalize(&mut vector);
        vector
    }

    #[test]
    fn vectors_get_the_length_of_one() {
        assert_eq!(normalized(&[3.0, -4.0]), [0.6, -0.8]);
        assert_eq!(normalized(&[1e-3, 0.0]), [1.0, 0.0]);
    }

    #[test]
    fn what_has_it_already_is_not_rounded_again() {
        let unit = [0.600_000_1, 0.8];
        assert_eq!(normalized(&unit), unit);
        assert_eq!(normalized(&[0.0, 0.0]), [0.0, 0.0]);
        assert_eq!(normalized(&[]), [0.0; 0]);
    }
}
