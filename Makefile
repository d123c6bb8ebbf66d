# SPDX-License-Identifier: Apache-2.0
# The only door for people and CI. `make help` prints itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PYTHONPATH := $(CURDIR)/tests/e2e
PY := .venv/bin/python
GATEWAYS ?= 2
STORE ?= single
GENERATED := crds charts/weir/files/crds limiter-sidecar/schema \
  docs/reference/ratelimitpolicy.md docs/reference/ratelimitoverride.md docs/reference/conditions.md

.PHONY: help setup doctor fmt lint demo up revive down test test-unit test-conformance test-integration test-e2e \
  generate verify golden bench bench-operator bench-instructions requirements clean

help: ## Print this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | column -t -s "$$(printf '\t')"

setup: ## Make .venv: pinned packages, the operator, the limiter (does nothing when nothing changed)
	@python3 -m lab.workspace

doctor: ## Say what this machine has, what will be fetched, and what somebody must install
	@python3 -m lab doctor

fmt: setup ## Format Python and Rust, sort imports
	$(PY) -m ruff check --select I --fix . && $(PY) -m ruff format .
	cd limiter-sidecar && cargo fmt --all

lint: setup ## Everything that reads the code without running it
	@$(PY) -m lab.rings lint

demo: setup ## Show the main job on real parts, judge it by its figures, take everything down
	@$(PY) -m lab demo

up: setup ## Start the demo's environment and leave it running: GATEWAYS=2; writes .weir/env
	@$(PY) -m lab up --gateways $(GATEWAYS) --store $(STORE)

revive: ## Start again what of `make up` has been killed
	@python3 -m lab revive

down: ## End exactly what `make up` started
	@python3 -m lab down

test: setup ## All rings of tests, cheapest first; the last line is the sum
	@$(PY) -m lab.rings

test-unit: setup ## Unit tests, Python and Rust
	@$(PY) -m lab.rings unit

test-conformance: setup ## The same vectors over the Python model, the Lua script in a real store, the Rust core
	@$(PY) -m lab.rings conformance

test-integration: setup ## The limiter as a process, with a real store and a real Envoy
	@$(PY) -m lab.rings integration

test-e2e: setup ## Everything of the demo, case by case
	@$(PY) -m lab.rings e2e

generate: setup ## Write what comes from the models: CRDs, the chart's copies, the ruleset's schema, reference pages
	$(PY) -m weir_operator.api.crd --write crds
	$(PY) -m weir_operator.api.ruleset_schema --write limiter-sidecar/schema/ruleset.schema.json
	$(PY) -m weir_operator.api.reference --write docs/reference
	cp crds/*.yaml charts/weir/files/crds/

verify: generate ## Generate, and fail if the repository holds anything else
	git diff --exit-code -- $(GENERATED)

golden: setup ## Accept what is rendered now as the golden files; read the difference before you commit it
	WEIR_ACCEPT_GOLDEN=1 $(PY) -m pytest tests/unit -q -k 'golden or accepted'

bench: setup ## Measure what has a target; prints a table, writes benchmarks/results/latest.json
	@$(PY) benchmarks/run.py

bench-operator: setup ## Measure the operator with 1,000 policies, 12,000 overrides and 100 limiters
	@$(PY) benchmarks/run_operator.py

bench-instructions: setup ## Count instructions per call under callgrind, fail when one moved by 3 %: ACCEPT=1 accepts
	@$(PY) benchmarks/instructions.py $(if $(ACCEPT),--accept)

requirements: setup ## Requirement -> tests -> last outcome
	@$(PY) -m pytest tests --collect-only -q --requirements | grep -E '^R[0-9]+ '

clean: ## Remove what this repository's commands made here (the caches in your home stay)
	rm -rf .venv .weir limiter-sidecar/target .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
