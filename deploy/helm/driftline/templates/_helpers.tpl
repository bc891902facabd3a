{{- define "driftline.name" -}}
{{- if contains "driftline" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-driftline" (.Release.Name | trunc 42 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "driftline.account" -}}
{{- .Values.serviceAccount.name | default (include "driftline.name" .) }}
{{- end }}

{{- define "driftline.selector" -}}
app.kubernetes.io/name: driftline
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "driftline.labels" -}}
{{ include "driftline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: operator
{{- end }}

{{/* What the operator does with its own objects, wherever they are. */}}
{{- define "driftline.rules" -}}
# It reads what is declared, and puts its finalizer on it; a spec is never written.
- apiGroups: [driftline.dev]
  resources: [distributiontenants, awsresources]
  verbs: [get, list, watch, patch]
- apiGroups: [driftline.dev]
  resources: [distributiontenants/status, awsresources/status]
  verbs: [update]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
