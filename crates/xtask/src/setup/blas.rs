//! Puts OpenBLAS where `libmlx.so` looks for its BLAS.
//!
//! The wheel of MLX brings the reference BLAS, an order of magnitude slower. Distributions'
//! OpenBLAS is often too old to know the processor and then falls back to kernels of twenty years
//! ago, so it comes from its own wheel, where every name has the prefix `scipy_`. A small library
//! with the file name that `libmlx.so` wants jumps from each plain name to the prefixed one.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{pypi::Wheel, shell};

pub(super) const WHEEL: Wheel = Wheel {
    name: "scipy-openblas32",
    version: "0.3.34.481.3",
    sha256: if cfg!(target_arch = "aarch64") {
        "e085dddbc5b9aa130f83def515d31c440e69f387a90c7e63b154a5575b4466bc"
    } else {
        "0595f94cd58c1f8a0d90c975621f4587337a003916b1979e834ebdf2cb5d9504"
    },
};

/// Where the wheel keeps its library.
const LIBRARY: &str = "scipy_openblas32/lib";

/// Threads, and products of few rows.
pub(super) const NATIVE: &str = include_str!("../../native/blas.c");

/// What `NATIVE` defines itself.
const OWN: &str = "cblas_sgemm";

/// Replaces the reference BLAS in the unpacked wheel of MLX at `prefix` by OpenBLAS.
pub(super) fn replace(prefix: &Path, log: &Path) -> Result<()> {
    WHEEL.unpack(prefix, log)?;
    let reference = reference_blas(&prefix.join("mlx_cpu.libs"))?;
    let openblas = prefix.join(LIBRARY).join("libscipy_openblas.so");
    let prefixed = list_exported(&openblas)?;
    let names: BTreeSet<String> = list_exported(&reference)?
        .into_iter()
        .filter(|name| prefixed.contains(&format!("scipy_{name}")))
        .collect();
    if !names.contains(OWN) || !names.contains("sgemm_") {
        bail!("{} is not the OpenBLAS expected here", openblas.display());
    }
    let native = prefix.join("native");
    let (jumps, own) = (native.join("jumps.S"), native.join("blas.c"));
    fs::write(
        &jumps,
        assembly(names.iter().filter(|name| name.as_str() != OWN)),
    )?;
    fs::write(&own, NATIVE)?;
    shell::run_logged(
        Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-Wl,-z,defs"])
            .arg(format!("-Wl,-rpath,$ORIGIN/../{LIBRARY}"))
            .arg(format!("-Wl,-soname,{}", file_name(&reference)))
            .arg("-o")
            .arg(&reference)
            .args([&jumps, &own, &openblas]),
        log,
    )
}

/// What decides on the jumps, for telling versions of them apart.
pub(super) fn sample() -> String {
    assembly(["name".to_owned()].iter())
}

fn reference_blas(libraries: &Path) -> Result<PathBuf> {
    fs::read_dir(libraries)
        .with_context(|| format!("cannot read {}", libraries.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| file_name(path).starts_with("libblas-"))
        .with_context(|| format!("there is no BLAS in {}", libraries.display()))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Functions a shared library exports.
fn list_exported(library: &Path) -> Result<BTreeSet<String>> {
    let listing = shell::output(
        Command::new("nm")
            .args(["--dynamic", "--defined-only", "--format=posix"])
            .arg(library),
    )?;
    Ok(listing
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (name, kind) = (words.next()?, words.next()?);
            (kind == "T").then(|| name.to_owned())
        })
        .collect())
}

/// A jump leaves arguments and results as they are, whatever their types.
fn assembly<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let jump = if cfg!(target_arch = "aarch64") {
        |name: &str| format!("b scipy_{name}")
    } else {
        |name: &str| format!("jmp scipy_{name}@PLT")
    };
    let mut source = String::new();
    for name in names {
        let jump = jump(name);
        let lines = [
            ".globl ",
            name,
            "\n.type ",
            name,
            ", %function\n",
            name,
            ":\n\t",
            &jump,
            "\n",
        ];
        source.extend(lines);
    }
    source + ".section .note.GNU-stack,\"\",%progbits\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_jumps_to_its_prefixed_twin() {
        let source = assembly(["sgemm_".to_owned()].iter());
        assert!(source.starts_with(".globl sgemm_\n.type sgemm_, %function\nsgemm_:\n\t"));
        assert!(source.contains(" scipy_sgemm_"));
    }
}
