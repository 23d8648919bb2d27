# `make demo` and `make test` set up all they need: virtual environment, build, install.
# `make check` is the one command before a commit.
.DEFAULT_GOAL := help
.PHONY: help build demo test unit exact check lint types rust pytest docs audit planted clean lock wheel sbom deny licences \
	deploy-demo first-answer first-hour trial notebooks picture soak bench-wire bench-many bench-kernels bench-load bench-floor bench-elgamal bench-ledger bench-union \
	bench-featplus bench-committee bench-sealed bench-accuracy bench-coverage bench-spu bench-timing bench-fold bench-million bench-planner bench-growth bench-tables reproduce browser
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOOLS := $(VENV)/.tools
BUILT := $(VENV)/.built
# Tools of a release: apart from .venv, since few need them and zig alone is 100 MB.
RELEASE := target/release-tools
RELEASE_BIN := $(CURDIR)/$(RELEASE)/bin
RUST := Cargo.toml Cargo.lock .cargo/config.toml $(shell find crates -name '*.rs' -o -name 'Cargo.toml')

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Silograph needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "Silograph needs a Rust toolchain (cargo) on the PATH" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Everything comes from the lock, by its hash; the package itself then needs nothing more.
$(TOOLS): $(BIN)/python requirements/dev.txt
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/dev.txt
	@touch $@

$(BUILT): $(TOOLS) $(RUST) pyproject.toml
	$(BIN)/maturin develop --release --locked --quiet >/dev/null
	@touch $@

$(RELEASE)/.ready: requirements/release.txt
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE_BIN)/python -m pip install --quiet --require-hashes --requirement $<
	@touch $@

build: $(BUILT) ## .venv with the package, all extras and the development tools

demo: $(BUILT) ## a seeded graph, four overlapping silos, a table of answers
	@$(BIN)/silograph demo

deploy-demo: $(BUILT) ## broker, coordinator and four silos as processes, a study of each method
	@$(BIN)/python -m benchmarks.deploy_demo

first-answer: $(BUILT) ## from nothing to the first deployed answer: commands and seconds, three ways
	@$(BIN)/python -m benchmarks.first_answer

# Tests of deployments wait for brokers, disks and deadlines: two workers would leave two cores idle
# for half of the time.
WORKERS ?= 4
# Workers share two cores: threads of matrix products would only be in their way.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

test: $(BUILT) ## all tests (at most 10 minutes on two cores)
	cargo test --quiet --locked -p silograph-core
	$(PYTEST)

unit: $(BUILT) ## the fast tests (under two minutes on two cores)
	$(PYTEST) -m unit

exact: $(BUILT) ## enumerations and random federations that are too long for make test
	$(PYTEST) --whole -m whole

check: lint types rust pytest docs ## everything that a commit must pass

browser: ## Chromium, in which the tests look at pages
	@if command -v chromium >/dev/null; then exit 0; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	else echo "install Chromium as 'chromium' on the PATH (Debian: apt-get install chromium); without it the browser tests skip" >&2; exit 1; fi

lint: $(BUILT)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	cargo fmt --all --check

types: $(BUILT)
	$(BIN)/mypy

rust: $(BUILT)
	cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
	cargo test --quiet --locked -p silograph-core

pytest: $(BUILT)
	$(PYTEST)

docs: $(BUILT) ## the manual, in build/docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs

bench-kernels: $(BUILT) ## triangles of noisy graphs against five peers, and growth with n
	$(BIN)/python -m benchmarks.kernels

bench-load: $(BUILT) ## reading one and ten million edges against polars and networkx
	$(BIN)/python -m benchmarks.load

bench-floor: $(BUILT) ## 1,000 releases of Facebook: error and coverage against the formulas
	$(BIN)/python -m benchmarks.floor

bench-elgamal: $(BUILT) ## work per cell of threshold ElGamal, beside libsodium
	$(BIN)/python -m benchmarks.elgamal_core

bench-ledger: $(BUILT) ## a spend beside a bare fsync on the same disk
	$(BIN)/python -m benchmarks.ledger

bench-accuracy: $(BUILT) ## sealed beside its mechanism in one hand, the best central mechanisms, and feat
	$(BIN)/python -m benchmarks.sealed_accuracy

bench-coverage: $(BUILT) ## whether 95 % intervals hold the truth: all queries, many graphs (hours; goes on)
	$(BIN)/python -m benchmarks.coverage --json build/coverage.json

# SPU is a Python that has SecretFlow SPU, or a folder in which an environment with it is made.
SPU ?= target/spu
bench-spu: $(BUILT) ## a peer: SecretFlow SPU counts the triangles of a secret matrix (minutes)
	$(BIN)/python -m benchmarks.spu_peer --spu $(SPU)

audit: $(BUILT) ## the epsilons of all unions and reports against enumeration and real runs
	@$(BIN)/silograph audit

bench-union: $(BUILT) ## time, growth and memory of the private unions, beside two peers
	$(BIN)/python -m benchmarks.union

bench-committee: $(BUILT) ## the committee's traffic, work beside masked, and error on Facebook
	$(BIN)/python -m benchmarks.committee

soak: $(BUILT) ## over 1,000 faults of deployments: a table of what was expected and what happened
	@$(BIN)/python -m tests.soak

bench-wire: $(BUILT) ## four silos uploading 20,000 nodes over mutual TLS, beside the bare broker
	$(BIN)/python -m benchmarks.wire

bench-many: $(BUILT) ## one study over 32 silos, and the memory of each party
	$(BIN)/python -m benchmarks.many

