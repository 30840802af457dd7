//! Builds the program of a run's own processes, so that the one binary of a release contains it.
//!
//! The program is linked statically and without relocations, so its start costs few page faults. Cargo cannot pass the
//! binary of one package to the build of another package, so this script calls cargo with a target directory of its
//! own. A build for development leaves the program out: the `supervisor` binary takes its place, and a change needs one
//! build.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources of the program, from this package.
const SOURCES: [&str; 8] = [
    "../shim/src",
    "../shim/Cargo.toml",
    "../../policies/src",
    "../../policies/Cargo.toml",
    "../../workspace/lease/src",
    "../../workspace/lease/Cargo.toml",
    "../../Cargo.toml",
    "../../Cargo.lock",
];
const PROGRAM: &str = "supervisor-shim";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_shim_program)");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    // A host may lack the static C library.
    match build(&["-Ctarget-feature=+crt-static", "-Crelocation-model=static"]).or_else(|| build(&[])) {
        Some(program) => {
            println!("cargo::rustc-cfg=has_shim_program");
            println!("cargo::rustc-env=SHIM_PROGRAM={}", program.display());
        }
        None => println!("cargo::warning=without the small program of shims, each run starts more slowly"),
    }
}

/// Builds the program with further flags for the compiler. Returns its path; none if the build fails.
fn build(flags: &[&str]) -> Option<PathBuf> {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let target = variable("TARGET");
    let directory = Path::new(&variable("OUT_DIR")).join("shim");
    let inherited = variable("CARGO_ENCODED_RUSTFLAGS");
    let flags: Vec<&str> =
        inherited.split('\u{1f}').filter(|flag| !flag.is_empty()).chain(flags.iter().copied()).collect();
    let status = Command::new(variable("CARGO"))
        .args(["build", "--locked", "--quiet", "--profile", "shim", "--bin", PROGRAM, "--target", &target])
        .args(["--manifest-path", "../shim/Cargo.toml", "--target-dir"])
        .arg(&directory)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status();
    let program = directory.join(target).join("shim").join(PROGRAM);
    status.is_ok_and(|status| status.success()).then_some(program).filter(|program| program.is_file())
}
