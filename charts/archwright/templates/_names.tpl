{{/* Names, labels and metadata. */}}

{{- define "archwright.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "archwright.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "archwright.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "archwright.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "archwright.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/* Names of cluster-scoped objects, which must differ between releases. */}}
{{- define "archwright.clusterName" -}}
{{- $name := include "archwright.fullname" . -}}
{{- if eq $name (include "archwright.namespace" .) -}}{{ $name }}{{- else -}}{{ printf "%s-%s" (include "archwright.namespace" .) $name }}{{- end -}}
{{- end -}}

{{/* dict root part */}}
{{- define "archwright.selector" -}}
app.kubernetes.io/name: {{ include "archwright.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{/* The labels of an object as YAML. dict root kind [part] [labels] */}}
{{- define "archwright.labels" -}}
{{- /* The command line finds archwright by part-of, whatever nameOverride and fullnameOverride are (cmd/wiring/release.ts). */}}
{{- $all := dict "app.kubernetes.io/part-of" "archwright" "app.kubernetes.io/name" (include "archwright.name" .root) "app.kubernetes.io/instance" .root.Release.Name "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- if .part }}{{ $_ := set $all "app.kubernetes.io/component" .part }}{{ end -}}
{{- if ne .kind "pod" -}}
{{- $_ := set $all "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $all "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- end -}}
{{- $own := (get .root.Values .kind | default dict).labels | default dict -}}
{{- $all = mergeOverwrite (dict) .root.Values.global.commonLabels .root.Values.commonLabels $own (.labels | default dict) $all -}}
{{- toYaml $all -}}
{{- end -}}

{{/*
The metadata of an object. dict root kind name [part] [cluster] [labels] [annotations]
kind: in lower case, as in the values that hold its labels and annotations.
*/}}
{{- define "archwright.metadata" -}}
metadata:
  name: {{ .name }}
  {{- if not .cluster }}
  namespace: {{ .namespace | default (include "archwright.namespace" .root) }}
  {{- end }}
  labels:
    {{- include "archwright.labels" . | nindent 4 }}
  {{- $annotations := mergeOverwrite (dict) .root.Values.commonAnnotations ((get .root.Values .kind | default dict).annotations | default dict) (.annotations | default dict) }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Name of the service account of a part. dict root part */}}
{{- define "archwright.serviceAccount" -}}
{{- default (printf "%s-%s" (include "archwright.fullname" .root) .part) (get .root.Values .part).serviceAccount.name -}}
{{- end -}}

{{/* `true` if the controller issues certificates: all, or all but the webhook's; or empty. */}}
{{- define "archwright.issues" -}}
{{- if has .Values.certificates (list "builtin" "serviceCa") }}true{{ end -}}
{{- end -}}

{{- define "archwright.image" -}}
{{- $image := .Values.image -}}
{{- $registry := default $image.registry .Values.global.imageRegistry -}}
{{- $name := ternary (printf "%s/%s" $registry $image.repository) $image.repository (ne $registry "") -}}
{{- if $image.digest }}{{ $name }}@{{ $image.digest }}{{ else }}{{ $name }}:{{ default .Chart.AppVersion $image.tag }}{{ end -}}
{{- end -}}
