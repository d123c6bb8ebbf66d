# SPDX-License-Identifier: Apache-2.0
"""Weir's limiter: the program beside Envoy that decides which requests pass.

`cli` is the program, `config` its settings, `lifecycle` its start and end. Everything a request meets is in the
compiled `_core`; no Python runs on a request's path.
"""
