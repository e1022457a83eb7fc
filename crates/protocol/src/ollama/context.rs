//! `context`: a conversation as the numbers that a client keeps and hands back.
//!
//! The server remembers nothing: the numbers are the conversation. Three bytes make a number, so
//! that every client's integers hold it. The first number says that it is ours and in which form,
//! the second how many bytes there are, the third is a sum that damage changes.

use macmlx_inference::Message;

use crate::Error;

/// "mX" and the version of the form.
const MARK: i32 = 0x6D_58_01;
const HEAD: usize = 3;

/// The numbers of a conversation.
pub(super) fn encode(conversation: &[Message]) -> Vec<i32> {
    // Messages are plain data: they always have a JSON form.
    let bytes = serde_json::to_vec(conversation).unwrap_or_default();
    let mut numbers = vec![MARK, i32::try_from(bytes.len()).unwrap_or(0), sum(&bytes)];
    numbers.extend(bytes.chunks(3).map(|chunk| {
        let mut number = [0; 4];
        number[..chunk.len()].copy_from_slice(chunk);
        i32::from_le_bytes(number)
    }));
    numbers
}

/// The conversation that numbers were made of.
pub(super) fn decode(numbers: &[i64]) -> Result<Vec<Message>, Error> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    read(numbers).ok_or_else(|| {
        Error::invalid(
            "context",
            "context: these numbers are not from an earlier answer of this server",
        )
    })
}

fn read(numbers: &[i64]) -> Option<Vec<Message>> {
    let (head, body) = numbers.split_at_checked(HEAD)?;
    let length = usize::try_from(head[1]).ok()?;
    if head[0] != i64::from(MARK) || body.len() != length.div_ceil(3) {
        return None;
    }
    let mut bytes = Vec::with_capacity(body.len() * 3);
    for &number in body {
        let number = u32::try_from(number)
            .ok()
            .filter(|&number| number < 1 << 24)?;
        bytes.extend_from_slice(&number.to_le_bytes()[..3]);
    }
    bytes.truncate(length);
    (i64::from(sum(&bytes)) == head[2])
        .then(|| serde_json::from_slice(&bytes).ok())
        .flatten()
}

/// FNV-1a, cut to what a number here holds.
fn sum(bytes: &[u8]) -> i32 {
    let sum = bytes.iter().fold(0x811C_9DC5_u32, |sum, &byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    (sum & 0xFF_FFFF) as i32
}

#[cfg(test)]
mod tests {
    use macmlx_inference::Role;

    use super::*;

    fn wide(numbers: &[i32]) -> Vec<i64> {
        numbers.iter().copied().map(i64::from).collect()
    }

    #[test]
    fn what_is_said_comes_back() {
        for text in ["", "a", "ab", "abc", "Grüße, 世界 \u{0}"] {
            let conversation = vec![
                Message::text(Role::System, text),
                Message::text(Role::User, text.repeat(7)),
            ];
            let numbers = encode(&conversation);
            assert_eq!(decode(&wide(&numbers)).unwrap(), conversation);
        }
        assert_eq!(decode(&[]).unwrap(), []);
    }

    #[test]
    fn foreign_and_damaged_numbers_are_refused() {
        let numbers = wide(&encode(&[Message::text(Role::User, "hello")]));
        for index in 0..numbers.len() {
            for value in [-1, 0, 1 << 24, i64::MAX, numbers[index] + 1] {
                if value == numbers[index] {
                    continue;
                }
                let mut damaged = numbers.clone();
                damaged[index] = value;
                assert!(decode(&damaged).is_err(), "{index}: {value}");
            }
            assert!(index == 0 || decode(&numbers[..index]).is_err());
        }
        assert!(decode(&[1, 2, 3, 128_006]).is_err());
    }
}
