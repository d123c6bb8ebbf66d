# SPDX-License-Identifier: Apache-2.0
"""The command `weir` for people: one module for each subcommand, which gives itself a parser and runs.

Nothing in here imports kopf, so that a command starts at once and works where no operator could (import-linter).
"""
