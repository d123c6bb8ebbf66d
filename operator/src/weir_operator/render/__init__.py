# SPDX-License-Identifier: Apache-2.0
"""From rulesets and settings to Kubernetes objects and Envoy configuration: pure, sorted, same input, same bytes."""
