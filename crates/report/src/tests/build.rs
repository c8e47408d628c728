//! The build script, which must work where the page was not built: on a machine without Node.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn a_build_without_the_page_succeeds_with_a_warning() {
    let (page, said) = built(None);
    assert_eq!(page, "");
    assert!(said.contains("cargo:warning=ui/dist/page.html does not exist"), "{said}");
}

#[test]
fn a_page_that_was_built_is_embedded() {
    let (page, said) = built(Some("<!doctype html>"));
    assert_eq!(page, "<!doctype html>");
    assert!(!said.contains("cargo:warning"), "{said}");
}

/// The page that a build embeds, and what the build script prints, where `ui/dist` holds this page or none.
fn built(page: Option<&str>) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let crate_folder = folder.path().join("crates/report");
    let dist = folder.path().join("ui/dist");
    for path in [&crate_folder, &dist] {
        fs::create_dir_all(path).unwrap();
    }
    if let Some(page) = page {
        fs::write(dist.join("page.html"), page).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let program = folder.path().join("build");
    let mut compiler = Command::new(option_env!("RUSTC").unwrap_or("rustc"));
    compiler.args(["--edition", "2024", "-o"]).arg(&program).arg(script);
    assert!(compiler.env("CARGO_MANIFEST_DIR", &crate_folder).status().unwrap().success());
    let output = Command::new(program).env_clear().env("OUT_DIR", folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    (fs::read_to_string(folder.path().join("page.html")).unwrap(), String::from_utf8(output.stdout).unwrap())
}
