# Every task of the project. `make help` lists them.

# Servers that the tests start live in sbin on Debian, and Go's toolchain and the programs it installs often here.
export PATH := $(PATH):/usr/sbin:/usr/local/sbin:/usr/local/go/bin:$(or $(GOPATH),$(HOME)/go)/bin
CARGO ?= cargo
CASE ?= all
ARCH ?=
ROUNDS ?= 5
SECONDS ?= 3
MINUTES ?= 10
K6 ?= k6
REPOS ?= suites/k6/repositories

.DEFAULT_GOAL := help
.PHONY: help build build-debug build-quick ui ui-test demo test dist package-test site pictures lint bench k6-diff hostile recorded fuzz k6-wild docs build-deps test-deps bench-deps

help: ## lists the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: build-deps ui ## builds target/release/squall
	$(CARGO) build --release --package squall

ui: ui/dist/page.html ## builds the page of reports and dashboards, which the program embeds

ui/dist/page.html: $(wildcard ui/src/* ui/src/pages/*) ui/build.mjs ui/node_modules/.package-lock.json
	cd ui && npm run --silent check && npm run --silent build

ui/node_modules/.package-lock.json: ui/package-lock.json
	@dev/setup ui
	cd ui && npm ci --no-audit --no-fund
	@touch $@

ui-test: test-deps build-debug ## drives the page in headless Chromium
	cd ui && npm run --silent test

# With the features that the tests have, so that nothing is built twice.
build-debug: ui
	$(CARGO) build --workspace --bin squall

build-quick: build-deps ui
	$(CARGO) build --profile quick --package squall

demo: build-quick ## measures the embedded target and shows the result
	@dev/demo target/quick/squall

# Documentation tests run first, so that the last summary is one with tests in it.
test: test-deps ui lint docs ui-test ## all checks: lint, documentation, then every test
	$(CARGO) test --workspace --doc
	$(CARGO) test --workspace --lib --bins --tests
	@suites/hostile/run quick

lint: build-deps ## formatting, clippy, project conventions, licences
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) check --quiet --manifest-path fuzz/Cargo.toml --target-dir target --bins
	$(CARGO) xtask tidy
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny check; else echo "cargo-deny is not installed: licences were not checked"; fi

bench: bench-deps ## compares with wrk, wrk2, h2load, ab and oha: CASE=small-100 ROUNDS=5 SECONDS=3
	$(CARGO) build --release --package squall --package squall-floor --package squall-compare
	target/release/squall-compare --case '$(CASE)' --rounds $(ROUNDS) --seconds $(SECONDS)

k6-diff: build-debug ## the same scripts with k6 and with squall: K6=/path/of/k6
	SQUALL=$(CURDIR)/target/debug/squall K6=$(K6) suites/k6/diff

k6-wild: build-debug ## public scripts with k6 and with squall: REPOS=list of them CHECKOUTS=their folder K6=/path/of/k6
	SQUALL=$(CURDIR)/target/debug/squall K6=$(K6) CHECKOUTS=$(CHECKOUTS) suites/k6/wild $(REPOS)

hostile: test-deps ## every attack of suites/hostile, with how many held
	@suites/hostile/run

recorded: build-debug ## shops of real frameworks, recorded, replayed and run as k6 scripts: CASE=django/go K6=/path/of/k6
	SQUALL=$(CURDIR)/target/debug/squall K6=$(K6) suites/recorded/run $(filter-out all,$(CASE))

fuzz: ## every fuzz target in turn on the stable compiler: MINUTES=10 for all together
	@fuzz/run $(MINUTES)

docs: build-deps ## API documentation in target/doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items

dist: build-deps ui ## a static binary, its archive, .deb, OCI image, SBOM and checksums in target/dist: ARCH=aarch64
	dev/dist $(ARCH)

pictures: build ## makes the README's pictures from a real run
	@dev/pictures target/release/squall

site: ## builds the documentation site in target/site
	@dev/site

package-test: ## runs what `make dist` built: in an empty root, installed from the .deb, from the OCI image
	@suites/packages/run target/dist

build-deps:
	@dev/setup build

test-deps: ## installs the servers that the tests need
	@dev/setup test

bench-deps:
	@dev/setup bench
