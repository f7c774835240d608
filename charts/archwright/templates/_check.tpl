{{/* Checks of texts, for check.yaml. */}}

{{/* A number, a duration in milliseconds or a size in bytes. dict at range text */}}
{{- define "archwright.checkRange" -}}
{{- $text := toString (ternary (int64 .text) .text (kindIs "float64" .text)) -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9]+[A-Za-z]*" $text -1 -}}
{{- $number := regexFind "^[0-9]+" . -}}
{{- $factor := get (dict "d" 86400000 "h" 3600000 "m" 60000 "s" 1000 "ms" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "" 1) (trimPrefix $number .) | default 1 -}}
{{- $sum = addf $sum (mulf (float64 $number) $factor) -}}
{{- end -}}
{{- if or (hasPrefix "-" $text) (lt $sum .range.min) (gt $sum .range.max) }}{{ fail (printf "%s %s" .at (.range.says | replace "{}" $text)) }}{{ end -}}
{{- end -}}

{{/* The text of a flag or a variable. dict at takes text */}}
{{- define "archwright.checkText" -}}
{{- $items := list .text -}}
{{- if .takes.isList }}{{ $items = list }}{{ if trim .text }}{{ range splitList "," .text }}{{ $items = append $items (trim .) }}{{ end }}{{ end }}{{ end -}}
{{- if ne (len (uniq $items)) (len $items) }}{{ fail (printf "%s has an item twice: %s" .at (toRawJson .text)) }}{{ end -}}
{{- range $item := $items -}}
{{- range $pattern := $.takes.patterns -}}
{{- if not (regexMatch $pattern $item) }}{{ fail (printf "%s takes %s, not %s" $.at $.takes.name (toRawJson $item)) }}{{ end -}}
{{- end -}}
{{- with $.takes.range }}{{ include "archwright.checkRange" (dict "at" $.at "range" . "text" $item) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* dict at part values flags */}}
{{- define "archwright.checkArguments" -}}
{{- $at := print .at ".extraArgs" -}}
{{- $waiting := "" -}}
{{- range $arg := .values.extraArgs -}}
{{- if $waiting -}}
{{- if hasPrefix "-" $arg }}{{ fail (printf "%s: %s needs a value" $at $waiting) }}{{ end -}}
{{- include "archwright.checkText" (dict "at" (printf "%s: %s" $at $waiting) "takes" (get $.flags $waiting) "text" $arg) -}}
{{- $waiting = "" -}}
{{- else -}}
{{- $name := regexFind "^[^=]*" $arg -}}
{{- $flag := get $.flags $name | default (get $.flags ($name | replace "--no-" "--")) -}}
{{- if not (has $.part (($flag | default dict).parts | default list)) }}{{ fail (printf "%s: %s is not a flag of archwright %s" $at $arg $.part) }}{{ end -}}
{{- if and $flag.isSwitch (contains "=" $arg) }}{{ fail (printf "%s: %s is a switch and takes no value" $at $name) }}{{ end -}}
{{- if contains "=" $arg }}{{ include "archwright.checkText" (dict "at" (printf "%s: %s" $at $name) "takes" $flag "text" (trimPrefix (print $name "=") $arg)) -}}
{{- else if not $flag.isSwitch }}{{ $waiting = $name }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with $waiting }}{{ fail (printf "%s: %s needs a value" $at .) }}{{ end -}}
{{- range .values.extraEnv -}}
{{- $name := toString .name -}}
{{- if and (hasPrefix "ARCHWRIGHT_" $name) (not (regexMatch "(?:^|_)(?:SERVICE_HOST|SERVICE_PORT(?:_\\w+)?|PORT(?:_\\d+_\\w+)?)$" $name)) -}}
{{- if not (hasKey $.flags $name) }}{{ fail (printf "%s.extraEnv: %s is not a variable of archwright" $.at $name) }}{{ end -}}
{{- if kindIs "string" .value }}{{ include "archwright.checkText" (dict "at" (printf "%s.extraEnv: %s" $.at $name) "takes" (get $.flags $name) "text" .value) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
