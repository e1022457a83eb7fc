//! Decides the scheduler's next action from plain numbers; touches no model and no array.
//!
//! Invariants:
//! - Requests are admitted in order of arrival, whichever model they want.
//! - Prefill chunks and batches of texts never follow each other while a sequence waits for its
//!   decode step.
//! - Chunks and batches take turns.
//! - The oldest prefill gets every other chunk, so short prompts overtake without starving it.

/// What the decision depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State<'a> {
    /// First of the queue, if any waits.
    pub(crate) head: Option<Head>,
    /// A model is in memory and someone asked to drop it.
    pub(crate) unload_requested: bool,
    /// Choices that prefill or decode.
    pub(crate) occupied: usize,
    /// Choices that may run at once.
    pub(crate) max_batch: usize,
    /// Prompt tokens still to be computed by each prefilling request, oldest first; none is zero.
    pub(crate) prefilling: &'a [usize],
    /// Sequences ready for their next decode step.
    pub(crate) decoding: usize,
    /// Encoders have a batch to compute or a model to load or drop.
    pub(crate) encoding: bool,
    pub(crate) turns: Turns,
    /// Prefill chunks computed so far.
    pub(crate) chunks: u64,
    /// Tokens of one chunk.
    pub(crate) chunk_size: usize,
}

/// Which kinds of steps go before others, if they have anything to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Turns {
    decode_is_due: bool,
    encode_is_due: bool,
}

impl Turns {
    /// A prefill chunk was computed.
    pub(crate) fn note_prefill(&mut self) {
        *self = Self {
            decode_is_due: true,
            encode_is_due: true,
        };
    }

    /// A decode step was computed.
    pub(crate) fn note_decode(&mut self) {
        self.decode_is_due = false;
    }

    /// Encoders had their step.
    pub(crate) fn note_encode(&mut self) {
        *self = Self {
            decode_is_due: true,
            encode_is_due: false,
        };
    }
}

/// The request that waits longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its model is the one in memory.
    pub(crate) is_loaded: bool,
    /// Choices it asks for; zero when only the model is wanted.
    pub(crate) choices: usize,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start the first of the queue.
    Admit,
    /// Replace the model in memory, if any, by the one the first of the queue wants.
    Load,
    /// Drop the model in memory.
    Unload,
    /// Compute one chunk made of these shares.
    Prefill(Vec<Share>),
    /// Compute the next token of every ready sequence.
    Decode,
    /// Let encoders do one step.
    Encode,
    /// Nothing can be done before a message comes.
    Wait,
}

/// Part of a chunk that one prefilling request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    /// Index into [`State::prefilling`].
    pub(crate) index: usize,
    pub(crate) tokens: usize,
}

/// The next action.
pub(crate) fn next(state: &State<'_>) -> Action {
    if state.unload_requested {
        if state.occupied == 0 {
            return Action::Unload;
        }
    } else if let Some(head) = state.head {
        if !head.is_loaded {
            if state.occupied == 0 {
                return Action::Load;
            }
        } else if state.occupied == 0 || state.occupied + head.choices <= state.max_batch {
            return Action::Admit;
        }
    }
    if state.decoding > 0 && state.turns.decode_is_due {
        return Action::Decode;
    }
    if state.encoding && (state.turns.encode_is_due || state.prefilling.is_empty()) {
        return Action::Encode;
    }
    if !state.prefilling.is_empty() {
        return Action::Prefill(shares(state.prefilling, state.chunk_size, state.chunks));
    }
    if state.decoding > 0 {
        return Action::Decode;
    }
    Action::Wait
}

/// Fills a chunk: first the oldest or, every other time, the nearest to its end; then what room is
/// left goes to the nearest to their ends, so that several short prompts share one forward.
fn shares(prefilling: &[usize], chunk_size: usize, chunks: u64) -> Vec<Share> {
    let mut order: Vec<usize> = (0..prefilling.len()).collect();
    order.sort_by_key(|&index| (prefilling[index], index));
    if chunks.is_multiple_of(2)
        && let Some(oldest) = order.iter().position(|&index| index == 0)
    {
        order[..=oldest].rotate_right(1);
    }
    let mut room = chunk_size.max(1);
    let mut shares = Vec::new();
    for index in order {
        if room == 0 {
            break;
        }
        let tokens = prefilling[index].min(room);
        room -= tokens;
        shares.push(Share { index, tokens });
    }
    shares
}

