//! Writes Rust bindings of mlx-c, with the settings of mlx-sys's own build script.
//!
//! Usage: `bindings <mlx-c source folder> <output file>`.

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let (Some(source), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bindings <mlx-c source folder> <output file>".into());
    };
    let source = PathBuf::from(source);

    let mut headers = std::fs::read_dir(source.join("mlx/c"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    headers.retain(|path| path.extension().is_some_and(|extension| extension == "h"));
    headers.sort();

    // The headers declare float16_t and bfloat16_t for arm64 only, and mlx-rs needs them, so they
    // are read as arm64 code everywhere. The system's own headers are still those of this machine.
    let mut builder = bindgen::Builder::default()
        .rust_target("1.73.0".parse()?)
        .clang_arg(format!("-I{}", source.display()))
        .clang_args([
            "--target=aarch64-unknown-linux-gnu",
            "-march=armv8.6-a+bf16",
        ])
        .blocklist_function("malloc")
        .blocklist_function("realloc");
    if cfg!(target_arch = "x86_64") {
        builder = builder.clang_args(["-I/usr/include/x86_64-linux-gnu", "-D__x86_64__"]);
    } else {
        builder = builder.clang_arg("-I/usr/include/aarch64-linux-gnu");
    }
    for header in headers {
        builder = builder.header(header.to_string_lossy());
    }
    builder.generate()?.write_to_file(PathBuf::from(output))?;
    Ok(())
}
