//! Each filter and processor against a plain `f64` implementation of its definition.

use std::{collections::BTreeMap, sync::Arc};

use macmlx_inference::{Dry, SamplingParams, Xtc};
use mlx_rs::Array;

use super::{
    GenerationDefaults, History, Parameters, Row, RowSampler, TokenText, logits_processors::Step,
    logprobs, random::Purpose, random::uniform, sample,
};

const VOCAB: usize = 60;

/// Logits between -6 and 6, different at each call.
struct Logits(u64);

impl Logits {
    fn next_row(&mut self) -> Vec<f32> {
        (0..VOCAB as u64)
            .map(|token| {
                self.0 += 1;
                uniform(self.0, token, Purpose::Draw) * 12.0 - 6.0
            })
            .collect()
    }
}

fn parameters(change: impl FnOnce(&mut SamplingParams)) -> Parameters {
    let mut given = SamplingParams::default();
    change(&mut given);
    Parameters::resolve(&given, &GenerationDefaults::default(), 11)
}

fn letters() -> TokenText {
    Arc::new(|token| vec![token as u8 + b' '])
}

fn sampler(parameters: &Parameters, tokens: &[u32], prompt_length: usize) -> RowSampler {
    let history = History {
        tokens,
        prompt_length,
    };
    RowSampler::new(
        parameters.clone(),
        history,
        0,
        &[],
        false,
        VOCAB as u32,
        &letters(),
    )
}

/// Draws from `[rows, VOCAB]` logits with one sampler a row.
fn draw(logits: &[Vec<f32>], samplers: &mut [RowSampler], index: usize) -> Vec<u32> {
    let flat: Vec<f32> = logits.concat();
    let logits = Array::from_slice(&flat, &[logits.len() as i32, VOCAB as i32]);
    let mut rows: Vec<Row<'_>> = samplers
        .iter_mut()
        .map(|sampler| Row {
            sampler,
            step: Step {
                index,
                history: &[],
                last: None,
                allowed: None,
            },
            logprobs: None,
        })
        .collect();
    sample(&logits, &mut rows)
        .unwrap()
        .tokens
        .to_vec_exact::<u32>()
        .unwrap()
}

/// Softmax over the candidates that are left, by token.
fn softmax(logits: &BTreeMap<usize, f64>) -> BTreeMap<usize, f64> {
    let highest = logits.values().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logits.values().map(|logit| (logit - highest).exp()).sum();
    logits
        .iter()
        .map(|(&token, logit)| (token, (logit - highest).exp() / total))
        .collect()
}

fn sorted(by: &BTreeMap<usize, f64>, descending: bool) -> Vec<usize> {
    let mut tokens: Vec<usize> = by.keys().copied().collect();
    tokens.sort_by(|a, b| {
        let order = by[a].total_cmp(&by[b]);
        if descending { order.reverse() } else { order }
    });
    tokens
}

/// The first tokens of `order` until their probability reaches `mass`.
fn reach(order: Vec<usize>, probabilities: &BTreeMap<usize, f64>, mass: f64) -> Vec<usize> {
    let mut sum = 0.0;
    let mut kept = Vec::new();
    for token in order {
        if sum >= mass {
            break;
        }
        sum += probabilities[&token];
        kept.push(token);
    }
    kept
}

