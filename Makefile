# SPDX-License-Identifier: Apache-2.0
# The only door for people and CI. `make help` prints itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PYTHONPATH := $(CURDIR)/tests/e2e
PY := .venv/bin/python

.PHONY: help setup fmt lint test test-unit requirements clean

help: ## Print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | column -t -s "$$(printf '\t')"

setup: ## Make .venv with the pinned packages, the operator and the limiter (does nothing when nothing changed)
	@python3 -m lab.workspace

fmt: setup ## Sort imports and apply ruff's and rustfmt's safe fixes
	$(PY) -m ruff check --select I --fix .

lint: setup ## Everything that reads code without running it
	@$(PY) -m lab.rings lint

test: setup ## All rings, cheapest first; the last line is the sum
	@$(PY) -m lab.rings

test-unit: setup ## Unit tests
	@$(PY) -m lab.rings unit

clean: ## Remove what this repository's commands made here (caches in your home stay)
	rm -rf .venv .weir limiter-sidecar/target .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
