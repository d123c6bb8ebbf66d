# SPDX-License-Identifier: Apache-2.0
"""The API server: the only package that knows the Kubernetes client."""
