{{/*
Values that the chart does not know, and for each the nearest one that it does: what a schema could not say. Distances are counted
only where something is unknown.
*/}}

{{/* A list in JSON: what is wrong, a text each. dict root values known path */}}
{{- define "archwright.unknownValues" -}}
{{- $wrong := list -}}
{{- range $name, $value := .values -}}
{{- if not (hasKey $.known $name) -}}
{{- /* Other charts have values of their own there. */ -}}
{{- if ne $.path "global." -}}
{{- $wrong = append $wrong (printf "%s%s is no value of this chart%s" $.path $name (include "archwright.didYouMean" (dict "root" $.root "known" $.known "path" $.path "name" $name))) -}}
{{- end -}}
{{- else if and (kindIs "map" (get $.known $name)) (kindIs "map" $value) -}}
{{- $wrong = concat $wrong (include "archwright.unknownValues" (dict "root" $.root "values" $value "known" (get $.known $name) "path" (printf "%s%s." $.path $name)) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- toJson $wrong -}}
{{- end -}}

{{/* `; did you mean x?`, or nothing: a neighbor that is written nearly so, else values of that name elsewhere. dict root known path name */}}
{{- define "archwright.didYouMean" -}}
{{- /* Farther than a third of the word, it is more likely another word than a mistake in this one; as in the program. */ -}}
{{- $least := add1 (max 1 (div (len .name) 3)) -}}
{{- $nearest := "" -}}
{{- range $candidate := keys .known | sortAlpha -}}
{{- $distance := include "archwright.distance" (dict "a" (lower $.name) "b" (lower $candidate)) | int64 -}}
{{- if lt $distance $least }}{{ $least = $distance }}{{ $nearest = printf "%s%s" $.path $candidate }}{{ end -}}
{{- end -}}
{{- $found := list -}}
{{- with $nearest }}{{ $found = list . }}{{ end -}}
{{- if not $nearest -}}
{{- $found = include "archwright.valuesNamed" (dict "known" (.root.Files.Get "files/values.json" | fromJson) "path" "" "name" .name) | fromJsonArray -}}
{{- end -}}
{{- with $found }}; did you mean {{ join " or " . }}?{{ end -}}
{{- end -}}

{{/* Paths of values with this last name, in JSON. dict known path name */}}
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

{{/* Insertions, deletions, replacements and swaps of neighbors from a to b. dict a b */}}
{{- define "archwright.distance" -}}
{{- $a := splitList "" .a -}}
{{- $b := splitList "" .b -}}
{{- $beforeLast := list -}}
{{- $last := until (int (add1 (len $b))) -}}
{{- range $row, $x := $a -}}
{{- $current := list (add1 $row) -}}
{{- range $column, $y := $b -}}
{{- $cost := min (add1 (index $last (int (add1 $column)))) (add1 (index $current $column)) (add (index $last $column) (ternary 0 1 (eq $x $y))) -}}
{{- if and (gt $row 0) (gt $column 0) -}}
{{- if and (eq $x (index $b (int (sub $column 1)))) (eq $y (index $a (int (sub $row 1)))) -}}
{{- $cost = min $cost (add1 (index $beforeLast (int (sub $column 1)))) -}}
{{- end -}}
{{- end -}}
{{- $current = append $current $cost -}}
{{- end -}}
{{- $beforeLast = $last -}}
{{- $last = $current -}}
{{- end -}}
{{- last $last -}}
{{- end -}}
