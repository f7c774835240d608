{{/* Pieces of every pod. */}}

{{/* Tolerates the taints of the image's architectures; `archwright.affinity` excludes other nodes. dict root tolerations */}}
{{- define "archwright.tolerations" -}}
tolerations:
  - key: kubernetes.io/arch
    operator: Exists
    effect: NoSchedule
  - key: {{ include "archwright.settingText" (dict "root" .root "key" "taintKey") }}
    operator: Exists
    effect: NoSchedule
  {{- with concat .tolerations .root.Values.global.tolerations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/*
Nodes that can run archwright's own image, because archwright does not place its own pods. ANDed into every required term of the
affinity in the values. dict root affinity
*/}}
{{- define "archwright.affinity" -}}
{{- $runs := list (dict "key" "kubernetes.io/os" "operator" "In" "values" (list "linux")) -}}
{{- with .root.Values.image.architectures -}}
{{- $runs = append $runs (dict "key" "kubernetes.io/arch" "operator" "In" "values" .) -}}
{{- end -}}
{{- $affinity := deepCopy .affinity -}}
{{- $node := get $affinity "nodeAffinity" | default dict -}}
{{- $required := get $node "requiredDuringSchedulingIgnoredDuringExecution" | default dict -}}
{{- $terms := list -}}
{{- range $term := $required.nodeSelectorTerms | default (list dict) -}}
{{- $terms = append $terms (set (deepCopy $term) "matchExpressions" (concat ($term.matchExpressions | default list) $runs)) -}}
{{- end -}}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
affinity:
  {{- set $affinity "nodeAffinity" $node | toYaml | nindent 2 }}
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
{{- else if and .root.Values.priorityClass.create (not .early) }}
priorityClassName: {{ include "archwright.clusterName" .root }}
{{- end }}
{{- end -}}

{{/* Where a pod of webhook, controller or a Job may run. dict root values */}}
{{- define "archwright.placement" -}}
{{- with .values.nodeSelector | default .root.Values.global.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{ include "archwright.affinity" (dict "root" .root "affinity" .values.affinity) }}
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

{{/* A security context: the chart's, overridden by the values; null removes a field. dict base own */}}
{{- define "archwright.contextOf" -}}
{{- $context := mergeOverwrite .base (deepCopy .own) -}}
{{- range $key, $value := .own }}{{ if kindIs "invalid" $value }}{{ $_ := unset $context $key }}{{ end }}{{ end -}}
securityContext:
  {{- toYaml $context | nindent 2 }}
{{- end -}}

{{/* Pod Security level: restricted. */}}
{{- define "archwright.podSecurityContext" -}}
{{- $base := dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532 "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{ include "archwright.contextOf" (dict "base" $base "own" .podSecurityContext) }}
{{- end -}}

{{- define "archwright.securityContext" -}}
{{- $base := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{ include "archwright.contextOf" (dict "base" $base "own" .securityContext) }}
{{- end -}}

{{/* dict root values, of a container */}}
{{- define "archwright.containerImage" -}}
image: {{ include "archwright.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{/* dict own (the part's `probes`) [host of the probes; default: the pod's address] [tls] */}}
{{- define "archwright.probes" -}}
{{- $get := dict "port" "metrics" -}}
{{- with .host }}{{ $_ := set $get "host" . }}{{ end -}}
{{- if .tls }}{{ $_ := set $get "scheme" "HTTPS" }}{{ end -}}
{{- $healthy := merge (dict "path" "/healthz") $get -}}
{{- $base := dict
  "startup" (dict "httpGet" $healthy "periodSeconds" 1 "failureThreshold" 60)
  "liveness" (dict "httpGet" $healthy "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 6)
  "readiness" (dict "httpGet" (merge (dict "path" "/readyz") $get) "periodSeconds" 5 "timeoutSeconds" 3 "failureThreshold" 2) -}}
{{- range $name := list "startup" "liveness" "readiness" }}
{{ $name }}Probe:
  {{- mergeOverwrite (deepCopy (get $base $name)) (deepCopy (get $.own $name | default dict)) | toYaml | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Fields of every pod that only the values set. */}}
{{- define "archwright.podFields" -}}
{{- with .hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* dict root part values checksum [labels] */}}
{{- define "archwright.podMetadata" -}}
{{- /* The prefix keeps it a string: a hash such as 01e22 is a number to some parsers of YAML. */ -}}
{{- $annotations := dict "checksum/restart" (printf "sha256-%s" .checksum) -}}
{{- if .root.Values.monitoring.scrapeAnnotations -}}
{{- $_ := set $annotations "prometheus.io/scrape" "true" -}}
{{- $_ := set $annotations "prometheus.io/port" (.values.metricsPort | int | toString) -}}
{{- $_ := set $annotations "prometheus.io/path" "/metrics" -}}
{{- if get (get .root.Values .part) "metricsTls" }}{{ $_ := set $annotations "prometheus.io/scheme" "https" }}{{ end -}}
{{- end -}}
{{- $annotations = mergeOverwrite (dict) .root.Values.commonAnnotations .root.Values.pod.annotations .values.podAnnotations $annotations -}}
metadata:
  annotations:
    {{- toYaml $annotations | nindent 4 }}
  labels:
    {{- include "archwright.labels" (dict "root" .root "kind" "pod" "part" .part "labels" (mergeOverwrite (dict) .values.podLabels (.labels | default dict))) | nindent 4 }}
{{- end -}}

{{/* Volumes with registry credentials, for agents and for a webhook without agents. */}}
{{- define "archwright.credentialVolumes" -}}
{{- if .Values.registryCredentials }}
- name: creds
  projected:
    # Readable by the user of the container. Agents run as root.
    defaultMode: 288 # 0440
    sources:
      {{- $inline := list }}
      {{- range $registry, $credential := .Values.registryCredentials }}
      {{- $file := include "archwright.credentialFile" $registry }}
      {{- $key := include "archwright.credentialKey" $registry }}
      {{- if $credential.existingSecret }}
      - secret:
          name: {{ $credential.existingSecret }}
          # Optional: the pod must not wait for a Secret that does not exist yet.
          optional: true
          items:
            - { key: {{ $credential.key | default $key | quote }}, path: {{ $file | quote }} }
      {{- else }}{{ $inline = append $inline (dict "key" $key "path" $file) }}{{ end }}
      {{- end }}
      {{- with $inline }}
      - secret:
          name: {{ include "archwright.fullname" $ }}-creds
          items:
            {{- range . }}
            - { key: {{ .key | quote }}, path: {{ .path | quote }} }
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
