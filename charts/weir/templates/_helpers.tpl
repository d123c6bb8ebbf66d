{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* Names are fixed, not derived from the release: the CRDs and the admission policy exist once in a cluster, and so does Weir. */}}
{{- define "weir.operator" -}}weir-operator{{- end }}
{{- define "weir.limiter" -}}weir-limiter{{- end }}

{{- define "weir.labels" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The distinct namespaces of the gateways, sorted, as {"names": […]} (a template can only return text). */}}
{{- define "weir.gatewayNamespaces" -}}
{{- $names := list -}}
{{- range .Values.gateways }}{{ $names = append $names .namespace }}{{ end -}}
{{- dict "names" ($names | uniq | sortAlpha) | toYaml -}}
{{- end }}

{{/* The user name under which the API server knows the operator. */}}
{{- define "weir.operatorUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "weir.operator" . }}
{{- end }}

{{/* CEL variables of both admission policies: what people own in status, before and after, and what of it is new or changed. */}}
{{- define "weir.peoplesFields" -}}
- name: oldSwitches
  expression: >-
    has(oldObject.status) && has(oldObject.status.killSwitches) && oldObject.status.killSwitches != null
    ? oldObject.status.killSwitches : {}
- name: switches
  expression: >-
    has(object.status) && has(object.status.killSwitches) && object.status.killSwitches != null
    ? object.status.killSwitches : {}
- name: newSwitches
  expression: >-
    variables.switches.map(r, r).filter(r, !(r in variables.oldSwitches && variables.oldSwitches[r] == variables.switches[r]))
- name: oldApprovals
  expression: >-
    has(oldObject.status) && has(oldObject.status.approvals) && oldObject.status.approvals != null
    ? oldObject.status.approvals : {}
- name: approvals
  expression: >-
    has(object.status) && has(object.status.approvals) && object.status.approvals != null
    ? object.status.approvals : {}
- name: newApprovals
  expression: >-
    variables.approvals.map(r, r).filter(r, !(r in variables.oldApprovals && variables.oldApprovals[r] == variables.approvals[r]))
{{- end }}
