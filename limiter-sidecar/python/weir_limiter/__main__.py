# SPDX-License-Identifier: Apache-2.0
"""`python -m weir_limiter`: the same program as `weir-limiter`."""

import sys

from weir_limiter.cli import main

sys.exit(main())
