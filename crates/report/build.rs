//! Finds the page that `make` builds from `ui/`, so that it can be embedded. Without it the build still succeeds: reports
//! are then plain pages of tables and charts.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/dist/page.html");
    // The folder, which is always there: a file that is missing would make every build run this again.
    println!("cargo:rerun-if-changed={}/../../ui/dist", env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(&built).unwrap_or_else(|_| {
        println!("cargo:warning=ui/dist/page.html does not exist: report.html will be a plain page of tables and charts, and `--web` is off; `make ui` builds the page with Node");
        String::new()
    });
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("page.html"), page).expect("OUT_DIR is writable");
}