/// Which tokens may be drawn, and with which probability.
fn distribution(logits: &[f32], parameters: &Parameters, xtc_fires: bool) -> BTreeMap<usize, f64> {
    let mut left: BTreeMap<usize, f64> = logits
        .iter()
        .map(|&logit| f64::from(logit))
        .enumerate()
        .collect();
    if parameters.numbers.top_n_sigma > 0.0 {
        let count = left.len() as f64;
        let mean = left.values().sum::<f64>() / count;
        let variance = left.values().map(|l| (l - mean).powi(2)).sum::<f64>() / count;
        let highest = left.values().copied().fold(f64::NEG_INFINITY, f64::max);
        let floor = highest - variance.sqrt() * f64::from(parameters.numbers.top_n_sigma);
        left.retain(|_, logit| *logit >= floor);
    }
    if parameters.numbers.top_k > 0 {
        let kept = sorted(&left, true)[..(parameters.numbers.top_k as usize).min(VOCAB)].to_vec();
        left.retain(|token, _| kept.contains(token));
    }
    if parameters.numbers.typical_p < 1.0 {
        let probabilities = softmax(&left);
        let entropy: f64 = probabilities.values().map(|p| -p * p.ln()).sum();
        let distance: BTreeMap<usize, f64> = probabilities
            .iter()
            .map(|(&token, p)| (token, (-p.ln() - entropy).abs()))
            .collect();
        let kept = reach(
            sorted(&distance, false),
            &probabilities,
            parameters.numbers.typical_p.into(),
        );
        left.retain(|token, _| kept.contains(token));
    }
    if parameters.numbers.top_p < 1.0 {
        let probabilities = softmax(&left);
        let order = sorted(&probabilities, true);
        let kept = reach(
            order,
            &probabilities,
            f64::from(parameters.numbers.top_p).max(1e-30),
        );
        left.retain(|token, _| kept.contains(token));
    }
    if parameters.numbers.min_p > 0.0 {
        let probabilities = softmax(&left);
        let floor = probabilities.values().copied().fold(0.0, f64::max)
            * f64::from(parameters.numbers.min_p);
        left.retain(|token, _| probabilities[token] >= floor * (1.0 - 1e-9));
    }
    if let Some(xtc) = parameters.xtc.filter(|_| xtc_fires) {
        let probabilities = softmax(&left);
        let above: Vec<usize> = sorted(&probabilities, false)
            .into_iter()
            .filter(|token| probabilities[token] >= f64::from(xtc.threshold))
            .collect();
        for removed in above.iter().skip(1) {
            left.remove(removed);
        }
    }
    let temperature = temperature(&left, parameters);
    for logit in left.values_mut() {
        *logit /= temperature;
    }
    softmax(&left)
}

/// The temperature that is set, or where in its range the entropy of the candidates puts it.
fn temperature(left: &BTreeMap<usize, f64>, parameters: &Parameters) -> f64 {
    let set = f64::from(parameters.numbers.temperature);
    let range = f64::from(parameters.numbers.dynatemp_range);
    if range == 0.0 || left.len() < 2 {
        return set;
    }
    let entropy: f64 = softmax(left).values().map(|p| -p * p.ln()).sum();
    let uncertainty = entropy / (left.len() as f64).ln();
    let (lowest, highest) = ((set - range).max(0.0), set + range);
    let exponent = f64::from(parameters.numbers.dynatemp_exponent);
    lowest + (highest - lowest) * uncertainty.powf(exponent)
}

/// Draws many times and compares with the definition: nothing outside the support ever comes, and
/// frequencies fit.
fn check_distribution(name: &str, parameters: &Parameters, xtc_fires: bool) {
    const DRAWS: usize = 4000;
    let logits = Logits(name.len() as u64 * 1000).next_row();
    let expected = distribution(&logits, parameters, xtc_fires);
    let mut samplers: Vec<RowSampler> = (0..DRAWS as u64)
        .map(|seed| {
            let parameters = Parameters {
                seed,
                ..parameters.clone()
            };
            sampler(&parameters, &[], 0)
        })
        .collect();
    let mut counts: BTreeMap<usize, f64> = BTreeMap::new();
    for token in draw(&vec![logits; DRAWS], &mut samplers, 0) {
        *counts.entry(token as usize).or_default() += 1.0;
    }
    let draws = DRAWS as f64;
    for (token, count) in &counts {
        assert!(
            expected.contains_key(token),
            "{name}: {token} came {count} times"
        );
    }
    for (token, probability) in expected {
        let count = counts.get(&token).copied().unwrap_or(0.0);
        let deviation = (draws * probability * (1.0 - probability)).sqrt().max(1.0);
        let off = (count - draws * probability).abs() / deviation;
        // Five standard deviations; seeds are fixed, so this never flickers.
        assert!(
            off < 5.0,
            "{name}: {token} came {count} times, expected {}",
            draws * probability
        );
    }
}

