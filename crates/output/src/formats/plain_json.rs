//! Calls as JSON without any marker, for templates that take tools and show none.

use crate::readers::json_format::{JsonFormat, STARTS};

pub(super) static PLAIN_JSON: JsonFormat = JsonFormat {
    starts: STARTS,
    begins_bare: true,
    // Taken when nothing else fits.
    ..JsonFormat::new("plain_json", |_| false)
};
