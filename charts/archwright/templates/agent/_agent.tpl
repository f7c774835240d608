{{/* Pieces of the agents' DaemonSets. */}}

{{/* The pools, or one for all nodes, as a JSON list of {suffix, config, values of agent}. */}}
{{- define "archwright.pools" -}}
{{- $base := omit .Values.agent "pools" "enabled" "metricsTls" "serviceAccount" "updateStrategy" "serviceAccountTokenAudiences" "terminationGracePeriodSeconds" -}}
{{- $pools := list -}}
{{- range .Values.agent.pools -}}
{{- /* Values are not merged: a pool's node selector replaces the one of `agent`. */ -}}
{{- $pool := deepCopy $base -}}
{{- range $key, $value := omit . "name" "config" }}{{ $_ := set $pool $key $value }}{{ end -}}
{{- $pools = append $pools (dict "name" .name "config" (.config | default dict) "values" $pool) -}}
{{- else -}}
{{- $pools = append $pools (dict "name" "" "config" dict "values" $base) -}}
{{- end -}}
{{- toJson $pools -}}
{{- end -}}

{{/* `true` if agents of the release or of a pool request service account tokens, so that answers depend on the account; or empty. */}}
{{- define "archwright.serviceAccountTokens" -}}
{{- $wanted := index (printf "[%s]" (include "archwright.setting" (dict "root" . "key" "serviceAccountTokens")) | fromJsonArray) 0 -}}
{{- range .Values.agent.pools }}{{ if dig "config" "serviceAccountTokens" false . }}{{ $wanted = true }}{{ end }}{{ end -}}
{{- if and .Values.agent.enabled $wanted }}true{{ end -}}
{{- end -}}

{{/* Host paths of a pool as a JSON list of {path, type}. dict root pool settings */}}
{{- define "archwright.hostPaths" -}}
{{- $values := .pool.values -}}
{{- $settings := .settings -}}
{{- $paths := list -}}
{{- if kindIs "slice" $values.hostPaths -}}
{{- $paths = $values.hostPaths -}}
{{- else if include "archwright.needsHostRoot" . -}}
{{- $paths = list "/" -}}
{{- else -}}
{{- $runtime := $settings.runtime | default "auto" -}}
{{- $crio := list (dict "path" "/etc/crio" "type" "DirectoryOrCreate") (dict "path" "/etc/containers" "type" "DirectoryOrCreate") -}}
{{- if eq $runtime "cri-o" -}}
{{- $paths = append $crio (dict "path" "/etc/docker/certs.d" "type" "DirectoryOrCreate") -}}
{{- else if hasKey $settings "containerdConfigPathCandidates" -}}
{{- range $settings.containerdConfigPathCandidates }}{{ $paths = append $paths (ternary (dir .) . (hasSuffix ".toml" .)) }}{{ end -}}
{{- else -}}
{{- $paths = append $paths "/etc/containerd" -}}
{{- if eq $runtime "auto" }}{{ $paths = concat $paths $crio }}{{ end -}}
{{- end -}}
{{- range $settings.dockerConfigPathCandidates }}{{ $paths = append $paths (dir .) }}{{ end -}}
{{- $paths = append $paths "/etc/ssl/certs" -}}
{{- if $values.readRuntimeProxy }}{{ $paths = append $paths "/etc/systemd/system" }}{{ end -}}
{{- end -}}
{{- $found := list -}}
{{- range concat $paths $values.extraHostPaths -}}
{{- $entry := ternary (dict "path" .) . (kindIs "string" .) -}}
{{- $entry = set (deepCopy $entry) "path" (clean $entry.path) -}}
{{- $found = append $found $entry -}}
{{- end -}}
{{- /* Skip paths inside other paths: they are mounted already, and a mount point inside a read-only mount fails. */ -}}
{{- $kept := list -}}
{{- range $index, $entry := $found -}}
{{- $inside := false -}}
{{- range $other, $outer := $found -}}
{{- if or (and (ne $outer.path $entry.path) (hasPrefix (printf "%s/" (trimSuffix "/" $outer.path)) $entry.path)) (and (eq $outer.path $entry.path) (lt $other $index)) }}{{ $inside = true }}{{ end -}}
{{- end -}}
{{- if not $inside }}{{ $kept = append $kept $entry }}{{ end -}}
{{- end -}}
{{- toJson $kept -}}
{{- end -}}

{{/*
Mount propagation of a host path: `HostToContainer` is refused where the node's mount is private, as in k3d. Without it, volumes of
pods that are mounted when the agent starts stay busy until it ends. Nodes mount none below /etc, /opt and /usr. dict pool path
*/}}
{{- define "archwright.mountPropagation" -}}
{{- $value := .pool.values.mountPropagation -}}
{{- if eq $value "auto" }}{{ ternary "None" "HostToContainer" (regexMatch "^/(etc|opt|usr)(/|$)" .path) }}{{ else }}{{ $value }}{{ end -}}
{{- end -}}

{{/* Plugins run in the root of the node, with its programs and libraries. dict root pool settings */}}
{{- define "archwright.needsHostRoot" -}}
{{- if or (hasKey .settings "kubeletConfig.config") (hasKey .settings "kubeletConfig.configDir") .pool.values.readKubeletEnvironment }}true{{ end -}}
{{- end -}}

{{/* Where an agent serves metrics and health: listen, whether it needs the pod's address, and the host of its probes. dict root pool */}}
{{- define "archwright.agentMetrics" -}}
{{- $values := .pool.values -}}
{{- $monitoring := .root.Values.monitoring -}}
{{- $address := $values.metricsAddress -}}
{{- if eq $address "auto" -}}
{{- /* On the node's network, every address of the node would serve them. */ -}}
{{- $address = ternary (ternary "pod" "loopback" (or (ne $monitoring.mode "none") $monitoring.scrapeAnnotations)) "all" $values.hostNetwork -}}
{{- end -}}
{{- if and (eq $address "loopback") (not $values.hostNetwork) }}{{ fail "agent.metricsAddress: loopback requires agent.hostNetwork, because the kubelet could not reach its probes" }}{{ end -}}
{{- /* Brackets also around an IPv4 address: the family is not known here, and the program accepts both. */ -}}
{{- $host := get (dict "pod" "[$(POD_IP)]" "loopback" "127.0.0.1" "all" "") $address -}}
{{- dict "listen" (printf "%s:%v" $host $values.metricsPort) "pod" (eq $address "pod") "probe" (ternary "127.0.0.1" "" (eq $address "loopback")) | toJson -}}
{{- end -}}

{{- define "archwright.agentCapabilities" -}}
{{- $add := list -}}
{{- if or (hasKey .settings "kubeletConfig.config") (hasKey .settings "kubeletConfig.configDir") }}{{ $add = append $add "SYS_CHROOT" }}{{ end -}}
{{- if .pool.values.readKubeletEnvironment }}{{ $add = append $add "SYS_PTRACE" }}{{ end -}}
{{- $capabilities := dict "drop" (list "ALL") -}}
{{- if $add }}{{ $_ := set $capabilities "add" $add }}{{ end -}}
{{- toJson $capabilities -}}
{{- end -}}
