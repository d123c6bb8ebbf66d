# SPDX-License-Identifier: Apache-2.0
"""The custom resources as users write them: their models, their CRDs and their reference pages.

What a spec means is decided in `domain`; here it is only parsed, and what cannot be parsed is explained.
"""
