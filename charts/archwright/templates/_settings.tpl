{{/* The program's settings: values, rendered as archwright.toml. */}}

{{/* A value as TOML with inline tables. JSON strings are valid TOML strings. */}}
{{- define "archwright.toml" -}}
{{- if kindIs "map" . -}}
{ {{- range $index, $key := keys . | sortAlpha }}{{ if $index }},{{ end }} {{ $key | toJson }} = {{ include "archwright.toml" (get $ $key) }}{{ end }} }
{{- else if kindIs "slice" . -}}
[{{ range $index, $item := . }}{{ if $index }}, {{ end }}{{ include "archwright.toml" $item }}{{ end }}]
{{- else if kindIs "float64" . -}}
{{ int64 . }}
{{- else if kindIs "string" . -}}
{{- if contains "\x00" . }}{{ fail (printf "%s must not contain a NUL character" (toJson .)) }}{{ end -}}
{{- /* TOML allows no DEL in a string, and NEL ends a line in YAML 1.1. */ -}}
{{ toJson . | replace "\x7f" "\\u007f" | replace "\u0085" "\\u0085" }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}

{{/* The values of all settings, flat: {"kubeletConfig.binDir": …}, as JSON. dict root values */}}
{{- define "archwright.settingsIn" -}}
{{- $found := dict -}}
{{- range $key, $_ := .root.Files.Get "files/settings.json" | fromJson -}}
{{- $at := $.values -}}
{{- range $step := splitList "." $key -}}
{{- $at = ternary (get (ternary $at dict (kindIs "map" $at)) $step) "" (and (kindIs "map" $at) (hasKey (ternary $at dict (kindIs "map" $at)) $step)) -}}
{{- end -}}
{{- if and (not (kindIs "invalid" $at)) (not (and (kindIs "string" $at) (eq $at ""))) -}}
{{- $_ := set $found $key $at -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/*
Every setting that the chart sets, as JSON: the values', with the chart's own below and above them. dict root [values]
values: of a pool of nodes, above those of the release.
*/}}
{{- define "archwright.settings" -}}
{{- $root := .root -}}
{{- $name := include "archwright.fullname" $root -}}
{{- $defaults := dict "allowLoopbackRegistries" false -}}
{{- if $root.Values.controller.enabled }}{{ $_ := set $defaults "onUnknownImage" "gate" }}{{ end -}}
{{- $fixed := dict
  "name" $name
  "namespace" (include "archwright.namespace" $root)
  "certificates" (ternary "external" $root.Values.certificates (eq $root.Values.certificates "certManager"))
  "webhookConfiguration" (include "archwright.clusterName" $root) -}}
{{- if $root.Values.controller.enabled }}{{ $_ := set $fixed "webhookPathSecret" (printf "%s-webhook-path" $name) }}{{ end -}}
{{- if $root.Values.agent.enabled -}}
{{- $_ := set $fixed "agents" (list (printf "endpointslices:%s/%s-agent" (include "archwright.namespace" $root) $name)) -}}
{{- end -}}
{{- if $root.Values.registryCredentials -}}
{{- $files := list -}}
{{- range keys $root.Values.registryCredentials | sortAlpha }}{{ $files = append $files (include "archwright.credentialFile" .) }}{{ end -}}
{{- $_ := set $fixed "credsDir" "/etc/archwright/creds" -}}
{{- $_ := set $fixed "credsFiles" $files -}}
{{- end -}}
{{- if $root.Values.dockerConfigSecretName }}{{ $_ := set $fixed "dockerConfigFile" "/etc/archwright/docker/.dockerconfigjson" }}{{ end -}}
{{- $own := include "archwright.settingsIn" (dict "root" $root "values" $root.Values) | fromJson -}}
{{- $pool := dict -}}
{{- with .values }}{{ $pool = include "archwright.settingsIn" (dict "root" $root "values" .) | fromJson }}{{ end -}}
{{- /* No merge: it would mix tables. A setting replaces the default as a whole. */ -}}
{{- $all := dict -}}
{{- range $layer := list $defaults $own $pool $fixed -}}
{{- range $key, $value := $layer }}{{ $_ := set $all $key $value }}{{ end -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* The effective value of a setting, with the program's default. dict root key */}}
{{- define "archwright.setting" -}}
{{- $all := include "archwright.settings" (dict "root" .root) | fromJson -}}
{{- if hasKey $all .key }}{{ get $all .key | toJson }}
{{- else }}{{ get (get (.root.Files.Get "files/settings.json" | fromJson) .key) "default" | toJson }}{{ end -}}
{{- end -}}

{{/* The same for a string. */}}
{{- define "archwright.settingText" -}}
{{- index (printf "[%s]" (include "archwright.setting" .) | fromJsonArray) 0 -}}
{{- end -}}

{{- define "archwright.config" -}}
{{- range $key, $value := include "archwright.settings" . | fromJson }}
{{ $key }} = {{ include "archwright.toml" $value }}
{{- end }}
{{- end -}}

{{/* Changes if a setting changes that requires a restart. */}}
{{- define "archwright.restartChecksum" -}}
{{- $known := .root.Files.Get "files/settings.json" | fromJson -}}
{{- $some := dict -}}
{{- range $key, $value := include "archwright.settings" . | fromJson -}}
{{- if or (not (hasKey $known $key)) (get (get $known $key | default dict) "restart") }}{{ $_ := set $some $key $value }}{{ end -}}
{{- end -}}
{{- toJson $some | sha256sum | trunc 16 -}}
{{- end -}}

{{/* A change is followed, but a webhook that could not start with a wrong one would wait minutes for its next start. */}}
{{- define "archwright.clientCaChecksum" -}}
{{- with .Values.webhook.clientCa }}{{ sha256sum . | trunc 16 }}{{ end -}}
{{- end -}}

{{/* File name of a registry's credentials in `creds`. */}}
{{- define "archwright.credentialFile" -}}
{{- regexReplaceAll ":([0-9]+)$" . "_${1}_" }}.toml
{{- end -}}

{{/* Its key in a Secret, which allows neither * nor brackets. */}}
{{- define "archwright.credentialKey" -}}
{{- regexReplaceAll "[^-._a-zA-Z0-9]" (include "archwright.credentialFile" .) "_" }}
{{- end -}}
