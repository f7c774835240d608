{{/* Pieces of every pod. */}}

{{/* Taints of architectures say nothing to an image that runs on all of them. dict root tolerations */}}
{{- define "archwright.tolerations" -}}
tolerations:
  - key: kubernetes.io/arch
    operator: Exists
    effect: NoSchedule
  - key: {{ include "archwright.settingText" (dict "root" .root "key" "taintKey") }}
    operator: Exists
    effect: NoSchedule
  {{- with .tolerations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "archwright.imagePullSecrets" -}}
{{- with concat .Values.imagePullSecrets .Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* dict root values */}}
{{- define "archwright.priority" -}}
{{- if .values.priorityClassName }}
priorityClassName: {{ .values.priorityClassName }}
{{- else if .root.Values.global.priorityClassName }}
priorityClassName: {{ .root.Values.global.priorityClassName }}
{{- else if .root.Values.priorityClass.create }}
priorityClassName: {{ include "archwright.clusterName" .root }}
{{- end }}
{{- end -}}

{{/* Where a pod of webhook, controller or a Job may run. dict root values */}}
{{- define "archwright.placement" -}}
{{- with .values.nodeSelector | default .root.Values.global.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{ include "archwright.tolerations" (dict "root" .root "tolerations" .values.tolerations) }}
{{- end -}}

{{/* dict root part values */}}
{{- define "archwright.spread" -}}
topologySpreadConstraints:
{{- if kindIs "slice" .values.topologySpreadConstraints }}
{{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- include "archwright.selector" $ | nindent 8 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What Pod Security calls restricted. */}}
{{- define "archwright.podSecurityContext" -}}
{{- $base := dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532 "seccompProfile" (dict "type" "RuntimeDefault") -}}
securityContext:
  {{- mergeOverwrite $base (deepCopy .podSecurityContext) | toYaml | nindent 2 }}
{{- end -}}

{{- define "archwright.securityContext" -}}
{{- $base := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
securityContext:
  {{- mergeOverwrite $base (deepCopy .securityContext) | toYaml | nindent 2 }}
{{- end -}}

{{/* dict root values, of a container */}}
{{- define "archwright.containerImage" -}}
image: {{ include "archwright.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- define "archwright.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: metrics }
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: metrics }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /readyz, port: metrics }
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
{{- end -}}

{{/* dict root part port checksum */}}
{{- define "archwright.podMetadata" -}}
{{- $annotations := dict "checksum/restart" .checksum -}}
{{- if .root.Values.monitoring.scrapeAnnotations -}}
{{- $_ := set $annotations "prometheus.io/scrape" "true" -}}
{{- $_ := set $annotations "prometheus.io/port" (.port | int | toString) -}}
{{- $_ := set $annotations "prometheus.io/path" "/metrics" -}}
{{- end -}}
{{- $annotations = mergeOverwrite (dict) .root.Values.commonAnnotations .root.Values.pod.annotations $annotations -}}
metadata:
  annotations:
    {{- toYaml $annotations | nindent 4 }}
  labels:
    {{- include "archwright.labels" (dict "root" .root "kind" "pod" "part" .part "labels" .labels) | nindent 4 }}
{{- end -}}

{{/* Volumes of credentials that the chart's user gave; webhook without agents, and agents. */}}
{{- define "archwright.credentialVolumes" -}}
{{- if .Values.registryCredentials }}
- name: creds
  projected:
    # Read by the user that the part runs as; agents are root.
    defaultMode: 288 # 0440
    sources:
      {{- $inline := list }}
      {{- range $registry, $credential := .Values.registryCredentials }}
      {{- $file := include "archwright.credentialFile" $registry }}
      {{- if $credential.existingSecret }}
      - secret:
          name: {{ $credential.existingSecret }}
          # A pod must not wait for a Secret that nobody has made yet.
          optional: true
          items:
            - { key: {{ $credential.key | default $file | quote }}, path: {{ $file | quote }} }
      {{- else }}{{ $inline = append $inline $file }}{{ end }}
      {{- end }}
      {{- with $inline }}
      - secret:
          name: {{ include "archwright.fullname" $ }}-creds
          items:
            {{- range . }}
            - { key: {{ . | quote }}, path: {{ . | quote }} }
            {{- end }}
      {{- end }}
{{- end }}
{{- with .Values.dockerConfigSecretName }}
- name: docker
  secret:
    secretName: {{ . }}
    defaultMode: 288 # 0440
    optional: true
{{- end }}
{{- end -}}

{{- define "archwright.credentialMounts" -}}
{{- if .Values.registryCredentials }}
- { name: creds, mountPath: /etc/archwright/creds, readOnly: true }
{{- end }}
{{- if .Values.dockerConfigSecretName }}
- { name: docker, mountPath: /etc/archwright/docker, readOnly: true }
{{- end }}
{{- end -}}
