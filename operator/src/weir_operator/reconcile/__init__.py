# SPDX-License-Identifier: Apache-2.0
"""Observe, compile, render, plan, apply, report: one level-triggered pass per gateway, and its pure parts."""
