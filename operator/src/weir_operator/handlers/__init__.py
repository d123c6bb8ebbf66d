# SPDX-License-Identifier: Apache-2.0
"""The edges where kopf hands over what the API server says: the only package that knows kopf."""
