# SPDX-License-Identifier: Apache-2.0
# The only door for people and CI. `make help` prints itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
PY := .venv/bin/python

.PHONY: help test-unit

help: ## Print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | column -t -s "$$(printf '\t')"

test-unit: ## Unit tests (Python)
	$(PY) -m pytest tests/unit
