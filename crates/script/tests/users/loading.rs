//! How modules are loaded: TypeScript, and modules behind `https://`.

use std::collections::BTreeMap;
use std::sync::Arc;

use squall_script::{Console, Form, Level, Program, ProgramSetup, ScriptError};

use crate::drive::Text;

fn load(path: &str, source: &str) -> Result<Arc<Program>, ScriptError> {
    let console = Arc::new(Console::new(Box::new(Text::default()), Form::Raw, Level::Debug));
    let modules = BTreeMap::from([
        ("https://lib.example/a.ts", "import { b } from './b.js'; export const a: string = b;"),
        ("https://lib.example/b.js", "export const b = 'from b';"),
        ("https://lib.example/file.js", "import 'file:///etc/passwd';"),
    ]);
    let fetch = move |url: &str| {
        modules.get(url).map(|text| (*text).to_owned()).ok_or_else(|| "404 Not Found".to_owned())
    };
    Program::compile(ProgramSetup {
        path: path.into(),
        text: Some(source.to_owned()),
        env: BTreeMap::new(),
        fetch: Some(Box::new(fetch)),
        console,
    })
}

#[test]
fn typescript_runs_and_errors_keep_their_places() {
    let source = "interface A { b: number }\nconst a: A = { b: 1 };\nexport const options = { vus: a.b as number };\nexport default function (): void {}\n";
    assert_eq!(load("/t/a.ts", source).unwrap().options().to_string(), r#"{"vus":1}"#);
    let error = load("/t/a.ts", "type A = string;\n  const a: A = new Fail<A>() as any;").unwrap_err();
    assert_eq!(error.place.as_deref(), Some("/t/a.ts:2:20"), "{}", error.message);
    let error = load("/t/a.ts", "const a: = 1;").unwrap_err();
    assert!(error.message.starts_with("SyntaxError: /t/a.ts:1:10: "), "{}", error.message);
}

#[test]
fn modules_come_over_the_network() {
    let source = "import { a } from 'https://lib.example/a.ts'; export const options = { tags: { a } };";
    assert_eq!(load("/t/a.js", source).unwrap().options().to_string(), r#"{"tags":{"a":"from b"}}"#);
    for (url, message) in [
        (
            "https://lib.example/none.js",
            "cannot load the module `https://lib.example/none.js`: 404 Not Found",
        ),
        (
            "https://lib.example/file.js",
            "came over the network and may not load the file `file:///etc/passwd`",
        ),
    ] {
        let error = load("/t/a.js", &format!("import '{url}';")).unwrap_err();
        assert!(error.message.contains(message), "{}", error.message);
    }
}

#[test]
fn module_exports_in_an_es_module_are_refused() {
    let error = load("/t/a.js", "export default 1;\nmodule.exports = {};").unwrap_err();
    assert!(error.message.contains("module is not defined"), "{}", error.message);
}
