{{/*
What the programs would refuse when they start, in the words of the program: values by the rules of `files/settings.json`, values that
contradict each other, flags and variables. Each template gives a JSON list of strings. The JSON schema checks the types before.
*/}}

{{- define "archwright.wrongSettings" -}}
{{- $root := . -}}
{{- $wrong := list -}}
{{- $layers := list (dict "path" "" "values" .Values "pool" dict) -}}
{{- range $index, $pool := .Values.agent.pools -}}
{{- $layers = append $layers (dict "path" (printf "agent.pools[%d].config." $index) "values" ($pool.config | default dict) "pool" ($pool.config | default dict)) -}}
{{- end -}}
{{- $known := .Files.Get "files/settings.json" | fromJson -}}
{{- range $layer := $layers -}}
{{- range $key, $value := include "archwright.settingsIn" (dict "root" $root "values" $layer.values) | fromJson -}}
{{- with (get $known $key).rule -}}
{{- $wrong = concat $wrong (include "archwright.broken" (dict "path" (print $layer.path $key) "rule" . "value" $value) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- $all := include "archwright.settings" (dict "root" $root "values" $layer.pool) | fromJson -}}
{{- range $key, $setting := $known -}}
{{- if and (hasKey $setting "default") (not (hasKey $all $key)) }}{{ $_ := set $all $key $setting.default }}{{ end -}}
{{- end -}}
{{- range include "archwright.contradictions" (dict "settings" $all "root" $root "isPool" (ne $layer.path "")) | fromJsonArray -}}
{{- /* What the release has wrong is not repeated for its pools. */ -}}
{{- if not (has . $wrong) }}{{ $wrong = append $wrong (print $layer.path .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range $part := list "webhook" "controller" "agent" "clean" -}}
{{- $wrong = concat $wrong (include "archwright.wrongArguments" (dict "root" $root "path" $part "part" $part "values" (get $root.Values $part)) | fromJsonArray) -}}
{{- end -}}
{{- range $index, $pool := .Values.agent.pools -}}
{{- $wrong = concat $wrong (include "archwright.wrongArguments" (dict "root" $root "path" (printf "agent.pools[%d]" $index) "part" "agent" "values" $pool) | fromJsonArray) -}}
{{- end -}}
{{- range include "archwright.pools" . | fromJsonArray -}}
{{- if eq (int .values.port) (int .values.metricsPort) }}{{ $wrong = append $wrong "agent.port and agent.metricsPort are equal; set two ports" }}{{ end -}}
{{- end -}}
{{- if eq (int .Values.controller.factsPort) (int .Values.controller.metricsPort) }}{{ $wrong = append $wrong "controller.factsPort and controller.metricsPort are equal; set two ports" }}{{ end -}}
{{- if eq (int .Values.webhook.port) (int .Values.webhook.metricsPort) }}{{ $wrong = append $wrong "webhook.port and webhook.metricsPort are equal; set two ports" }}{{ end -}}
{{- with .Values.webhook.clientCa -}}
{{- if not (contains "-----BEGIN CERTIFICATE-----" .) }}{{ $wrong = append $wrong "webhook.clientCa must be certificates in PEM" }}{{ end -}}
{{- end -}}
{{- $image := include "archwright.image" . -}}
{{- if contains "//" $image }}{{ $wrong = append $wrong (printf "the image would be %s; a registry has no scheme and no slash at its end, as in image.registry=registry.example.com" $image) }}{{ end -}}
{{- uniq $wrong | toJson -}}
{{- end -}}

{{/* dict path rule value */}}
{{- define "archwright.broken" -}}
{{- $wrong := list -}}
{{- $path := .path -}}
{{- $rule := .rule -}}
{{- $value := .value -}}
{{- $says := "" -}}
{{- if hasKey $rule "match" -}}
{{- range $rule.match }}{{ if and (not $says) (not (regexMatch .pattern $value)) }}{{ $says = .says }}{{ end }}{{ end -}}
{{- with $rule.instead -}}
{{- $right := get .names (lower $value) -}}
{{- if and (not $says) $right (ne $right $value) }}{{ $says = print .says $right }}{{ end -}}
{{- end -}}
{{- with $rule.similar -}}
{{- if not (or $says (has $value .names)) -}}
{{- with include "archwright.similar" (dict "known" .names "name" $value) }}{{ $says = printf "%s; did you mean %s?" $rule.similar.says . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- else if hasKey $rule "unit" -}}
{{- $amount := include "archwright.amount" (dict "unit" $rule.unit "value" $value) | float64 -}}
{{- if or (lt $amount $rule.min) (gt $amount $rule.max) }}{{ $says = $rule.says }}{{ end -}}
{{- else if hasKey $rule "items" -}}
{{- if kindIs "slice" $value -}}
{{- range $index, $item := $value -}}
{{- $wrong = concat $wrong (include "archwright.broken" (dict "path" (printf "%s[%d]" $path $index) "rule" $rule.items "value" $item) | fromJsonArray) -}}
{{- end -}}
{{- else -}}
{{- $wrong = include "archwright.broken" (dict "path" $path "rule" $rule.items "value" $value) | fromJsonArray -}}
{{- end -}}
{{- else if hasKey $rule "fields" -}}
{{- range $name, $inner := $rule.fields -}}
{{- if hasKey $value $name }}{{ $wrong = concat $wrong (include "archwright.broken" (dict "path" (printf "%s.%s" $path $name) "rule" $inner "value" (get $value $name)) | fromJsonArray) }}{{ end -}}
{{- end -}}
{{- else -}}
{{- range $name, $inner := $value -}}
{{- $at := printf "%s.%s" $path $name -}}
{{- with $rule.keys }}{{ $wrong = concat $wrong (include "archwright.broken" (dict "path" $at "rule" . "value" $name) | fromJsonArray) }}{{ end -}}
{{- with $rule.values }}{{ $wrong = concat $wrong (include "archwright.broken" (dict "path" $at "rule" . "value" $inner) | fromJsonArray) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if $says }}{{ $wrong = append $wrong (printf "%s %s" $path ($says | replace "{}" (toRawJson $value))) }}{{ end -}}
{{- toJson $wrong -}}
{{- end -}}

{{/* A duration in milliseconds, or a size in bytes. dict unit value */}}
{{- define "archwright.amount" -}}
{{- $text := toString (ternary (int64 .value) .value (kindIs "float64" .value)) -}}
{{- if eq .unit "size" -}}
{{- $factors := dict "" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- $number := regexFind "^[0-9]+" $text -}}
{{- mulf (float64 $number) (get $factors (trimPrefix $number $text)) -}}
{{- else -}}
{{- $amounts := regexReplaceAll "^(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?(?:([0-9]+)ms)?$" $text "${1},${2},${3},${4},${5}" | splitList "," -}}
{{- $sum := 0.0 -}}
{{- range $index, $factor := list 86400000 3600000 60000 1000 1 -}}
{{- $sum = addf $sum (mulf (index $amounts $index | default "0" | float64) $factor) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}
{{- end -}}

{{/* As `src/policy/configuration/consistency.ts` finds them. dict root settings isPool */}}
{{- define "archwright.contradictions" -}}
{{- $all := .settings -}}
{{- $wrong := list -}}
{{- if and $all.preferredArchitecture $all.preferredWeights -}}
{{- $wrong = append $wrong "preferredArchitecture and preferredWeights are both set; set one of them" -}}
{{- end -}}
{{- if and (eq ($all.onUnknownImage | default "") "fallback") (not $all.fallbackArchitecture) -}}
{{- $wrong = append $wrong "onUnknownImage is fallback, so fallbackArchitecture must be set" -}}
{{- end -}}
{{- with $all.schedulableArchitectures -}}
{{- $list := . -}}
{{- $named := dict -}}
{{- range $key := list "preferredArchitecture" "fallbackArchitecture" }}{{ with get $all $key }}{{ $_ := set $named $key . }}{{ end }}{{ end -}}
{{- range $name, $_ := $all.preferredWeights }}{{ $_ := set $named (print "preferredWeights." $name) $name }}{{ end -}}
{{- range $key, $name := $named -}}
{{- if not (has $name $list) }}{{ $wrong = append $wrong (printf "%s names %s, which is not one of schedulableArchitectures (%s)" $key $name (join ", " $list)) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $registries := list -}}
{{- range $index, $proxy := $all.proxies -}}
{{- $registry := splitList "=" $proxy | first -}}
{{- if has $registry $registries }}{{ $wrong = append $wrong (printf "proxies[%d] names a second proxy for %s" $index $registry) }}{{ end -}}
{{- $registries = append $registries $registry -}}
{{- end -}}
{{- $file := get $all "kubeletConfig.config" -}}
{{- $dir := get $all "kubeletConfig.configDir" -}}
{{- $programs := get $all "kubeletConfig.binDir" -}}
{{- if and (hasPrefix "/" $file) $dir -}}
{{- $wrong = append $wrong "kubeletConfig.config is a whole path, and kubeletConfig.configDir is set too; set one of them" -}}
{{- else if and $file $dir (not (regexMatch "^[\\w.-]*[\\w-][\\w.-]*$" $file)) -}}
{{- $wrong = append $wrong (printf "kubeletConfig.config must be the name of a file in kubeletConfig.configDir, not %s" (toRawJson $file)) -}}
{{- else if and $programs (not (or $file $dir)) -}}
{{- $wrong = append $wrong "kubeletConfig.binDir needs kubeletConfig.config or kubeletConfig.configDir" -}}
{{- else if and (or $file $dir) (not $programs) -}}
{{- $wrong = append $wrong (printf "kubeletConfig.%s needs kubeletConfig.binDir, the directory of the plugins" (ternary "config" "configDir" (ne $file ""))) -}}
{{- end -}}
{{- range $key := list "kubeletConfig.config" "kubeletConfig.configDir" "kubeletConfig.binDir" -}}
{{- $path := get $all $key -}}
{{- $isInDirectory := and $dir (eq $key "kubeletConfig.config") -}}
{{- if and $path (not $isInDirectory) (not (hasPrefix "/" $path)) -}}
{{- $wrong = append $wrong (printf "%s must be an absolute path, which is taken below hostRoot, not %s" $key (toRawJson $path)) -}}
{{- end -}}
{{- end -}}
{{- if not .isPool -}}
{{- if and $all.requirePullableNodes (not .root.Values.agent.enabled) -}}
{{- $wrong = append $wrong "requirePullableNodes needs agents, so agent.enabled must be true" -}}
{{- end -}}
{{- end -}}
{{- toJson $wrong -}}
{{- end -}}

{{/* `extraArgs` and `extraEnv`. dict root path part values */}}
{{- define "archwright.wrongArguments" -}}
{{- $root := .root -}}
{{- $part := .part -}}
{{- $wrong := list -}}
{{- $known := .root.Files.Get "files/flags.json" | fromJson -}}
{{- $flags := dict "config" dict -}}
{{- if eq $part "clean" }}{{ $flags = dict "config" dict "dry-run" (dict "isSwitch" true) "restart-pods" (dict "isSwitch" true) "program" dict "output" dict }}{{ end -}}
{{- range $name, $flag := $known.flags }}{{ if has $part $flag.parts }}{{ $_ := set $flags $name $flag }}{{ end }}{{ end -}}
{{- $path := print .path ".extraArgs" -}}
{{- $before := "" -}}
{{- range .values.extraArgs -}}
{{- if $before -}}
{{- if hasPrefix "-" . }}{{ $wrong = append $wrong (printf "%s: --%s needs a value" $path $before) }}
{{- else }}{{ $wrong = concat $wrong (include "archwright.wrongText" (dict "path" (printf "%s: --%s" $path $before) "takes" (get $flags $before) "text" .) | fromJsonArray) }}{{ end -}}
{{- $before = "" -}}
{{- else -}}
{{- $name := regexReplaceAll "^--([^=]*)(?:=[\\s\\S]*)?$" . "${1}" -}}
{{- $positive := trimPrefix "no-" $name -}}
{{- $isSwitch := and (hasKey $flags $positive) (get (get $flags $positive) "isSwitch") -}}
{{- if and $isSwitch (contains "=" .) -}}
{{- $wrong = append $wrong (printf "%s: --%s is a switch and takes no value" $path $name) -}}
{{- else if $isSwitch -}}
{{- else if not (and (hasPrefix "--" .) (hasKey $flags $name)) -}}
{{- $wrong = append $wrong (printf "%s: %s is not a flag of archwright %s%s" $path . $part (include "archwright.didYouMean" (dict "root" $root "known" $flags "path" "--" "name" $name))) -}}
{{- else if contains "=" . -}}
{{- $text := regexReplaceAll "^[^=]*=([\\s\\S]*)$" . "${1}" -}}
{{- $wrong = concat $wrong (include "archwright.wrongText" (dict "path" (printf "%s: --%s" $path $name) "takes" (get $flags $name) "text" $text) | fromJsonArray) -}}
{{- else }}{{ $before = $name }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with $before }}{{ $wrong = append $wrong (printf "%s: --%s needs a value" $path .) }}{{ end -}}
{{- $path = print .path ".extraEnv" -}}
{{- range .values.extraEnv -}}
{{- $name := toString .name -}}
{{- if hasPrefix "ARCHWRIGHT_" $name -}}
{{- if hasKey $known.variables $name -}}
{{- if kindIs "string" .value }}{{ $wrong = concat $wrong (include "archwright.wrongText" (dict "path" (printf "%s: %s" $path $name) "takes" (get $known.variables $name) "text" .value) | fromJsonArray) }}{{ end -}}
{{- else if not (regexMatch $known.serviceVariable $name) -}}
{{- $wrong = append $wrong (printf "%s: %s is not a variable of archwright%s" $path $name (include "archwright.didYouMean" (dict "root" $root "known" $known.variables "path" "" "name" $name))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $wrong -}}
{{- end -}}

{{/* The text of a flag or a variable. dict path takes text */}}
{{- define "archwright.wrongText" -}}
{{- $wrong := list -}}
{{- $takes := .takes -}}
{{- $path := .path -}}
{{- $text := .text -}}
{{- if $takes.isList -}}
{{- if trim $text -}}
{{- $items := list -}}
{{- range splitList "," $text }}{{ $items = append $items (trim .) }}{{ end -}}
{{- if or (has "" $items) (ne (len (uniq $items)) (len $items)) }}{{ $wrong = append $wrong (printf "%s must have no empty item and none twice, not %s" $path (toRawJson $text)) }}{{ end -}}
{{- with $takes.rule }}{{ $wrong = concat $wrong (include "archwright.broken" (dict "path" $path "rule" (dict "items" .) "value" $items) | fromJsonArray) }}{{ end -}}
{{- end -}}
{{- else if $takes.isSwitch -}}
{{- if not (has $text (list "true" "false")) }}{{ $wrong = append $wrong (printf "%s must be true or false, not %s" $path (toRawJson $text)) }}{{ end -}}
{{- else if and $takes.words (not (has $text $takes.words)) -}}
{{- $wrong = append $wrong (printf "%s must be one of %s, not %s" $path (join ", " $takes.words) (toRawJson $text)) -}}
{{- else if and $takes.pattern (not (regexMatch $takes.pattern $text)) -}}
{{- $wrong = append $wrong (printf "%s cannot be %s" $path (toRawJson $text)) -}}
{{- else if and $takes.range (not (regexMatch "^-?[0-9]{1,15}$" $text)) -}}
{{- $wrong = append $wrong (printf "%s must be a whole number, not %s" $path (toRawJson $text)) -}}
{{- else if and $takes.range (or (lt (float64 $text) (index $takes.range 0)) (gt (float64 $text) (index $takes.range 1))) -}}
{{- $wrong = append $wrong (printf "%s must be from %v to %v, not %s" $path (index $takes.range 0) (index $takes.range 1) $text) -}}
{{- else if eq $text "" -}}
{{- $wrong = append $wrong (printf "%s must not be empty" $path) -}}
{{- else -}}
{{- with $takes.rule }}{{ $wrong = include "archwright.broken" (dict "path" $path "rule" . "value" $text) | fromJsonArray }}{{ end -}}
{{- end -}}
{{- toJson $wrong -}}
{{- end -}}
