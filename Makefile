# Every task of the project. `make help` lists them.

# Servers that the tests start live in sbin on Debian, and Go's toolchain and the programs it installs often here.
export PATH := $(PATH):/usr/sbin:/usr/local/sbin:/usr/local/go/bin:$(or $(GOPATH),$(HOME)/go)/bin
CARGO ?= cargo
CASE ?= all
TOOL ?=
ARCH ?=
ROUNDS ?= 5
SECONDS ?= 3
MINUTES ?= 10
SEEDS ?= 0..10000
K6 ?= k6
REPOS ?= suites/k6/repositories

.DEFAULT_GOAL := help
.PHONY: help build build-debug build-quick ui ui-test demo test dist package-test install-test site pictures lint bench k6-diff hostile recorded websocket interop kubernetes-test fuzz simulate k6-wild docs build-deps test-deps bench-deps

help: ## lists the tasks
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: build-deps ui ## builds target/release/squall
	$(CARGO) build --release --package squall

ui: ui/dist/page.html ## builds the page of reports and dashboards that squall embeds

ui/dist/page.html: $(wildcard ui/src/* ui/src/pages/*) ui/build.mjs ui/node_modules/.package-lock.json
	cd ui && npm run --silent check && npm run --silent build

ui/node_modules/.package-lock.json: ui/package-lock.json
	@dev/setup ui
	cd ui && npm ci --no-audit --no-fund
	@touch $@

ui-test: test-deps build-debug ## tests the page in headless Chromium
	cd ui && npm run --silent test

# With the features that the tests have, so that nothing is built twice.
build-debug: ui
	$(CARGO) build --workspace --bin squall

build-quick: build-deps ui
	$(CARGO) build --profile quick --package squall

demo: build-quick ## builds squall in the quick profile and measures its embedded target
	@dev/demo target/quick/squall

# Documentation tests run first, so that the last summary is one with tests in it.
test: test-deps ui lint docs ui-test ## runs every check: lint, documentation, tests
	$(CARGO) test --workspace --doc
	$(CARGO) test --workspace --lib --bins --tests
	@suites/hostile/run quick
	@suites/websocket/run quick
	$(CARGO) build --workspace --example relay
	@suites/interop/run quick

lint: build-deps ## checks formatting, clippy, project conventions and licences
	$(CARGO) fmt --all --check
	@# Nothing is linked, so libFuzzer itself is not built.
	CUSTOM_LIBFUZZER_PATH=none/libfuzzer.a $(CARGO) clippy --workspace --all-targets --features squall-fuzz/targets -- -D warnings
	$(CARGO) xtask tidy
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny check licenses bans sources; else echo "cargo-deny is not installed: licences were not checked"; fi

bench: bench-deps ## compares with wrk, wrk2, h2load, ab and oha: CASE=small-100 TOOL=wrk ROUNDS=5 SECONDS=3
	$(CARGO) build --release --package squall --package squall-floor --package squall-compare
	target/release/squall-compare --case '$(CASE)' $(if $(TOOL),--tool '$(TOOL)') --rounds $(ROUNDS) --seconds $(SECONDS)

k6-diff: build-debug ## runs the same scripts with k6 and squall and compares the results: K6=/path/to/k6
	SQUALL=$(CURDIR)/target/debug/squall K6=$(K6) suites/k6/diff

k6-wild: build-debug ## runs public scripts with k6 and squall: REPOS=list CHECKOUTS=folder K6=/path/to/k6
	SQUALL=$(CURDIR)/target/debug/squall K6=$(K6) CHECKOUTS=$(CHECKOUTS) suites/k6/wild $(REPOS)

simulate: build-deps ## whole runs in simulated time, a seed for each: SEEDS=0..10000
	SQUALL_SEEDS=$(SEEDS) $(CARGO) test --package squall-engine --lib simulation -- --nocapture

hostile: test-deps ## runs every attack of suites/hostile and counts how many squall withstands
	@suites/hostile/run

recorded: build-debug ## records shops of real frameworks, replays them, and runs them as k6 scripts: CASE=django/go K6=/path/to/k6
	SQUALL=$(CURDIR)/target/debug/squall K6=$(K6) suites/recorded/run $(filter-out all,$(CASE))

websocket: build-debug ## runs the conformance cases of WebSockets against client, target and mock: CASE=client
	SQUALL=$(CURDIR)/target/debug/squall suites/websocket/run $(filter-out all,$(CASE))

kubernetes-test: build-debug ## runs plans on pods of a real cluster that it starts here, as root: CASE=faults
	@dev/setup kubernetes
	SQUALL=$(CURDIR)/target/debug/squall suites/kubernetes/run $(filter-out all,$(CASE))

interop: build-debug test-deps ## runs HTTP/3 against other implementations, also over a path with faults: CASE=envoy
	$(CARGO) build --workspace --example relay
	SQUALL=$(CURDIR)/target/debug/squall suites/interop/run $(filter-out all,$(CASE))

fuzz: ## runs every fuzz target on the stable compiler: MINUTES=10 in all
	@fuzz/run $(MINUTES)

docs: build-deps ## builds the API documentation in target/doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items

dist: build-deps ui ## builds a release in target/dist: static binary, archive, .deb, OCI image, SBOM, checksums: ARCH=aarch64
	dev/dist $(ARCH)

pictures: build ## makes the README's pictures from a real run
	@dev/pictures target/release/squall

site: ## builds the documentation site in target/site
	@dev/site

package-test: ## tests what `make dist` built, as root: in an empty root, as .deb and container, over ssh, as a GitHub action
	@dev/setup package
	@suites/packages/run target/dist
	@suites/packages/action target/dist

install-test: ## tests `cargo install` from a clean clone without Node
	@suites/packages/install

build-deps:
	@dev/setup build

test-deps: ## installs the servers that the tests need
	@dev/setup test

bench-deps:
	@dev/setup bench
