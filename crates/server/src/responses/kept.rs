//! JSON that is shared, and counted while anyone holds it.

use std::{
    mem::size_of,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;

/// Bytes of everything kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<AtomicUsize>);

impl Meter {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A piece of JSON.
#[derive(Debug)]
pub(crate) struct Kept {
    value: Value,
    bytes: usize,
    meter: Meter,
}

impl Kept {
    pub(crate) fn new(value: Value, meter: &Meter) -> Arc<Self> {
        let bytes = weigh(&value);
        meter.0.fetch_add(bytes, Ordering::Relaxed);
        Arc::new(Self {
            value,
            bytes,
            meter: meter.clone(),
        })
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// The id of an item.
    pub(crate) fn id(&self) -> Option<&str> {
        self.value.get("id")?.as_str()
    }

    /// Whether it is the item with this id.
    pub(crate) fn has_id(&self, id: &str) -> bool {
        self.id() == Some(id)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.meter.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// About how many bytes of memory it takes.
fn weigh(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weigh).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| size_of::<String>() + name.len() + weigh(value))
            .sum(),
    };
    size_of::<Value>() + inside
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_are_counted_until_the_last_holder_lets_go() {
        let meter = Meter::default();
        let text = "x".repeat(1000);
        let kept = Kept::new(json!({"id": "a", "text": [text, null]}), &meter);
        assert!(meter.bytes() > 1000);
        let shared = Arc::clone(&kept);
        drop(kept);
        assert!(shared.has_id("a"));
        assert!(meter.bytes() > 1000);
        drop(shared);
        assert_eq!(meter.bytes(), 0);
    }
}