bench-featplus: $(BUILT) ## feat+: time of the local work, and a table of errors beside feat
	$(BIN)/python -m benchmarks.featplus

bench-sealed: $(BUILT) ## the sealed protocol: all parties' time, traffic and memory, and its kernel
	$(BIN)/python -m benchmarks.sealed

bench-timing: $(BUILT) ## whether the time of a silo's messages depends on its edges (three minutes)
	$(BIN)/python -m benchmarks.timing

bench-fold: $(BUILT) ## folded releases drawn again: bias, spread, intervals and predictions (hours; goes on)
	$(BIN)/python -m benchmarks.fold --json build/fold.json

bench-planner: $(BUILT) ## realised by predicted error of every method, ranges, and auto's regret
	$(BIN)/python -m benchmarks.planner

bench-million: $(BUILT) ## a million nodes, from files to answers: time, traffic, memory, growth
	$(BIN)/python -m benchmarks.million

bench-growth: $(BUILT) ## growth of every query and protocol from n to 2n, and the most nodes of each (minutes)
	$(BIN)/python -m benchmarks.growth

# FROM="build/benchmarks/union.json …": measurements that pages shall quote from now on.
bench-tables: $(TOOLS) ## the figures of speed in README and docs, from docs/benchmarks (FROM= stores new ones)
	@$(BIN)/python -m benchmarks.tables $(FROM)

# The graphs: where SILOGRAPH_DATA or the folder beside the repository has them; else fetched.
reproduce: $(BUILT) ## every experiment of the paper and more, into experiments/ (under an hour)
	@SILOGRAPH_DATA="$${SILOGRAPH_DATA:-$(wildcard ../shared/data)}" $(BIN)/python -m reproduction run --out experiments

first-hour: $(BUILT) ## from a fresh clone to the first answer: commands and minutes
	@$(BIN)/python -m benchmarks.first_hour

trial: $(BUILT) ## every command, typed in a terminal of 80 columns; the transcript, and its faults
	@$(BIN)/python -m tests.trial

notebooks: $(BUILT) ## the outputs in examples/ anew
	@$(BIN)/python -m tests.docs.notebooks

picture: $(BUILT) ## the picture of README anew
	@$(BIN)/python docs/picture.py

planted: $(BUILT) ## planted privacy and protocol bugs, each caught by some test
	@$(BIN)/python -m tests.planted

# uv does not read pip's configuration, so it is told the index that pip would ask.
LOCK = @index=$$($(RELEASE_BIN)/python -m pip config get global.index-url 2>/dev/null || true); \
	$(RELEASE_BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url $${index:+--default-index "$$index"} $(UPGRADE)

lock: $(RELEASE)/.ready ## requirements/ anew, with hashes (UPGRADE=--upgrade: newer versions too)
	$(LOCK) pyproject.toml --all-extras --group dev --output-file requirements/dev.txt
	$(LOCK) pyproject.toml --extra deploy --extra websocket --extra console \
		--constraint requirements/dev.txt --output-file requirements/deploy.txt
	$(LOCK) --group release --output-file requirements/release.txt

# zig links against the oldest C library that Rust supports, so that the wheel runs on any Linux;
# PLATFORM= leaves it out. No path of this machine stays in the extension.
PLATFORM ?= --zig --compatibility manylinux_2_17
CARGO_HOME ?= $(HOME)/.cargo
# RUSTFLAGS replace those of .cargo/config.toml, so the curve's code is named here again.
CURVE := $(if $(filter x86_64,$(shell uname -m)), --cfg curve25519_dalek_backend=\"avx512\")
# With each of these the wheel is installed and tried.
PYTHONS ?= $(PYTHON)
wheel: $(RELEASE)/.ready ## dist/: a portable wheel built from its own sdist, and both checked
	rm -rf dist
	PATH="$(RELEASE_BIN):$$PATH" RUSTFLAGS="--remap-path-prefix=$(CARGO_HOME)=/cargo$(CURVE)" \
		SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
		maturin build --release --locked --quiet --sdist $(PLATFORM) --out dist
	$(RELEASE_BIN)/twine check --strict dist/*
	@$(RELEASE_BIN)/python release/check_wheel.py dist $(PYTHONS)

sbom: wheel ## dist/*.cdx.json (CycloneDX): the wheel's crates, and the Python that a deployment runs
	rm -rf target/sbom
	$(PYTHON) -m venv --without-pip target/sbom
	$(RELEASE_BIN)/python -m pip --python target/sbom/bin/python install --quiet \
		--require-hashes --requirement requirements/deploy.txt
	$(RELEASE_BIN)/python -m pip --python target/sbom/bin/python install --quiet --no-deps dist/*.whl
	unzip -p dist/*.whl '*/sboms/silograph-py.cyclonedx.json' >dist/silograph-crates.cdx.json
	$(RELEASE_BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file dist/silograph-python.cdx.json target/sbom/bin/python

DENY := target/tools/bin/cargo-deny
$(DENY):
	cargo install --quiet --locked --root target/tools cargo-deny@0.20.2

deny: $(DENY) ## licences, versions and sources of every crate, and advisories where they are reached
	$(DENY) check licenses bans sources
	@if $(DENY) fetch db 2>/dev/null; then $(DENY) check --disable-fetch advisories; \
	else echo "the advisory database cannot be reached: advisories were not checked" >&2; fi

licences: $(BUILT) ## THIRD-PARTY.txt anew, from the crates of Cargo.lock
	$(BIN)/python release/licences.py

clean: ## remove everything that was built
	rm -rf $(VENV) target build dist src/silograph/_core*.so
