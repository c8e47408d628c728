//! How modules are loaded: TypeScript, and modules behind `https://`.

use std::collections::BTreeMap;
use std::sync::Arc;

use squall_script::{Console, Form, Level, Outcome, Program, ProgramSetup, ScriptError};

use crate::drive::{Text, iterate, reply};

/// Names that begin alike for longer than the engine's messages tell.
const LONG_NAMES: [&str; 2] = [
    "https://lib.example/a/module/whose/name/is/much/longer/than/the/sixty-four/bytes/of/a/message/first.js",
    "https://lib.example/a/module/whose/name/is/much/longer/than/the/sixty-four/bytes/of/a/message/second.js",
];

fn load(path: &str, source: &str) -> Result<Arc<Program>, ScriptError> {
    let console = Arc::new(Console::new(Box::new(Text::default()), Form::Raw, Level::Debug));
    let modules = BTreeMap::from([
        ("https://lib.example/a.ts", "import { b } from './b.js'; export const a: string = b;"),
        ("https://lib.example/b.js", "export const b = 'from b';"),
        ("https://lib.example/file.js", "import 'file:///etc/passwd';"),
        (LONG_NAMES[0], "export const there = 1;"),
        (LONG_NAMES[1], "export const other = 1;"),
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
fn a_module_knows_where_it_lies() {
    let folder = format!("{}/tests/users", env!("CARGO_MANIFEST_DIR"));
    let source = format!(
        "const table = open(import.meta.resolve('{folder}/table.csv'));
         export default function () {{
             console.log(import.meta.resolve('{folder}/../a b.js').endsWith('/tests/a%20b.js'));
             console.log(table.length > 10, Object.keys(import.meta).join());
             try {{ import.meta.resolve('k6/http'); }} catch (error) {{ console.log(error.message); }}
         }}"
    );
    let run = iterate(&source, 2, |_| reply(200, &[], ""));
    assert_eq!(run.outcome, Outcome::Done(None));
    let lines: Vec<&str> = run.said.lines().take(3).collect();
    assert_eq!(lines[..2], ["true", "true resolve"], "{}", run.said);
    assert!(lines[2].contains("couldn't be recognised"), "{}", run.said);
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
            "was loaded over the network and may not load the file `file:///etc/passwd`",
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

#[test]
fn modules_that_are_not_there_are_refused_with_help() {
    for (name, message, help) in [
        ("k6/browser", "it drives a browser", "measure pages with k6, and their requests with squall"),
        ("k6/browser/async", "it drives a browser", "measure pages with k6, and their requests with squall"),
        ("k6/net/grpc", "gRPC is not supported", "run this script with k6"),
        ("k6/secrets", "squall has no secret sources", "pass a secret with `-e NAME=VALUE`"),
        ("k6/crypto/x509", "squall cannot parse certificates", "run this script with k6"),
        ("k6/crypto/webcrypto", "`crypto` is a global", "remove the import"),
        ("k6/experimental/webcrypto", "`crypto` is a global", "remove the import"),
        ("k6/experimental/tracing", "k6 has removed it", "set the tracing headers"),
        ("k6/experimental/redis", "it is an extension of k6, written in Go", "run this script with k6"),
        (
            "k6/x/sql",
            "it is an extension of k6, written in Go",
            "run this script with k6; the supported extensions are k6/x/fasthttp and k6/x/sse",
        ),
        ("k6/htp", "k6 has no such module", "supported modules: k6, k6/http, k6/metrics"),
    ] {
        for (source, place) in [
            (format!("import 'k6';\nimport it from '{name}';"), "/t/a.js:2:16"),
            (format!("const k6 = require('k6');\nconst it = require('{name}');"), "/t/a.js:2:12"),
        ] {
            let error = load("/t/a.js", &source).unwrap_err();
            let expected = format!("Error: the module `{name}` is not supported: {message}");
            assert_eq!(error.message.lines().next(), Some(&*expected));
            assert!(error.help.starts_with(help), "{name}: {}", error.help);
            assert_eq!(error.place.as_deref(), Some(place), "{source}");
        }
    }
}

#[test]
fn imports_that_lead_nowhere_are_placed() {
    for (specifier, message, help) in [
        ("lodash", "couldn't be recognised as something k6 supports", "npm packages are not resolved"),
        ("./none.js", "cannot read `/t/none.js`: No such file", "check the path"),
        ("https://lib.example/none.js", "404 Not Found", "check the network"),
    ] {
        let error = load("/t/a.js", &format!("import 'k6';\n\n  import '{specifier}';")).unwrap_err();
        assert!(error.message.contains(message), "{}", error.message);
        assert!(error.help.starts_with(help), "{}", error.help);
        assert_eq!(error.place.as_deref(), Some("/t/a.js:3:10"));
    }
}

#[test]
fn namespaces_and_aliases_of_typescript_run() {
    let source = "namespace A { export const b = 1; export function f() { return b + 1; } export namespace C { export const d = 'd'; } }
        namespace A { export let e = b; export enum E { X = 3, Y } }
        namespace T { export type Only = string }
        import Q = A.C;
        import Unused = T.Only;
        const enum F { One = 1, Two = One << 1 }
        A.e = A.e + 1;
        const said = [A.f(), A.C.d, A.e, A.E.Y, A.E[3], Q.d, F.Two].join(' ');
        if (said !== '2 d 2 4 X d 2') throw new Error(said);
        export default function () {}";
    assert_eq!(load("/t/a.ts", source).map(drop), Ok(()));
}

#[test]
fn an_import_of_what_is_not_exported_is_placed() {
    for (source, message, place) in [
        (
            "import {\n  b, nothere } from 'https://lib.example/b.js';",
            "SyntaxError: Could not find export 'nothere' in module 'https://lib.example/b.js'",
            "/t/a.js:2:6",
        ),
        (
            "import b, { c } from 'https://lib.example/b.js';",
            "SyntaxError: Could not find export 'default' in module 'https://lib.example/b.js'",
            "/t/a.js:1:22",
        ),
        (
            "import { b, c } from 'https://lib.example/b.js';",
            "SyntaxError: Could not find export 'c' in module 'https://lib.example/b.js'",
            "/t/a.js:1:13",
        ),
    ] {
        let error = load("/t/a.js", source).unwrap_err();
        assert_eq!((error.message.as_str(), error.place.as_deref()), (message, Some(place)));
        assert_eq!(error.help, "import a name that the module exports");
    }
}

#[test]
fn a_missing_export_is_reported_with_the_whole_name_of_its_module() {
    let [first, second] = LONG_NAMES;
    let source = format!("import {{ there }} from '{first}';\nimport {{ there as b }} from '{second}';");
    let error = load("/t/a.js", &source).unwrap_err();
    assert_eq!(error.message, format!("SyntaxError: Could not find export 'there' in module '{second}'"));
    assert_eq!(error.place.as_deref(), Some("/t/a.js:2:10"));
}

#[test]
fn modules_are_recognised_whatever_regular_expressions_hold() {
    for source in [
        "const esc = (s) => s.replace(/[`]/g, ''); export const options = { vus: 1 };",
        "const esc = (s) => s.replace(/[\"'\\/]/g, ''); export const options = { vus: 1 };",
        "const esc = /`/; exports.options = { vus: 1 }; return;",
    ] {
        let program = load("/t/a.js", source).unwrap_or_else(|error| panic!("{source}: {}", error.message));
        assert_eq!(program.options().to_string(), r#"{"vus":1}"#, "{source}");
    }
}

#[test]
fn names_that_a_module_of_k6_lacks_are_undefined() {
    let run = iterate(
        "import http, { nope } from 'k6/http'; import { exec, none, vu } from 'k6/execution'; import exec2 from 'k6/execution';
         export default function () { console.log(typeof nope, typeof exec, typeof none, vu === exec2.vu, typeof http.get); }",
        1,
        |_| reply(200, &[], ""),
    );
    assert_eq!(run.outcome, Outcome::Done(None));
    assert_eq!(run.said, "undefined undefined undefined true function\n");
}

/// What bundlers make of modules: a helper for each kind, minified, with CommonJS and ES modules in one file.
#[test]
fn bundles_of_esbuild_rollup_and_webpack_run() {
    // esbuild: CommonJS modules are functions that run at the first use; namespaces are objects with getters.
    let esbuild = r#"var l=Object.create;var d=Object.defineProperty;var g=Object.getOwnPropertyNames;var h=Object.prototype.hasOwnProperty;
        var c=(m,e)=>()=>(e||m((e={exports:{}}).exports,e),e.exports),x=(m,e)=>{for(var t in e)d(m,t,{get:e[t],enumerable:!0})};
        var w=(m,e,t)=>(t=m!=null?l(Object.getPrototypeOf(m)):{},n(e||!m||!m.__esModule?d(t,"default",{value:m,enumerable:!0}):t,m));
        function n(m,e){for(let t of g(e))!h.call(m,t)&&d(m,t,{get:()=>e[t],enumerable:!0});return m}
        var q=c((z,s)=>{"use strict";s.exports={quote:v=>v.replace(/[`'"/]/g,"_")}});var k={};x(k,{two:()=>p});var p=2;
        import y from"k6/http";import{check as f}from"k6";var o=w(q(),1),b={vus:2};
        function a(){f(y.get("http://t/"),{ok:e=>e.status===200});console.log(o.default.quote("a`b/c"),k.two,typeof require)}
        export{a as default,b as options};"#;
    // rollup: one scope, with getters for what CommonJS has as its default.
    let rollup = r#"import t from"k6/http";import{check as e}from"k6";
        function n(t){return t&&t.__esModule&&Object.prototype.hasOwnProperty.call(t,"default")?t.default:t}
        var r,i,o={exports:{}};var s=n(i?r:(i=1,function(t,e){t.exports=function(){"use strict";return{quote:t=>t.replace(/[`'"/]/g,"_")}}()}(o),r=o.exports));
        const u={vus:2};function c(){e(t.get("http://t/"),{ok:t=>200===t.status}),console.log(s.quote("a`b/c"),2,typeof require)}
        export{c as default,u as options};"#;
    // webpack, library type commonjs: modules by number, required externals, and exports as getters that are copied at the end.
    let webpack = r#"/*! licences: see a file */
        (()=>{var e={17(e){"use strict";e.exports={quote:e=>e.replace(/[`'"/]/g,"_")}},42(e){e.exports=require("k6")},77(e){"use strict";e.exports=require("k6/http")}},t={};
        function r(o){var n=t[o];if(void 0!==n)return n.exports;var s=t[o]={exports:{}};return e[o].call(s.exports,s,s.exports,r),s.exports}
        r.n=e=>{var t=e&&e.__esModule?()=>e.default:()=>e;return r.d(t,{a:t}),t},
        r.d=(e,t)=>{for(var o in t)r.o(t,o)&&!r.o(e,o)&&Object.defineProperty(e,o,{enumerable:!0,get:t[o]})},
        r.o=(e,t)=>Object.prototype.hasOwnProperty.call(e,t),
        r.r=e=>{"undefined"!=typeof Symbol&&Symbol.toStringTag&&Object.defineProperty(e,Symbol.toStringTag,{value:"Module"}),Object.defineProperty(e,"__esModule",{value:!0})};
        var o={};(()=>{"use strict";r.r(o),r.d(o,{default:()=>u,options:()=>c});var e=r(77),t=r.n(e),n=r(42),s=r(17),a=r.n(s);const c={vus:2};
        function u(){(0,n.check)(t().get("http://t/"),{ok:e=>200===e.status}),console.log(a().quote("a`b/c"),2,typeof require)}})();
        const n=exports;for(var s in o)n[s]=o[s];o.__esModule&&Object.defineProperty(n,"__esModule",{value:!0})})();"#;
    for (bundler, source) in [("esbuild", esbuild), ("rollup", rollup), ("webpack", webpack)] {
        let run = iterate(source, 1, |_| reply(200, &[], ""));
        assert_eq!(run.outcome, Outcome::Done(None), "{bundler}");
        assert_eq!(run.said, "a_b_c 2 function\n", "{bundler}");
        assert_eq!(run.seen.requests, ["GET http://t/"], "{bundler}");
        assert_eq!(run.seen.checks, [(String::new(), "ok".to_owned(), true)], "{bundler}");
    }
}
