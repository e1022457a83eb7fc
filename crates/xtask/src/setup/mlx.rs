//! MLX on Linux: Apple's own CPU build from its Python wheel, mlx-c compiled against it, and
//! bindings for mlx-sys, whose build script is replaced by a generated Cargo configuration.
//!
//! Everything lands in one folder of the shared cache whose name carries a hash of all inputs, so
//! a change of any of them makes a new folder and Cargo rebuilds mlx-sys for its new path.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};

use super::{blas, tools};
use crate::{pypi::Wheel, shell, workspace};

/// MLX's version is that of mlx-sys; the wheels are Apple's.
const WHEEL: Wheel = Wheel {
    name: "mlx-cpu",
    version: "0.32.2",
    sha256: if cfg!(target_arch = "aarch64") {
        "d0f94625588b51a878786dd51cec5617894ce586cf3c94645ce1b64e24c27c0b"
    } else {
        "fc5d31b90fc4f457b2f9614ed45651a567d22a6a11a03d114a90a4e10bdd8878"
    },
};

/// The oldest glibc that the wheel runs on.
const GLIBC: (u32, u32) = (2, 35);

/// Our own C++ around mlx-c, by file name.
const NATIVE: &[(&str, &str)] = &[
    (
        "CMakeLists.txt",
        include_str!("../../native/CMakeLists.txt"),
    ),
    ("format.hpp", include_str!("../../native/format.hpp")),
    (
        "supplement.cpp",
        include_str!("../../native/supplement.cpp"),
    ),
];

/// The generator of the bindings is an input as well.
const BINDINGS: &str = include_str!("../bin/bindings.rs");

/// Raised when the steps in this file change what they produce.
const LAYOUT: u32 = 1;

/// Makes MLX available to Cargo in this clone.
pub(super) fn ensure() -> Result<()> {
    tools::ensure_to_link()?;
    let prefix = prefix()?;
    let lock = workspace::lock("setup")?;
    let is_new = !prefix.join("complete").exists();
    if is_new {
        build(&prefix)?;
    }
    drop(lock);

    let config_changed = write_cargo_config(&prefix)?;
    if is_new && !config_changed {
        // Same path, new archive: Cargo cannot see that by itself.
        shell::run(
            shell::cargo()
                .current_dir(workspace::root())
                .args(["clean", "-p", "mlx-sys"]),
        )?;
    }
    println!("setup: MLX {} is in {}", WHEEL.version, prefix.display());
    Ok(())
}

/// The folder for exactly these inputs.
fn prefix() -> Result<PathBuf> {
    let sys = workspace::read_locked("mlx-sys")?;
    let mut hash = Sha256::new();
    let mut add = |part: &str| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(&LAYOUT.to_string());
    add(std::env::consts::ARCH);
    add(WHEEL.sha256);
    add(&sys.version);
    add(&sys.checksum);
    add(&workspace::read_locked("bindgen")?.version);
    add(BINDINGS);
    add(blas::WHEEL.sha256);
    add(&blas::sample());
    add(blas::NATIVE);
    for (name, source) in NATIVE {
        add(name);
        add(source);
    }
    let hash = workspace::short_hex(hash);
    Ok(workspace::cache()?.join(format!("mlx-{}-{hash}", WHEEL.version)))
}

/// Builds everything aside and moves it to `prefix` when it is whole.
fn build(prefix: &Path) -> Result<()> {
    let started = Instant::now();
    check_platform()?;
    tools::ensure_to_build()?;

    let staging = prefix.with_extension("partial");
    workspace::remove_folder(&staging)?;
    let (link, out, native, build) = (
        staging.join("link"),
        staging.join("out"),
        staging.join("native"),
        staging.join("build"),
    );
    for folder in [&link, &out, &native] {
        workspace::create_folder(folder)?;
    }
    let log = staging.join("build.log");

    println!("setup: fetching {} {}", WHEEL.name, WHEEL.version);
    WHEEL.unpack(&staging, &log)?;
    blas::replace(&staging, &log)?;

    println!("setup: compiling mlx-c, about a minute on two cores");
    for (name, source) in NATIVE {
        fs::write(native.join(name), source)?;
    }
    let mlx_c = mlx_c_source()?;
    shell::run_logged(
        Command::new("cmake")
            .arg("-S")
            .arg(&native)
            .arg("-B")
            .arg(&build)
            .arg(define("MLX_C_SOURCE", &mlx_c))
            .arg(define("MLX_DIR", &staging.join("mlx/share/cmake/MLX")))
            .args(["-DCMAKE_BUILD_TYPE=Release", "-DMLX_C_USE_SYSTEM_MLX=ON"])
            .arg("-DMLX_C_BUILD_EXAMPLES=OFF"),
        &log,
    )?;
    let jobs = std::thread::available_parallelism().map_or(2, usize::from);
    shell::run_logged(
        Command::new("cmake")
            .arg("--build")
            .arg(&build)
            .args(["--parallel", &jobs.to_string()]),
        &log,
    )?;
    link_mlx_c(&build.join("libmlxc.a"), &staging, prefix, &log)?;

    println!("setup: generating bindings, about a minute");
    shell::run(
        shell::cargo()
            .current_dir(workspace::root())
            .args([
                "run",
                "--quiet",
                "--profile",
                "xtask",
                "-p",
                "xtask",
                "--features",
                "bindings",
            ])
            .args(["--bin", "bindings", "--"])
            .arg(&mlx_c)
            .arg(out.join("bindings.rs")),
    )?;

    workspace::remove_folder(&build)?;
    fs::write(staging.join("complete"), "")?;
    workspace::remove_folder(prefix)?;
    fs::rename(&staging, prefix).with_context(|| format!("cannot create {}", prefix.display()))?;
    println!(
        "setup: built MLX's bindings in {} s",
        started.elapsed().as_secs()
    );
    Ok(())
}

