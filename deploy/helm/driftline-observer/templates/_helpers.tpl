{{- define "observer.name" -}}
{{- if contains "driftline" .Release.Name }}{{ .Release.Name | trunc 42 | trimSuffix "-" }}{{ else }}{{ printf "%s-driftline" (.Release.Name | trunc 32 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "observer.account" -}}
{{- .Values.serviceAccount.name | default (include "observer.name" .) }}
{{- end }}

{{- define "observer.labels" -}}
app.kubernetes.io/name: driftline-observer
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: observer
{{- end }}

{{/* A pod that runs the program once. Given: the root context and the arguments. */}}
{{- define "observer.pod" -}}
{{- $ := index . 0 -}}
{{- $args := index . 1 -}}
metadata:
  labels:
    {{- include "observer.labels" $ | nindent 4 }}
    {{- with $.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Another configuration is another pod, also for who looks at old ones.
    checksum/config: {{ $.Values.config | sha256sum }}
    {{- with $.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  restartPolicy: Never
  serviceAccountName: {{ include "observer.account" $ }}
  # It asks the cluster for nothing. The token of an IAM role is mounted by the cluster's own webhook.
  automountServiceAccountToken: false
  {{- with $.Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: 30
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    # The token of an IAM role, and the seal key, are mounted for this group.
    fsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: observer
      image: "{{ $.Values.image.repository }}:{{ $.Values.image.tag | default $.Chart.AppVersion }}"
      imagePullPolicy: {{ $.Values.image.pullPolicy }}
      args:
        {{- range $args }}
        - {{ . | quote }}
        {{- end }}
      env:
        - name: AWS_REGION
          value: {{ $.Values.aws.region }}
        - name: DRIFTLINE_STORE
          value: {{ $.Values.store | quote }}
        - name: DRIFTLINE_CONFIG
          value: /etc/driftline/driftline.toml
        - name: DRIFTLINE_CACHE_DIR
          value: /cache
        {{- if $.Values.sealKey.secretName }}
        - name: DRIFTLINE_SEAL_KEY_FILE
          value: /var/run/driftline/seal/key
        {{- end }}
        {{- with $.Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumeMounts:
        - name: config
          mountPath: /etc/driftline
          readOnly: true
        - name: cache
          mountPath: /cache
        {{- if $.Values.sealKey.secretName }}
        - name: seal
          mountPath: /var/run/driftline/seal
          readOnly: true
        {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      {{- with $.Values.resources }}
      resources: {{- toYaml . | nindent 8 }}
      {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "observer.name" $ }}
    - name: cache
      emptyDir:
        sizeLimit: {{ $.Values.cache.sizeLimit }}
    {{- if $.Values.sealKey.secretName }}
    - name: seal
      secret:
        secretName: {{ $.Values.sealKey.secretName }}
        defaultMode: 0440
        items:
          - key: {{ $.Values.sealKey.key }}
            path: key
    {{- end }}
  {{- with $.Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