#[test]
fn distributions_are_as_defined() {
    let always = Xtc {
        probability: 1.0,
        threshold: 0.1,
    };
    check_distribution("plain", &parameters(|_| {}), false);
    check_distribution("hot", &parameters(|p| p.temperature = Some(1.7)), false);
    check_distribution("cold", &parameters(|p| p.temperature = Some(0.3)), false);
    check_distribution("top k", &parameters(|p| p.top_k = Some(5)), false);
    check_distribution("top k of all", &parameters(|p| p.top_k = Some(900)), false);
    check_distribution("top p", &parameters(|p| p.top_p = Some(0.7)), false);
    check_distribution(
        "top p of nothing",
        &parameters(|p| p.top_p = Some(0.0)),
        false,
    );
    check_distribution("min p", &parameters(|p| p.min_p = Some(0.2)), false);
    check_distribution(
        "top n sigma",
        &parameters(|p| p.top_n_sigma = Some(1.5)),
        false,
    );
    check_distribution("typical", &parameters(|p| p.typical_p = Some(0.6)), false);
    check_distribution("xtc", &parameters(|p| p.xtc = Some(always)), true);
    let dynamic = parameters(|p| p.dynatemp_range = Some(0.7));
    check_distribution("dynamic", &dynamic, false);
    check_distribution(
        "dynamic and steep",
        &parameters(|p| {
            p.top_k = Some(12);
            p.temperature = Some(0.5);
            p.dynatemp_range = Some(0.9);
            p.dynatemp_exponent = Some(0.4);
        }),
        false,
    );
    check_distribution(
        "all of them",
        &parameters(|p| {
            p.temperature = Some(1.3);
            p.top_k = Some(30);
            p.typical_p = Some(0.95);
            p.top_p = Some(0.9);
            p.min_p = Some(0.02);
            p.xtc = Some(always);
        }),
        true,
    );
}

#[test]
fn a_certain_model_stays_certain_at_any_dynamic_temperature() {
    let parameters = parameters(|p| {
        p.temperature = Some(0.5);
        p.dynatemp_range = Some(0.5);
        p.dynatemp_exponent = Some(100.0);
    });
    let mut logits = vec![f32::NEG_INFINITY; VOCAB];
    logits[4] = 30.0;
    assert_eq!(
        draw(&[logits.clone()], &mut [sampler(&parameters, &[], 0)], 0),
        [4]
    );
    logits[5] = 27.0;
    assert_eq!(draw(&[logits], &mut [sampler(&parameters, &[], 0)], 0), [4]);
}

/// Mirostat by its definition: the token, and the limit after it.
fn mirostat(logits: &[f32], parameters: &Parameters, step: u64, limit: f64) -> (u32, f64) {
    let numbers = &parameters.numbers;
    let heated: BTreeMap<usize, f64> = logits
        .iter()
        .map(|&logit| f64::from(logit) / f64::from(numbers.temperature))
        .enumerate()
        .collect();
    let probabilities = softmax(&heated);
    let order = sorted(&probabilities, true);
    let kept = if numbers.mirostat == 1 {
        let (mut products, mut squares) = (0.0, 0.0);
        for (rank, pair) in order.windows(2).take(99).enumerate() {
            let step = ((rank as f64 + 2.0) / (rank as f64 + 1.0)).ln();
            products += step * (probabilities[&pair[0]] / probabilities[&pair[1]]).ln();
            squares += step * step;
        }
        let exponent = products / squares;
        let excess = exponent - 1.0;
        let count =
            (excess * limit.exp2() / (1.0 - (VOCAB as f64).powf(-excess))).powf(1.0 / exponent);
        (count as usize).clamp(1, VOCAB)
    } else {
        let is_within = |token: &&usize| -probabilities[token].log2() <= limit;
        order.iter().take_while(is_within).count().max(1)
    };
    let left: Vec<(usize, f64)> = order[..kept]
        .iter()
        .map(|&token| (token, probabilities[&token]))
        .collect();
    let total: f64 = left.iter().map(|(_, probability)| probability).sum();
    let aim = total * f64::from(uniform(parameters.seed, step, Purpose::Draw));
    let mut sum = 0.0;
    let &(token, probability) = left
        .iter()
        .find(|(_, probability)| {
            sum += probability;
            sum > aim
        })
        .unwrap_or(&left[0]);
    let surprise = -(probability / total).log2();
    let error = surprise - f64::from(numbers.mirostat_tau);
    (
        token as u32,
        limit - f64::from(numbers.mirostat_eta) * error,
    )
}

