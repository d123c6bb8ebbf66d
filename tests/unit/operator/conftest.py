# SPDX-License-Identifier: Apache-2.0
"""Hypothesis without deadlines: how long an example takes says something about the machine, not about the code."""

from hypothesis import settings

settings.register_profile("weir", deadline=None)
settings.load_profile("weir")
