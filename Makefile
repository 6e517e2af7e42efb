# Two commands are enough: `make demo` and `make test`. Each sets up .venv by itself.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench

.DEFAULT_GOAL := help
.PHONY: help demo test test-thorough package check bench fmt docs reproduce audit screenshots clean

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-11s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(BENCH_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

# What pip can't bring: Java for Spark, Chromium for the pages. Installed where apt-get may; elsewhere such tests are
# skipped, and the end of the run names and counts them.
.PHONY: system
system:
	@missing=; command -v java >/dev/null || missing="$$missing default-jre-headless"; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing$$missing"; \
	  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing) >/dev/null 2>&1 \
	    || echo "Could not install$$missing: tests that need it are skipped"; \
	fi

demo: $(STAMP) ## Private answers next to the true ones, on a generated table
	@$(BIN)/evenhand demo

test: check system ## All checks, and all tests but the long and the statistical ones
	$(BIN)/python -m pytest -n 2 --dist loadgroup

test-thorough: $(STAMP) system ## The long and the statistical tests
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m thorough

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

docs: $(STAMP) ## Build the documentation as a site, and check it: links, code, notebooks, examples, whether proofs are up to date
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	$(BIN)/python -m pytest -q tests/apps/test_docs.py tests/apps/test_tutorials.py tests/apps/test_examples.py tests/audit/test_proofs.py
	@echo "The site is in build/site: open build/site/index.html"

screenshots: $(STAMP) system ## Take the documentation's pictures of the keeper's page again
	EVENHAND_SCREENSHOTS=docs/pictures $(BIN)/python -m pytest tests/browser/test_keeper_page.py -k whole_story

package: $(STAMP) ## Build wheel and sdist, check them, and try the wheel in an empty environment
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling twine
	rm -rf dist build/clean
	$(BIN)/hatchling build
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv build/clean
	build/clean/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	build/clean/bin/python tests/apps/clean_install.py

clean: ## Remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
