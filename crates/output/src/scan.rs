//! Markers in text of which more may come.

/// Whether text begins with a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Starts {
    Yes,
    No,
    /// More text will tell.
    Maybe,
}

pub(super) fn starts(text: &str, marker: &str, is_last: bool) -> Starts {
    if marker.is_empty() {
        Starts::No
    } else if text.starts_with(marker) {
        Starts::Yes
    } else if !is_last && marker.starts_with(text) {
        Starts::Maybe
    } else {
        Starts::No
    }
}

/// The marker that text begins with, the longest of several; `Err`: more text will tell.
pub(super) fn starts_with_any<'a>(
    text: &str,
    markers: &[&'a str],
    is_last: bool,
) -> Result<Option<&'a str>, ()> {
    let mut found: Option<&str> = None;
    for marker in markers {
        match starts(text, marker, is_last) {
            Starts::Yes if found.is_none_or(|other| marker.len() > other.len()) => {
                found = Some(marker);
            }
            Starts::Yes | Starts::No => {}
            Starts::Maybe => return Err(()),
        }
    }
    Ok(found)
}

/// Where the first of several markers stands, and the marker; the longest of those that begin at
/// the same place.
pub(super) fn first_of<'a>(text: &str, markers: &[&'a str]) -> Option<(usize, &'a str)> {
    markers
        .iter()
        .filter(|marker| !marker.is_empty())
        .filter_map(|marker| text.find(marker).map(|at| (at, *marker)))
        .min_by_key(|(at, marker)| (*at, usize::MAX - marker.len()))
}

/// How much of a text without a marker can no longer become part of one.
pub(super) fn certain(text: &str, markers: &[&str]) -> usize {
    let longest = markers.iter().map(|marker| marker.len()).max().unwrap_or(0);
    let from = text.len().saturating_sub(longest);
    (from..text.len())
        .filter(|at| text.is_char_boundary(*at))
        .find(|at| {
            markers
                .iter()
                .any(|marker| marker.starts_with(&text[*at..]))
        })
        .unwrap_or(text.len())
}

/// Bytes of white space at the front.
pub(super) fn space(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_at_the_front_is_there_or_not_or_to_come() {
        assert_eq!(starts("<a>b", "<a>", false), Starts::Yes);
        assert_eq!(starts("<", "<a>", false), Starts::Maybe);
        assert_eq!(starts("<", "<a>", true), Starts::No);
        assert_eq!(starts("x", "<a>", false), Starts::No);
        assert_eq!(starts_with_any("ab", &["a", "abc"], false), Err(()));
        assert_eq!(starts_with_any("ab", &["a", "abc"], true), Ok(Some("a")));
    }

    #[test]
    fn what_could_become_a_marker_is_not_certain() {
        assert_eq!(certain("é</to", &["</tool>", "<x"]), 2);
        assert_eq!(certain("ab<", &["</tool>"]), 2);
        assert_eq!(certain("abc", &["</tool>"]), 3);
        assert_eq!(first_of("a</b><b>", &["<b>", "</b>"]), Some((1, "</b>")));
    }
}
