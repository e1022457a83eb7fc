//! What a typed model name means: the decision alone, over ids.

/// Most names that are suggested.
const MAX_SUGGESTIONS: usize = 3;
/// Similarity (Jaro-Winkler) below which a name is no suggestion.
const SIMILAR: f64 = 0.8;

/// Outcome of a look-up; numbers are positions in the ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Match {
    One(usize),
    Many(Vec<usize>),
    None { suggestions: Vec<String> },
}

/// Looks a reference up. The first rule that matches anything decides: the id as it is, then
/// without regard to case, the repository's bare name, Ollama's `name:tag`, a prefix.
pub(super) fn find(reference: &str, ids: &[&str]) -> Match {
    if let Some(index) = ids.iter().position(|id| *id == reference) {
        return Match::One(index);
    }
    let wanted = reference.to_lowercase();
    let wanted = wanted.strip_suffix(":latest").unwrap_or(&wanted);
    if wanted.is_empty() {
        return Match::None {
            suggestions: Vec::new(),
        };
    }
    let lower: Vec<String> = ids.iter().map(|id| id.to_lowercase()).collect();
    let rules: [&dyn Fn(&str) -> bool; 4] = [
        &|id| id == wanted,
        &|id| bare(id) == wanted,
        &|id| matches_tag(wanted, id),
        &|id| id.starts_with(wanted) || bare(id).starts_with(wanted),
    ];
    for rule in rules {
        let hits: Vec<usize> = (0..ids.len())
            .filter(|&index| rule(&lower[index]))
            .collect();
        match hits.as_slice() {
            [] => {}
            [one] => return Match::One(*one),
            _ => return Match::Many(hits),
        }
    }
    Match::None {
        suggestions: suggestions(wanted, ids, &lower),
    }
}

fn bare(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// `qwen3:8b` means a repository whose name begins with `qwen3` and has `8b` as a part.
fn matches_tag(wanted: &str, id: &str) -> bool {
    let Some((name, tag)) = wanted.split_once(':') else {
        return false;
    };
    let repo = bare(id);
    let Some(rest) = repo.strip_prefix(name) else {
        return false;
    };
    let parts: Vec<&str> = rest.split(['-', '_']).collect();
    parts.first() == Some(&"") && tag.split(['-', '_']).all(|wanted| parts.contains(&wanted))
}

fn suggestions(wanted: &str, ids: &[&str], lower: &[String]) -> Vec<String> {
    let mut ranked: Vec<(f64, &str)> = ids
        .iter()
        .zip(lower)
        .map(|(id, lower)| {
            let score = strsim::jaro_winkler(wanted, lower)
                .max(strsim::jaro_winkler(bare(wanted), bare(lower)));
            let contained = bare(lower).contains(bare(wanted));
            (if contained { score.max(SIMILAR) } else { score }, *id)
        })
        .filter(|(score, _)| *score >= SIMILAR)
        .collect();
    ranked.sort_by(|left, right| right.0.total_cmp(&left.0));
    ranked
        .into_iter()
        .take(MAX_SUGGESTIONS)
        .map(|(_, id)| id.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 5] = [
        "mlx-community/Qwen3-8B-4bit",
        "mlx-community/Qwen3-0.6B-4bit",
        "other/Qwen3-8B-4bit",
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "flat-model",
    ];

    #[test]
    fn each_way_to_say_it() {
        for (reference, index) in [
            ("mlx-community/Qwen3-8B-4bit", 0),
            ("MLX-Community/qwen3-8b-4BIT", 0),
            ("Qwen3-0.6B-4bit", 1),
            ("smollm2-135m-instruct", 3),
            ("smollm2-135m-instruct:latest", 3),
            ("smollm2:135m", 3),
            ("qwen3:0.6b", 1),
            ("qwen3:0.6b-4bit", 1),
            ("smol", 3),
            ("huggingface", 3),
            ("flat-model", 4),
            ("flat", 4),
        ] {
            assert_eq!(find(reference, &IDS), Match::One(index), "{reference}");
        }
    }

    #[test]
    fn several_candidates_are_named() {
        assert_eq!(find("Qwen3-8B-4bit", &IDS), Match::Many(vec![0, 2]));
        assert_eq!(find("qwen3:8b", &IDS), Match::Many(vec![0, 2]));
        assert_eq!(find("qwen", &IDS), Match::Many(vec![0, 1, 2]));
    }

    #[test]
    fn near_misses_are_suggested() {
        let Match::None { suggestions } = find("SmolLM-135M-Instruct", &IDS) else {
            panic!("matched");
        };
        assert_eq!(suggestions, ["HuggingFaceTB/SmolLM2-135M-Instruct"]);
        assert_eq!(
            find("gpt-4o", &IDS),
            Match::None {
                suggestions: Vec::new()
            }
        );
        assert_eq!(
            find("", &IDS),
            Match::None {
                suggestions: Vec::new()
            }
        );
    }

    #[test]
    fn a_tag_is_a_whole_part() {
        assert!(!matches_tag("qwen3:8", "mlx-community/qwen3-8b-4bit"));
        assert!(!matches_tag("qwen:8b", "mlx-community/qwen3-8b-4bit"));
    }
}
