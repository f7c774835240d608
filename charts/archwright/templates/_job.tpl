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

{{/* Ends before Helm, which waits for 5m by default, even if the pod does not start. A longer timeout is for a Helm that waits longer. */}}
{{- define "archwright.jobDeadline" -}}
{{- if regexMatch "^([1-4]m|[0-9]{1,2}s)$" .Values.startupCheck.timeout }}
  activeDeadlineSeconds: 285
{{- end }}
{{- end -}}

{{/* dict root account [early]. early: before the objects of the chart, without a token and the chart's own priority class */}}
{{- define "archwright.jobPod" -}}
restartPolicy: Never
serviceAccountName: {{ .account }}
automountServiceAccountToken: {{ not .early }}
enableServiceLinks: false
{{- include "archwright.podFields" .root.Values.jobs }}
{{- include "archwright.imagePullSecrets" .root }}
{{- include "archwright.priority" (dict "root" .root "values" .root.Values.jobs "early" .early) }}
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

{{/* Annotations of a hook. Nothing stays after a failure: Helm prints the log, and `archwright status` says the same. Argument: when it runs */}}
{{- define "archwright.probeHook" -}}
helm.sh/hook: {{ . }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
helm.sh/hook-output-log-policy: hook-failed
{{- end -}}

{{/* A policy limits it to dry runs (ownrights.yaml), and it exists only while the check runs. dict root account hook */}}
{{- define "archwright.probeRights" }}
---
apiVersion: v1
kind: ServiceAccount
{{ include "archwright.metadata" (dict "root" .root "kind" "serviceaccount" "name" .account "part" "startup-check" "annotations" .hook) }}
automountServiceAccountToken: false
{{- if .root.Values.rbac.create }}
{{- $inOther := printf "%s-%s" (include "archwright.clusterName" .root) (trimPrefix (print (include "archwright.fullname" .root) "-") .account) }}
{{ include "archwright.role" (dict "root" .root "part" "startup-check" "name" $inOther "account" .account "hook" .hook "namespace" .root.Values.startupCheck.namespace "rules" (include "archwright.probeRules" .root)) }}
{{ include "archwright.role" (dict "root" .root "part" "startup-check" "name" (print .account "-installation") "account" .account "hook" .hook "namespace" (include "archwright.namespace" .root) "rules" (include "archwright.installationRules" .root)) }}
{{- end }}
{{- end -}}
