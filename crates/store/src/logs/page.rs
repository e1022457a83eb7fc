//! Looking through a log.

use std::sync::Arc;

use super::{Category, Entry, Level};

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Query {
    /// This and everything that matters more.
    pub level: Option<Level>,
    pub category: Option<Category>,
    /// Text in the message or a field, whatever its case.
    pub search: Option<String>,
    /// Take only entries with a smaller id.
    pub before: Option<u64>,
    /// The newest this many.
    pub limit: usize,
}

/// Entries, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub entries: Vec<Arc<Entry>>,
    /// There are older ones that fit.
    pub has_more: bool,
}

pub(super) fn find<'a>(
    entries: impl DoubleEndedIterator<Item = &'a Arc<Entry>>,
    query: &Query,
) -> Page {
    let wanted = query.search.as_deref().unwrap_or_default().to_lowercase();
    let mut found = entries.rev().filter(|entry| fits(entry, query, &wanted));
    let mut newest: Vec<Arc<Entry>> = found.by_ref().take(query.limit).cloned().collect();
    let has_more = found.next().is_some();
    newest.reverse();
    Page {
        entries: newest,
        has_more,
    }
}

fn fits(entry: &Entry, query: &Query, wanted: &str) -> bool {
    query.before.is_none_or(|before| entry.id < before)
        && query.level.is_none_or(|level| entry.level <= level)
        && query
            .category
            .is_none_or(|category| entry.category == category)
        && (wanted.is_empty()
            || entry.message.to_lowercase().contains(wanted)
            || entry.fields.iter().any(|(name, value)| {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                name.to_lowercase().contains(wanted) || text.to_lowercase().contains(wanted)
            }))
}
