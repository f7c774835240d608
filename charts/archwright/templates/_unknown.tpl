{{/*
Unknown values, each with the most similar known one. A JSON schema cannot suggest names. Distances are computed only for unknown
values.
*/}}

{{/* Errors as a JSON list of strings. dict root values known path */}}
{{- define "archwright.unknownValues" -}}
{{- $wrong := list -}}
{{- range $name, $value := .values -}}
{{- if not (hasKey $.known $name) -}}
{{- /* Other charts put their values there too. */ -}}
{{- if ne $.path "global." -}}
{{- $wrong = append $wrong (printf "%s%s is not a value of this chart%s" $.path $name (include "archwright.didYouMean" (dict "root" $.root "known" $.known "path" $.path "name" $name))) -}}
{{- end -}}
{{- else if and (kindIs "map" (get $.known $name)) (kindIs "map" $value) -}}
{{- $wrong = concat $wrong (include "archwright.unknownValues" (dict "root" $.root "values" $value "known" (get $.known $name) "path" (printf "%s%s." $.path $name)) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- toJson $wrong -}}
{{- end -}}

{{/* `; did you mean x?` or nothing: a similar sibling, else values of the same name elsewhere. dict root known path name */}}
{{- define "archwright.didYouMean" -}}
{{- $nearest := include "archwright.similar" (dict "known" (keys .known | sortAlpha) "name" .name) -}}
{{- $found := list (print .path $nearest) -}}
{{- if not $nearest -}}
{{- $found = include "archwright.valuesNamed" (dict "known" (.root.Files.Get "files/values.json" | fromJson) "path" "" "name" .name) | fromJsonArray -}}
{{- end -}}
{{- with $found }}; did you mean {{ join " or " . }}?{{ end -}}
{{- end -}}

{{/* The most similar word, or nothing: `similarTo` of the program (src/names/suggestion.ts). dict known name */}}
{{- define "archwright.similar" -}}
{{- $least := mul 2 (add1 (ternary 1 (max 2 (div (len .name) 3)) (lt (len .name) 4))) -}}
{{- $nearest := "" -}}
{{- range $candidate := .known -}}
{{- $distance := include "archwright.distance" (dict "a" (lower $.name) "b" (lower $candidate)) | int64 -}}
{{- $score := add (mul 2 $distance) (ternary 0 1 (eq (len $.name) (len $candidate))) -}}
{{- if lt $score $least }}{{ $least = $score }}{{ $nearest = $candidate }}{{ end -}}
{{- end -}}
{{- $nearest -}}
{{- end -}}

{{/* Paths of values with this name, as a JSON list. dict known path name */}}
{{- define "archwright.valuesNamed" -}}
{{- $found := list -}}
{{- range $name, $inner := .known -}}
{{- if eq (lower $name) (lower $.name) }}{{ $found = append $found (printf "%s%s" $.path $name) }}{{ end -}}
{{- if kindIs "map" $inner -}}
{{- $found = concat $found (include "archwright.valuesNamed" (dict "known" $inner "path" (printf "%s%s." $.path $name) "name" $.name) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* Levenshtein distance. dict a b */}}
{{- define "archwright.distance" -}}
{{- $a := splitList "" .a -}}
{{- $b := splitList "" .b -}}
{{- $last := until (int (add1 (len $b))) -}}
{{- range $row, $x := $a -}}
{{- $current := list (add1 $row) -}}
{{- range $column, $y := $b -}}
{{- $current = append $current (min (add1 (index $last (int (add1 $column)))) (add1 (index $current $column)) (add (index $last $column) (ternary 0 1 (eq $x $y)))) -}}
{{- end -}}
{{- $last = $current -}}
{{- end -}}
{{- last $last -}}
{{- end -}}