#[test]
fn mirostat_steers_as_defined() {
    for (version, tau, eta, temperature) in [
        (1, 3.0, 0.1, 1.0),
        (1, 1.0, 0.4, 0.8),
        (2, 2.0, 0.1, 1.0),
        (2, 0.5, 0.3, 1.4),
        (2, 5.0, 1.0, 0.6),
    ] {
        let parameters = parameters(|p| {
            p.mirostat = Some(version);
            p.mirostat_tau = Some(tau);
            p.mirostat_eta = Some(eta);
            p.temperature = Some(temperature);
            // Mirostat takes the place of these.
            (p.top_k, p.top_p, p.min_p) = (Some(1), Some(0.1), Some(0.9));
        });
        let mut sampler = sampler(&parameters, &[], 0);
        let mut source = Logits(u64::from(version) * 100);
        let mut limit = 2.0 * f64::from(tau);
        let mut distinct = std::collections::BTreeSet::new();
        for index in 0..40 {
            let logits = source.next_row();
            let expected;
            (expected, limit) = mirostat(&logits, &parameters, index as u64, limit);
            let drawn = draw(&[logits], std::slice::from_mut(&mut sampler), index);
            assert_eq!(
                drawn,
                [expected],
                "version {version}, tau {tau}, step {index}"
            );
            let learned = sampler.surprise_limit().unwrap().item_exact::<f32>();
            assert!(
                (f64::from(learned) - limit).abs() < 1e-3,
                "{learned} {limit}"
            );
            distinct.insert(expected);
        }
        assert!(distinct.len() > 10, "{distinct:?}");
    }
}

#[test]
fn mirostat_draws_what_a_grammar_leaves() {
    for version in [1, 2] {
        let parameters = parameters(|p| p.mirostat = Some(version));
        for left in 1..4 {
            let mut logits = vec![f32::NEG_INFINITY; VOCAB];
            logits[10..10 + left].fill(1.0);
            let mut sampler = sampler(&parameters, &[], 0);
            for index in 0..10 {
                let token = draw(&[logits.clone()], std::slice::from_mut(&mut sampler), index)[0];
                assert!(
                    (10..10 + left as u32).contains(&token),
                    "{version}: {token}"
                );
                assert!(
                    sampler
                        .surprise_limit()
                        .unwrap()
                        .item_exact::<f32>()
                        .is_finite()
                );
            }
        }
    }
}

#[test]
fn xtc_fires_as_often_as_asked() {
    let half = Xtc {
        probability: 0.5,
        threshold: 0.1,
    };
    let mut logits = vec![-20.0; VOCAB];
    (logits[3], logits[4]) = (1.0, 0.5);
    let mut samplers: Vec<RowSampler> = (0..2000)
        .map(|seed| {
            let mut parameters = parameters(|p| {
                p.xtc = Some(half);
                p.temperature = Some(0.01);
            });
            parameters.seed = seed;
            sampler(&parameters, &[], 0)
        })
        .collect();
    let drawn = draw(&vec![logits; 2000], &mut samplers, 3);
    let excluded = drawn.iter().filter(|&&token| token == 4).count();
    assert!((900..1100).contains(&excluded), "{excluded}");
    assert!(drawn.iter().all(|&token| token == 3 || token == 4));
}

#[test]
fn a_draw_does_not_depend_on_company() {
    let mut source = Logits(5);
    let kinds = [
        parameters(|p| p.temperature = Some(0.0)),
        parameters(|p| p.top_p = Some(0.8)),
        parameters(|_| {}),
        parameters(|p| p.top_p = Some(0.3)),
        parameters(|p| p.presence_penalty = Some(1.5)),
        parameters(|p| p.top_k = Some(9)),
        parameters(|p| p.mirostat = Some(2)),
        parameters(|p| p.dynatemp_range = Some(0.5)),
        parameters(|p| (p.mirostat, p.mirostat_tau) = (Some(2), Some(1.0))),
        parameters(|p| p.mirostat = Some(1)),
    ];
    let logits: Vec<Vec<f32>> = kinds.iter().map(|_| source.next_row()).collect();
    let make = |parameters: &Parameters| sampler(parameters, &[1, 2, 3], 1);
    let mut company: Vec<RowSampler> = kinds.iter().map(make).collect();
    let mut lonely: Vec<RowSampler> = kinds.iter().map(make).collect();
    for index in 0..20 {
        let together = draw(&logits, &mut company, index);
        for (row, sampler) in lonely.iter_mut().enumerate() {
            let alone = draw(&logits[row..=row], std::slice::from_mut(sampler), index);
            assert_eq!(alone[0], together[row], "row {row} at step {index}");
        }
    }
}

