# SPDX-License-Identifier: Apache-2.0
"""What a limit is, and what the limiters shall run: pure values and functions of the standard library.

Nothing here reads a clock, a file, the environment or the network, logs, or knows Kubernetes; what is wrong with
a user's object is a value (`problems.Problem`), never an exception.
"""
