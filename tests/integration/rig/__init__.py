# SPDX-License-Identifier: Apache-2.0
"""A sidecar as a process, asked as Envoy asks it, with rulesets written as the operator writes them."""
