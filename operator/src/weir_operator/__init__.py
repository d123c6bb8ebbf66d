# SPDX-License-Identifier: Apache-2.0
"""Weir's operator: turns RateLimitPolicy and RateLimitOverride objects into what the limiters run.

The map, outermost ring first; a ring imports only rings below it (checked by import-linter):

    main                composition root: settings, adapters, handlers
    handlers | cli      kopf edges, command line; no decisions
    kube | limiters     the world: API server, limiters' /status
    reconcile           observe, plan, report: the loop and its pure parts
    render              ruleset and settings to Kubernetes objects and Envoy configuration
    api                 the custom resources as users write them
    domain              what a limit is; pure, standard library only
"""
