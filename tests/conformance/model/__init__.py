# SPDX-License-Identifier: Apache-2.0
"""The algorithms in plain integers: what the Lua scripts and the Rust core must compute, written to be read.

It owns the meaning of a decision and nothing else: no store, no clock, no wire format. Where the others may be clever,
this one may only be obvious. Python's integers have no size, so nothing here depends on how large a figure gets.
"""

from model.buckets import BucketRecord, LeakyBucket, TokenBucket
from model.limit import MAX_EXACT, NEVER, Limit, Record, Said, StaleEdgesError
from model.log import LogRecord, SlidingWindowLog
from model.store import STALE, Model, Rule, charged
from model.windows import CalendarWindow, CounterRecord, FixedWindow, SlidingWindowCounter, WindowRecord

__all__ = [
    "MAX_EXACT",
    "NEVER",
    "STALE",
    "BucketRecord",
    "CalendarWindow",
    "CounterRecord",
    "FixedWindow",
    "LeakyBucket",
    "Limit",
    "LogRecord",
    "Model",
    "Record",
    "Rule",
    "Said",
    "SlidingWindowCounter",
    "SlidingWindowLog",
    "StaleEdgesError",
    "TokenBucket",
    "WindowRecord",
    "charged",
]
