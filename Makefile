# Two commands are enough: `make demo` and `make test`. Each sets up .venv by itself.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench

.DEFAULT_GOAL := help
.PHONY: help demo test check bench fmt docs reproduce audit clean

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-11s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(BENCH_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

demo: $(STAMP) ## Private answers next to the true ones, on a generated table
	@$(BIN)/evenhand demo

test: check ## All checks and tests
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(STAMP) ## Lint, types, and which package may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: $(STAMP) ## Format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BENCH_STAMP) ## Speed relative to the bare engine and to other libraries; accuracy relative to the best possible bound
	$(BIN)/python -m benchmarks

reproduce: $(STAMP) ## Compute the papers' figures and tables again, into figures/
	$(BIN)/evenhand reproduce all --out figures

audit: $(STAMP) ## The long audit: try to disprove every guarantee, kill 2,000 processes that write to a ledger
	$(BIN)/evenhand audit --out docs/audits
	$(BIN)/python tests/audit/ledger_crash.py --kills 1000
	$(BIN)/python tests/audit/ledger_crash.py --kills 1000 --postgres
	$(BIN)/python tests/audit/server_crash.py --kills 20
	$(BIN)/python tests/audit/server_crash.py --kills 20 --postgres

docs: $(STAMP) ## Check the documentation: links, code, examples, and whether proofs are up to date
	$(BIN)/python -m pytest -q tests/apps/test_docs.py tests/apps/test_examples.py tests/audit/test_proofs.py

clean: ## Remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
