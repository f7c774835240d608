{{/* Pieces of the Jobs of hooks. */}}

{{/* dict root part */}}
{{- define "archwright.jobMetadata" -}}
metadata:
  labels:
    {{- include "archwright.labels" (dict "root" .root "kind" "pod" "part" .part "labels" .root.Values.jobs.podLabels) | nindent 4 }}
  {{- with mergeOverwrite (dict) .root.Values.commonAnnotations .root.Values.pod.annotations .root.Values.jobs.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* dict root account */}}
{{- define "archwright.jobPod" -}}
restartPolicy: Never
serviceAccountName: {{ .account }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- include "archwright.podFields" .root.Values.jobs }}
{{- include "archwright.imagePullSecrets" .root }}
{{- include "archwright.priority" (dict "root" .root "values" .root.Values.jobs) }}
{{- include "archwright.placement" (dict "root" .root "values" .root.Values.jobs) | nindent 0 }}
{{ include "archwright.podSecurityContext" .root.Values.jobs }}
{{- end -}}

{{- define "archwright.jobContainer" -}}
{{ include "archwright.containerImage" . }}
env:
  - { name: ARCHWRIGHT_CONFIG, value: /etc/archwright/config/archwright.toml }
resources:
  {{- toYaml .Values.jobs.resources | nindent 2 }}
{{ include "archwright.securityContext" .Values.jobs }}
volumeMounts:
  - { name: config, mountPath: /etc/archwright/config, readOnly: true }
{{- end -}}

{{/* dict root account */}}
{{- define "archwright.probePod" -}}
{{ include "archwright.jobPod" . }}
containers:
  - name: probe
    {{- include "archwright.jobContainer" .root | nindent 4 }}
    args:
      - probe
      - --installation
      - --pod-namespace={{ .root.Values.startupCheck.namespace }}
      - --image={{ include "archwright.image" .root }}
      - --timeout={{ .root.Values.startupCheck.timeout }}
volumes:
  - name: config
    configMap: { name: {{ include "archwright.fullname" .root }} }
{{- end -}}
