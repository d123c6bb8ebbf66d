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
