//! A server in Go's `net/http`, built when it is needed: the toolchain keeps what it has built.

use std::process::Command;

use rustix::process::Signal;

use super::{Ports, Recipe, Site};
use crate::program;

pub(super) fn recipe(site: &Site) -> Recipe {
    site.write("main.go", &source(site));
    let built = Command::new(program("go"))
        .args(["build", "-o", "server", "main.go"])
        .current_dir(site.folder())
        .output()
        .expect("the Go toolchain starts");
    assert!(built.status.success(), "Go 1.24 or newer is needed: {}", String::from_utf8_lossy(&built.stderr));
    Recipe {
        program: "sh",
        quit: Signal::TERM,
        args: vec!["-c".to_owned(), "exec ./server".to_owned()],
        config: String::new(),
        ports: Ports::Three,
    }
}

/// Its access log has a line for each request, written when it is asked to end.
fn source(site: &Site) -> String {
    let (plain, tls, h2c) = (site.plain, site.tls, site.h2c);
    format!(
        r#"
package main

import (
	"bytes"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

func main() {{
	var served atomic.Int64
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {{
		w.Write([]byte("hello\n"))
		served.Add(1)
	}})
	unencrypted := new(http.Protocols)
	unencrypted.SetUnencryptedHTTP2(true)
	go http.ListenAndServe("{plain}", answer)
	go http.ListenAndServeTLS("{tls}", "cert.pem", "key.pem", answer)
	go (&http.Server{{Addr: "{h2c}", Handler: answer, Protocols: unencrypted}}).ListenAndServe()
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	<-asked
	os.WriteFile("access.log", bytes.Repeat([]byte("request\n"), int(served.Load())), 0o600)
}}
"#
    )
}