/// Makes a shared library of mlx-c that finds `libmlx.so` by itself.
///
/// Its soname is its full path, which is what programs record and load: no rpath has to reach
/// them, which the configuration of mlx-sys could not pass on to its dependents.
fn link_mlx_c(archive: &Path, staging: &Path, prefix: &Path, log: &Path) -> Result<()> {
    let soname = prefix.join("link/libmlxc.so");
    shell::run_logged(
        Command::new("c++")
            .args(["-shared", "-Wl,-z,defs", "-Wl,-rpath,$ORIGIN/../mlx/lib"])
            .arg(format!("-Wl,-soname,{}", soname.display()))
            .arg("-o")
            .arg(staging.join("link/libmlxc.so"))
            .arg("-Wl,--whole-archive")
            .arg(archive)
            .arg("-Wl,--no-whole-archive")
            .arg("-L")
            .arg(staging.join("mlx/lib"))
            .arg("-lmlx"),
        log,
    )
}

fn define(name: &str, path: &Path) -> String {
    format!("-D{name}={}", path.display())
}

/// The sources of mlx-c inside the mlx-sys crate, which Cargo fetches if need be.
fn mlx_c_source() -> Result<PathBuf> {
    let triple = triple();
    let metadata = shell::output(shell::cargo().current_dir(workspace::root()).args([
        "metadata",
        "--format-version",
        "1",
        "--filter-platform",
        &triple,
    ]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "mlx-sys")
        .and_then(|package| package["manifest_path"].as_str())
        .context("no crate of this workspace needs mlx-sys on this platform")?;
    Ok(Path::new(manifest).with_file_name("src").join("mlx-c"))
}

/// Writes `.cargo/mlx.toml`, which the committed configuration includes; says whether it changed.
fn write_cargo_config(prefix: &Path) -> Result<bool> {
    let path = workspace::root().join(".cargo/mlx.toml");
    let text = cargo_config(&triple(), prefix);
    if fs::read_to_string(&path).is_ok_and(|existing| existing == text) {
        return Ok(false);
    }
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

/// Stands in for what mlx-sys's build script would print.
fn cargo_config(triple: &str, prefix: &Path) -> String {
    let quoted = |value: String| serde_json::Value::String(value).to_string();
    format!(
        "# Written by `cargo xtask setup`.\n\
         [target.{triple}.mlx]\n\
         rustc-link-search = [{}]\n\
         rustc-link-lib = [\"dylib=mlxc\"]\n\
         rustc-env = {{ OUT_DIR = {} }}\n",
        quoted(format!("native={}", prefix.join("link").display())),
        quoted(prefix.join("out").display().to_string()),
    )
}

fn triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Apple publishes wheels for two architectures and glibc only.
fn check_platform() -> Result<()> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        bail!(
            "MLX comes for x86-64 and arm64, not for {}",
            std::env::consts::ARCH
        );
    }
    let printed = shell::output(Command::new("getconf").arg("GNU_LIBC_VERSION"))
        .context("MLX needs glibc")?;
    let version = glibc_version(&printed).context("MLX needs glibc")?;
    if version < GLIBC {
        bail!(
            "MLX needs glibc {}.{}, this system has {}.{}",
            GLIBC.0,
            GLIBC.1,
            version.0,
            version.1
        );
    }
    Ok(())
}

fn glibc_version(printed: &str) -> Option<(u32, u32)> {
    let (major, minor) = printed.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_versions_compare_by_number() {
        assert_eq!(glibc_version("glibc 2.36\n"), Some((2, 36)));
        assert!(glibc_version("glibc 2.4") < Some(GLIBC));
        assert_eq!(glibc_version("musl 1.2"), None);
    }

    #[test]
    fn the_configuration_quotes_paths() {
        let text = cargo_config("x86_64-unknown-linux-gnu", Path::new("/a \"b\""));
        assert!(
            text.contains("rustc-link-search = [\"native=/a \\\"b\\\"/link\"]"),
            "{text}"
        );
        assert!(text.contains("OUT_DIR = \"/a \\\"b\\\"/out\""), "{text}");
    }
}