/// What the processors make of `logits`.
fn processed(sampler: &mut RowSampler, logits: &[f32], step: &Step<'_>) -> Vec<f32> {
    let row = Array::from_slice(logits, &[1, VOCAB as i32]);
    sampler
        .process(row, step)
        .unwrap()
        .to_vec_exact::<f32>()
        .unwrap()
}

fn assert_close(name: &str, actual: &[f32], expected: &[f64]) {
    for (token, (&actual, &expected)) in actual.iter().zip(expected).enumerate() {
        let is_close = (f64::from(actual) - expected).abs() <= 1e-5 * expected.abs().max(1.0);
        assert!(
            is_close,
            "{name}: token {token} is {actual}, expected {expected}"
        );
    }
}

/// Penalties by their definitions over a host history.
fn penalized(
    logits: &[f32],
    parameters: &Parameters,
    tokens: &[u32],
    prompt_length: usize,
) -> Vec<f64> {
    let start = parameters
        .penalty_window
        .map_or(0, |w| tokens.len().saturating_sub(w));
    let window = &tokens[start..];
    let output = &tokens[start.max(prompt_length)..];
    let mut logits: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
    for (token, logit) in logits.iter_mut().enumerate() {
        let id = token as u32;
        if window.contains(&id) {
            let penalty = f64::from(parameters.numbers.repetition_penalty);
            *logit = if *logit > 0.0 {
                *logit / penalty
            } else {
                *logit * penalty
            };
        }
        let count = output.iter().filter(|&&other| other == id).count();
        if count > 0 {
            *logit -= f64::from(parameters.numbers.presence_penalty);
        }
        *logit -= f64::from(parameters.numbers.frequency_penalty) * count as f64;
    }
    logits
}

#[test]
fn penalties_follow_a_growing_sequence() {
    for window in [None, Some(1), Some(2), Some(5), Some(100)] {
        let parameters = parameters(|p| {
            p.repetition_penalty = Some(1.3);
            p.presence_penalty = Some(0.4);
            p.frequency_penalty = Some(0.25);
            p.penalty_window = window;
        });
        let mut tokens: Vec<u32> = vec![3, 3, 8, 1, 9, 8];
        let prompt_length = tokens.len();
        let mut sampler = sampler(&parameters, &tokens, prompt_length);
        let mut source = Logits(77);
        for index in 0..12 {
            let last = (index > 0).then(|| Array::from_slice(&tokens[tokens.len() - 1..], &[1]));
            let logits = source.next_row();
            let step = Step {
                index,
                history: &tokens,
                last: last.as_ref(),
                allowed: None,
            };
            let actual = processed(&mut sampler, &logits, &step);
            let expected = penalized(&logits, &parameters, &tokens, prompt_length);
            assert_close(
                &format!("window {window:?} step {index}"),
                &actual,
                &expected,
            );
            tokens.push([8, 30, 8, 8, 2, 30, 7, 3, 3, 3, 9, 11][index]);
        }
        // A sampler made from the whole history goes on where the other one is.
        let mut anew = self::sampler(&parameters, &tokens, prompt_length);
        let logits = source.next_row();
        let step = Step {
            index: 12,
            history: &tokens,
            last: None,
            allowed: None,
        };
        let expected = penalized(&logits, &parameters, &tokens, prompt_length);
        assert_close(
            "made anew",
            &processed(&mut anew, &logits, &step),
            &expected,
        );
    }
}

#[test]
fn bias_is_added() {
    let parameters = parameters(|p| p.logit_bias = BTreeMap::from([(4, 2.5), (9, -100.0)]));
    let logits = Logits(1).next_row();
    let step = Step {
        index: 0,
        history: &[],
        last: None,
        allowed: None,
    };
    let actual = processed(&mut sampler(&parameters, &[], 0), &logits, &step);
    let mut expected: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
    expected[4] += 2.5;
    expected[9] -= 100.0;
    assert_close("bias", &actual, &expected);
}

