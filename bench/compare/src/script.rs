//! The k6 scripts that squall and k6 run unchanged.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::case::{Case, Messages};
use crate::tool::Tool;

/// A k6 script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    /// `http.get` of one URL, nothing else.
    Get,
    /// The same with one check.
    Check,
    /// Twenty requests as a recorder writes them: headers in each, bodies in some.
    Recorded,
    /// `http.get`, with a library of 84 KB that is imported.
    Library,
}

impl Script {
    /// Writes the script, with the URL in it, into a folder. `has_fasthttp`: for k6's fasthttp extension, which has its own client.
    pub(crate) fn write(self, url: &str, has_fasthttp: bool, folder: &Path) -> std::io::Result<PathBuf> {
        let path = folder.join("script.js");
        if self == Self::Library {
            std::fs::write(folder.join("library.js"), library())?;
        }
        let url = url.trim_end_matches('/');
        std::fs::write(&path, if has_fasthttp { fasthttp(url) } else { self.text(url) })?;
        Ok(path)
    }

    fn text(self, url: &str) -> String {
        let (imports, body) = match self {
            Self::Get => ("", format!("http.get('{url}/');")),
            Self::Check => (
                "import { check } from 'k6';\n",
                format!("check(http.get('{url}/'), {{ 'status is 200': (r) => r.status === 200 }});"),
            ),
            Self::Recorded => ("", recorded(url)),
            Self::Library => {
                ("import { pick } from './library.js';\n", format!("http.get('{url}/' + pick(__ITER));"))
            }
        };
        format!("import http from 'k6/http';\n{imports}export default function () {{\n  {body}\n}}\n")
    }
}

/// Writes a script of WebSocket messages for so many users, each with a connection that it closes after so many seconds.
pub(crate) fn write_messages(
    tool: Tool,
    case: &Case,
    (url, seconds): (&str, u32),
    folder: &Path,
) -> std::io::Result<Option<PathBuf>> {
    let Some(messages) = case.messages else { return Ok(None) };
    let (url, count) = (url.replacen("http", "ws", 1), case.connection_count);
    let (name, text) = match tool {
        Tool::K6 => ("script.js", k6_messages(messages, &url, (count, seconds))),
        Tool::K9 => ("script.py", k9_messages(messages, &url, (count, seconds))),
        _ => return Ok(None),
    };
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    Ok(Some(path))
}

fn k6_messages(messages: Messages, url: &str, (count, seconds): (u32, u32)) -> String {
    let begin = match messages {
        Messages::Echo => {
            "socket.on('open', () => socket.send(text));\n    socket.on('message', () => socket.send(text));"
                .to_owned()
        }
        Messages::Publish { per_s } => format!(
            "socket.on('message', () => {{}});\n    if (__VU === 1) socket.setInterval(() => socket.send(text), {});",
            1000.0 / f64::from(per_s)
        ),
    };
    format!(
        "import ws from 'k6/ws';\nexport const options = {{ vus: {count}, iterations: {count} }};\nconst text = '{MESSAGE}';\n\
         export default function () {{\n  ws.connect('{url}', null, (socket) => {{\n    {begin}\n    \
         socket.setTimeout(() => socket.close(), {seconds}000);\n  }});\n}}\n"
    )
}

fn k9_messages(messages: Messages, url: &str, (count, seconds): (u32, u32)) -> String {
    let turn = match messages {
        Messages::Echo => {
            "            await socket.send(text)\n            await socket.recv(timeout=5)\n".to_owned()
        }
        Messages::Publish { per_s } => format!(
            "            if k9.vu.id == 1:\n                await socket.send(text)\n                \
             await asyncio.sleep({})\n            else:\n                await socket.recv(timeout=5)\n",
            1.0 / f64::from(per_s)
        ),
    };
    format!(
        "import asyncio, time\nimport k9\nfrom k9 import ws\noptions = {{'scenarios': {{'all': {{'executor': 'per-vu-iterations', \
         'vus': {count}, 'iterations': 1}}}}}}\ntext = '{MESSAGE}'\nasync def default():\n    until = time.monotonic() + {seconds}\n    \
         async with ws.connect('{url}') as socket:\n        while time.monotonic() < until:\n{turn}"
    )
}

/// As long as the messages that squall sends by default.
const MESSAGE: &str = "abcdefghijklmnopqrstuvwxyzabcdef";

/// [`Script::Get`] with the extension's client.
fn fasthttp(url: &str) -> String {
    format!(
        "import {{ Client, Request }} from 'k6/x/fasthttp';\nconst client = new Client();\nconst request = new Request('{url}/');\nexport default function () {{\n  client.get(request);\n}}\n"
    )
}

/// Requests in the order of a page: of every three, one posts JSON.
fn recorded(url: &str) -> String {
    let mut text = format!("const base = '{url}';\n  let response;\n");
    for nth in 0..20 {
        let headers = format!(
            "'accept': 'application/json, text/plain, */*', 'accept-language': 'en-US,en;q=0.9', 'referer': 'https://shop.example/page/{nth}', \
             'x-requested-with': 'XMLHttpRequest', 'sec-fetch-mode': 'cors', 'cache-control': 'no-cache', 'x-session-id': 'abcdef0123456789'"
        );
        let path = format!("base + '/?resource={nth}&query=value'");
        let line = if nth % 3 == 2 {
            let body = format!("'{{\"item\":{nth},\"quantity\":3,\"notes\":\"{}\"}}'", "n".repeat(200));
            format!(
                "http.post({path}, {body}, {{ headers: {{ {headers}, 'content-type': 'application/json' }} }})"
            )
        } else {
            format!("http.get({path}, {{ headers: {{ {headers} }} }})")
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  response = {line};");
    }
    text
}

/// Functions of a common size, exported in one object.
fn library() -> String {
    let mut text = String::from("const parts = [];\n");
    while text.len() < LIBRARY_BYTES {
        let nth = text.len();
        let _ = writeln!(
            text,
            "parts.push(function part{nth}(list, options) {{\n  const limit = (options && options.limit) || {nth};\n  let sum = 0;\n  for (const item of list) {{\n    if (item.name === 'n{nth}' && sum < limit) {{\n      sum += item.value * {nth};\n    }}\n  }}\n  return {{ sum, name: `part ${{sum}}`, isLarge: sum > limit }};\n}});"
        );
    }
    text.push_str(
        "export function pick(nth) { return parts[nth % parts.length]([], null).isLarge ? 'x' : ''; }\n",
    );
    text
}

const LIBRARY_BYTES: usize = 84_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_ask_for_the_url_they_are_given() {
        for script in [Script::Get, Script::Check, Script::Recorded, Script::Library] {
            let text = script.text("http://127.0.0.1:8080");
            assert!(
                text.contains("'http://127.0.0.1:8080") && text.contains("export default function"),
                "{text}"
            );
        }
        assert_eq!(recorded("http://x").matches("response = http.").count(), 20);
        assert!((84_000..85_000).contains(&library().len()));
    }
}
