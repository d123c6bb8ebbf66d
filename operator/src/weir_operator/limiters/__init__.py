# SPDX-License-Identifier: Apache-2.0
"""The limiters as seen from outside: their status endpoints."""
