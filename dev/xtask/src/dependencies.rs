//! What the binary is made of, for packagers: a software bill of materials (SPDX 2.3) and the licence texts of every dependency.
//! Only crates that are linked into `squall` count: build scripts, macros and tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

/// Writes `target/squall.spdx.json`.
pub(crate) fn write_sbom(root: &Path) -> ExitCode {
    report(linked_crates(root).and_then(|crates| {
        let text = serde_json::to_string_pretty(&spdx(&crates)).map_err(io::Error::other)?;
        save(root, "target/squall.spdx.json", &text)
    }))
}

/// Writes `target/THIRD-PARTY-LICENSES.txt`.
pub(crate) fn write_licenses(root: &Path) -> ExitCode {
    report(
        linked_crates(root)
            .and_then(|crates| save(root, "target/THIRD-PARTY-LICENSES.txt", &license_texts(&crates))),
    )
}

/// A crate that is linked into the binary.
struct Crate {
    name: String,
    version: String,
    license: String,
    /// None for the workspace's own crates.
    source: Option<String>,
    folder: PathBuf,
}

/// Every crate that `squall` links, itself first, then by name and version.
fn linked_crates(root: &Path) -> io::Result<Vec<Crate>> {
    let metadata = metadata(root)?;
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (text(node, "id"), node)).collect();
    let packages = list(&metadata["packages"]);
    let squall = packages.iter().find(|package| package["name"] == "squall");
    let first =
        squall.map(|package| text(package, "id")).ok_or_else(|| io::Error::other("no package `squall`"))?;
    let mut linked = BTreeSet::from([first]);
    let mut open = vec![first];
    while let Some(id) = open.pop() {
        let dependencies = nodes.get(id).map_or(&[][..], |node| list(&node["deps"]));
        for dependency in dependencies.iter().filter(|dependency| is_linked(dependency)) {
            let id = text(dependency, "pkg");
            if !is_macro(packages, id) && linked.insert(id) {
                open.push(id);
            }
        }
    }
    let mut crates: Vec<Crate> =
        packages.iter().filter(|package| linked.contains(text(package, "id"))).map(to_crate).collect();
    crates.sort_by(|a, b| {
        (a.name != "squall", &a.name, &a.version).cmp(&(b.name != "squall", &b.name, &b.version))
    });
    Ok(crates)
}

fn metadata(root: &Path) -> io::Result<Value> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", &host];
    let output = Command::new(env!("CARGO")).current_dir(root).args(args).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// An ordinary dependency; those of tests and build scripts have a `kind`.
fn is_linked(dependency: &Value) -> bool {
    list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
}

fn is_macro(packages: &[Value], id: &str) -> bool {
    packages.iter().filter(|package| text(package, "id") == id).any(|package| {
        list(&package["targets"]).iter().any(|target| list(&target["kind"]).contains(&json!("proc-macro")))
    })
}

fn to_crate(package: &Value) -> Crate {
    let manifest = Path::new(text(package, "manifest_path"));
    Crate {
        name: text(package, "name").to_owned(),
        version: text(package, "version").to_owned(),
        license: package["license"].as_str().unwrap_or("NOASSERTION").replace('/', " OR "),
        source: package["source"].as_str().map(str::to_owned),
        folder: manifest.parent().unwrap_or(manifest).to_owned(),
    }
}

fn spdx(crates: &[Crate]) -> Value {
    let id = |a: &Crate| format!("SPDXRef-{}-{}", a.name.replace('_', "-"), a.version.replace('+', "-"));
    let packages: Vec<Value> = crates
        .iter()
        .map(|a| {
            let mut package = json!({
                "SPDXID": id(a),
                "name": a.name,
                "versionInfo": a.version,
                "downloadLocation": "NOASSERTION",
                "filesAnalyzed": false,
                "licenseConcluded": "NOASSERTION",
                "licenseDeclared": a.license,
                "copyrightText": "NOASSERTION",
            });
            if a.source.is_some() {
                package["downloadLocation"] =
                    json!(format!("https://crates.io/api/v1/crates/{}/{}/download", a.name, a.version));
                package["externalRefs"] = json!([{
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": format!("pkg:cargo/{}@{}", a.name, a.version),
                }]);
            }
            package
        })
        .collect();
    let squall = crates.first().map(id).unwrap_or_default();
    let linked = crates.iter().skip(1).map(
        |a| json!({"spdxElementId": squall, "relationshipType": "DEPENDS_ON", "relatedSpdxElement": id(a)}),
    );
    let described = json!({"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": squall});
    let relationships: Vec<Value> = std::iter::once(described).chain(linked).collect();
    let version = crates.first().map_or("", |a| a.version.as_str());
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("squall-{version}"),
        "documentNamespace": format!("https://spdx.org/spdxdocs/squall-{version}"),
        // Fixed, so that one source makes one document.
        "creationInfo": {"created": "1970-01-01T00:00:00Z", "creators": ["Tool: cargo xtask sbom"]},
        "packages": packages,
        "relationships": relationships,
    })
}

/// The licence texts of all dependencies, each text once, with the crates under it.
fn license_texts(crates: &[Crate]) -> String {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut all = "Squall contains the following third-party crates.\n\n".to_owned();
    for a in crates.iter().filter(|a| a.source.is_some()) {
        let _ = writeln!(all, "{} {}: {}", a.name, a.version, a.license);
        for file in license_files(&a.folder) {
            let text = String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).trim().to_owned();
            by_text.entry(text).or_default().push(format!("{} {}", a.name, a.version));
        }
    }
    for (text, names) in by_text {
        let _ = write!(all, "\n{}\n{}\n\n{text}\n", "=".repeat(100), names.join(", "));
    }
    all
}

fn license_files(folder: &Path) -> Vec<PathBuf> {
    let starts = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];
    let is_license = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        path.is_file() && starts.iter().any(|start| name.starts_with(start))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_license).collect();
    files.sort();
    files
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Writes a file below the root, and prints its name.
fn save(root: &Path, path: &str, text: &str) -> io::Result<()> {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap_or(root))?;
    fs::write(&file, text)?;
    println!("{path}");
    Ok(())
}

fn report(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