#[test]
fn end_tokens_cannot_come_early() {
    let parameters = parameters(|p| p.temperature = Some(0.0));
    let history = History {
        tokens: &[],
        prompt_length: 0,
    };
    let mut logits = vec![0.0; VOCAB];
    (logits[7], logits[8], logits[9]) = (5.0, 4.0, 3.0);
    for (index, expected) in [(0, 9), (1, 9), (2, 7)] {
        let mut sampler = RowSampler::new(
            parameters.clone(),
            history,
            2,
            &[7, 8],
            false,
            VOCAB as u32,
            &letters(),
        );
        let drawn = draw(
            std::slice::from_ref(&logits),
            std::slice::from_mut(&mut sampler),
            index,
        );
        assert_eq!(drawn, [expected], "step {index}");
    }
}

#[test]
fn dry_penalizes_what_would_repeat() {
    let dry = Dry {
        multiplier: 0.8,
        base: 1.75,
        allowed_length: 2,
        window: None,
        // Token 10 in `letters`.
        sequence_breakers: vec!["*".into()],
    };
    let parameters = parameters(|p| p.dry = Some(dry.clone()));
    let logits = Logits(3).next_row();
    let penalties = |tokens: &[u32]| -> Vec<(usize, f64)> {
        let step = Step {
            index: 0,
            history: tokens,
            last: None,
            allowed: None,
        };
        let mut sampler = sampler(&parameters, tokens, 0);
        assert!(sampler.needs_history());
        processed(&mut sampler, &logits, &step)
            .iter()
            .zip(&logits)
            .map(|(after, before)| f64::from(before - after))
            .enumerate()
            .filter(|(_, penalty)| *penalty > 1e-4)
            .collect()
    };
    let check = |tokens: &[u32], expected: &[(usize, f64)]| {
        let found = penalties(tokens);
        assert_eq!(found.len(), expected.len(), "{tokens:?}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.0, expected.0, "{tokens:?}");
            assert!((found.1 - expected.1).abs() < 1e-3, "{tokens:?}: {found:?}");
        }
    };
    check(&[1, 2, 3, 9, 1], &[]);
    check(&[1, 2, 3, 9, 1, 2], &[(3, 0.8)]);
    check(&[1, 2, 3, 4, 9, 1, 2, 3], &[(4, 0.8 * 1.75)]);
    // Two earlier copies: the longer one counts for its follower, the shorter for its own.
    check(
        &[5, 1, 2, 3, 8, 1, 2, 4, 5, 1, 2],
        &[(3, 0.8 * 1.75), (4, 0.8)],
    );
    // The run does not reach over a breaker, and a breaker itself is never penalized.
    check(&[1, 10, 2, 3, 9, 1, 10, 2], &[]);
    check(&[1, 2, 10, 9, 1, 2], &[]);
}

#[test]
fn log_probabilities_are_of_raw_logits() {
    let mut source = Logits(9);
    let rows: Vec<Vec<f32>> = (0..3).map(|_| source.next_row()).collect();
    let logits = Array::from_slice(&rows.concat(), &[3, VOCAB as i32]);
    let tokens = Array::from_slice(&[4_u32, 0, 59], &[3]);
    let read = logprobs(&logits, &tokens, 5).unwrap().read().unwrap();
    for ((row, token), logits) in read.iter().zip([4_usize, 0, 59]).zip(&rows) {
        let logits: BTreeMap<usize, f64> = logits
            .iter()
            .map(|&logit| f64::from(logit))
            .enumerate()
            .collect();
        let probabilities = softmax(&logits);
        assert!((f64::from(row.chosen) - probabilities[&token].ln()).abs() < 1e-4);
        let best = sorted(&probabilities, true);
        assert_eq!(row.top.len(), 5);
        for (&(token, logprob), &expected) in row.top.iter().zip(&best) {
            assert_eq!(token as usize, expected);
            assert!((f64::from(logprob) - probabilities[&expected].ln()).abs() < 1e-4);
        }
    }
    assert!(
        logprobs(&logits, &tokens, 0).unwrap().read().unwrap()[0]
            .top
            .is_empty()
    );
}
