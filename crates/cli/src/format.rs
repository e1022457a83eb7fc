//! Sizes, counts and times as people read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use macmlx_host::ModelTask;

/// What a model is for, as JSON has it.
pub(crate) fn task(task: ModelTask) -> &'static str {
    match task {
        ModelTask::Generate => "generate",
        ModelTask::Embed => "embed",
        ModelTask::Rerank => "rerank",
    }
}

/// `4.3 GB`, in powers of ten as disks are sold.
pub(crate) fn size(bytes: u64) -> String {
    scale(bytes, &[" B", " kB", " MB", " GB", " TB"])
}

/// `135M`, `7.2B`.
pub(crate) fn count(number: u64) -> String {
    scale(number, &["", "K", "M", "B", "T"])
}

fn scale(number: u64, units: &[&str]) -> String {
    let mut value = number as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 || value >= 99.95 {
        format!("{value:.0}{}", units[unit])
    } else {
        format!("{value:.1}{}", units[unit])
    }
}

/// `3 days ago`.
pub(crate) fn age(unix_seconds: u64) -> String {
    let then = UNIX_EPOCH + Duration::from_secs(unix_seconds);
    match SystemTime::now().duration_since(then) {
        Ok(age) if age.as_secs() >= 60 => format!("{} ago", duration(age)),
        _ => "just now".into(),
    }
}

/// The largest whole unit: `3 days`, `1 hour`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (amount, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{amount} {unit}{}", if amount == 1 { "" } else { "s" })
}

/// RFC 3339, in UTC.
pub(crate) fn date(unix_seconds: u64) -> Option<String> {
    let seconds = i64::try_from(unix_seconds).ok()?;
    let date = Timestamp::from_second(seconds).ok()?;
    Some(date.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1_500), "1.5 kB");
        assert_eq!(size(999_999), "1.0 MB");
        assert_eq!(size(98_362_432), "98.4 MB");
        assert_eq!(count(134_515_008), "135M");
        assert_eq!(count(7_241_732_096), "7.2B");
    }

    #[test]
    fn times() {
        assert_eq!(duration(Duration::from_secs(1)), "1 second");
        assert_eq!(duration(Duration::from_secs(7_300)), "2 hours");
        assert_eq!(date(0).as_deref(), Some("1970-01-01T00:00:00Z"));
    }
}