/// Chooses the sequence that gives way after a step ran out of memory. The longest holds most of
/// the cache, and among equals the latest has lost least.
pub(crate) fn victim(lengths: &[usize]) -> Option<usize> {
    (0..lengths.len()).max_by_key(|&index| (lengths[index], index))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER_DECODE: Turns = Turns {
        decode_is_due: false,
        encode_is_due: false,
    };
    const AFTER_CHUNK: Turns = Turns {
        decode_is_due: true,
        encode_is_due: true,
    };

    const IDLE: State<'static> = State {
        head: None,
        unload_requested: false,
        occupied: 0,
        max_batch: 4,
        prefilling: &[],
        decoding: 0,
        encoding: false,
        turns: AFTER_DECODE,
        chunks: 0,
        chunk_size: 512,
    };

    const READY: Option<Head> = Some(Head {
        is_loaded: true,
        choices: 1,
    });
    const OTHER_MODEL: Option<Head> = Some(Head {
        is_loaded: false,
        choices: 1,
    });

    fn whole(index: usize, tokens: usize) -> Share {
        Share { index, tokens }
    }

    #[test]
    fn actions() {
        let many = Some(Head {
            is_loaded: true,
            choices: 9,
        });
        let table = [
            ("idle", IDLE, Action::Wait),
            (
                "admit first",
                State {
                    head: READY,
                    ..IDLE
                },
                Action::Admit,
            ),
            (
                "load first",
                State {
                    head: OTHER_MODEL,
                    ..IDLE
                },
                Action::Load,
            ),
            (
                "another model waits for those who run",
                State {
                    head: OTHER_MODEL,
                    occupied: 1,
                    decoding: 1,
                    ..IDLE
                },
                Action::Decode,
            ),
            (
                "join a running batch",
                State {
                    head: READY,
                    occupied: 3,
                    decoding: 3,
                    ..IDLE
                },
                Action::Admit,
            ),
            (
                "a full batch goes on",
                State {
                    head: READY,
                    occupied: 4,
                    decoding: 4,
                    ..IDLE
                },
                Action::Decode,
            ),
            (
                "more choices than the batch run alone",
                State { head: many, ..IDLE },
                Action::Admit,
            ),
            (
                "more choices than the batch wait for an empty one",
                State {
                    head: many,
                    occupied: 1,
                    decoding: 1,
                    ..IDLE
                },
                Action::Decode,
            ),
            (
                "decode after a chunk",
                State {
                    occupied: 2,
                    prefilling: &[1000],
                    decoding: 1,
                    turns: AFTER_CHUNK,
                    ..IDLE
                },
                Action::Decode,
            ),
            (
                "chunk after a decode step",
                State {
                    occupied: 2,
                    prefilling: &[1000],
                    decoding: 1,
                    ..IDLE
                },
                Action::Prefill(vec![whole(0, 512)]),
            ),
            (
                "chunks follow each other when nobody decodes",
                State {
                    occupied: 1,
                    prefilling: &[1000],
                    turns: AFTER_CHUNK,
                    ..IDLE
                },
                Action::Prefill(vec![whole(0, 512)]),
            ),
            (
                "unload waits for those who run and admits nobody",
                State {
                    head: READY,
                    unload_requested: true,
                    occupied: 1,
                    decoding: 1,
                    ..IDLE
                },
                Action::Decode,
            ),
            (
                "unload when nobody runs",
                State {
                    head: READY,
                    unload_requested: true,
                    ..IDLE
                },
                Action::Unload,
            ),
        ];
        for (name, state, expected) in table {
            assert_eq!(next(&state), expected, "{name}");
        }
    }

    /// Which steps follow each other while these kinds have work without end.
    fn steps(prefilling: &[usize], decoding: usize, encoding: bool) -> String {
        let mut turns = Turns::default();
        let step = |_| {
            let state = State {
                prefilling,
                decoding,
                encoding,
                turns,
                occupied: prefilling.len() + decoding,
                ..IDLE
            };
            match next(&state) {
                Action::Prefill(_) => {
                    turns.note_prefill();
                    'p'
                }
                Action::Decode => {
                    turns.note_decode();
                    'd'
                }
                Action::Encode => {
                    turns.note_encode();
                    'e'
                }
                other => panic!("{other:?}"),
            }
        };
        (0..8).map(step).collect()
    }

    #[test]
    fn kinds_of_steps_take_turns() {
        let table = [
            ("eeeeeeee", &[][..], 0, true),
            ("edededed", &[], 1, true),
            ("pepepepe", &[9], 0, true),
            ("pdedpded", &[9], 1, true),
            ("pdpdpdpd", &[9], 1, false),
        ];
        for (expected, prefilling, decoding, encoding) in table {
            assert_eq!(steps(prefilling, decoding, encoding), expected);
        }
    }

    #[test]
    fn encoders_do_not_wait_for_a_model_that_waits() {
        let state = State {
            head: OTHER_MODEL,
            occupied: 4,
            decoding: 4,
            encoding: true,
            ..IDLE
        };
        assert_eq!(next(&state), Action::Encode);
        let state = State {
            unload_requested: true,
            ..state
        };
        assert_eq!(next(&state), Action::Encode);
    }

    #[test]
    fn oldest_and_shortest_take_turns() {
        let prefilling = [9000, 700, 20];
        assert_eq!(shares(&prefilling, 512, 0), [whole(0, 512)]);
        assert_eq!(shares(&prefilling, 512, 1), [whole(2, 20), whole(1, 492)]);
    }

    #[test]
    fn short_prompts_share_a_chunk() {
        assert_eq!(
            shares(&[30, 40, 50], 512, 0),
            [whole(0, 30), whole(1, 40), whole(2, 50)]
        );
    }

    #[test]
    fn longest_then_latest_gives_way() {
        assert_eq!(victim(&[]), None);
        assert_eq!(victim(&[5, 9, 9, 1]), Some(2));
    }
}
