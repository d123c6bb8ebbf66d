# SPDX-License-Identifier: Apache-2.0
"""The lab: Weir's real parts (control plane, store, Envoy, upstream, limiters, operator) as a library.

Used by `make demo`, `make up` and the tests alike. It starts programs and talks to them; it contains no assertion about
what Weir should do and nothing of Weir's own code is imported here.
"""
