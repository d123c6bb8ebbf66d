# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes API without Docker: etcd, kube-apiserver and kube-controller-manager as processes on loopback.

`build` compiles them from the Go module proxy (go.mod and go.sum beside this file pin every module), `certificates`
makes a throw-away authority, `server` starts and stops them. There is no scheduler and no node: nothing runs in pods.
"""
