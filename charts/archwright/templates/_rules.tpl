{{/* What each part may do. */}}

{{- define "archwright.webhookClusterRules" }}
- { apiGroups: [''], resources: [nodes, namespaces], verbs: [get, list, watch] }
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs, podplacementconfigs], verbs: [get, list, watch] }
{{- end }}

{{- define "archwright.controllerClusterRules" }}
{{- include "archwright.webhookClusterRules" . }}
# Gates, tolerations: one patch each.
- { apiGroups: [''], resources: [pods], verbs: [get, list, watch, patch] }
{{- $logs := include "archwright.setting" (dict "root" . "key" "execFormatErrorMonitor") }}
{{- if eq $logs "true" }}
# The end of the log of a crash-looping container says whether its binary is of another architecture.
- { apiGroups: [''], resources: [pods/log], verbs: [get] }
{{- end }}
{{- if eq (include "archwright.settingText" (dict "root" . "key" "misplacedPods")) "evict" }}
- { apiGroups: [''], resources: [pods/eviction], verbs: [create] }
{{- end }}
# Whose pods they are: how many may be moved at the same time, and what carries an event about it.
- { apiGroups: [apps], resources: [deployments, replicasets, statefulsets, daemonsets], verbs: [get] }
- { apiGroups: [batch], resources: [jobs], verbs: [get] }
# Taints.
- { apiGroups: [''], resources: [nodes], verbs: [patch] }
- { apiGroups: ['', events.k8s.io], resources: [events], verbs: [create, patch] }
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs], verbs: [patch, update] }
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs/finalizers], verbs: [update] }
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs/status, podplacementconfigs/status], verbs: [get, patch, update] }
# Not created: what was removed stays removed.
- { apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], resourceNames: [{{ include "archwright.clusterName" . }}], verbs: [get, list, watch, patch, update] }
{{- end }}

{{- define "archwright.tokenRules" }}
- { apiGroups: [''], resources: [serviceaccounts], verbs: [get] }
- { apiGroups: [''], resources: [serviceaccounts/token], verbs: [create] }
{{- end }}

{{- define "archwright.cleanClusterRules" }}
- { apiGroups: [''], resources: [pods], verbs: [get, list, patch] }
- { apiGroups: [''], resources: [nodes], verbs: [get, list, patch] }
- { apiGroups: [''], resources: [namespaces], verbs: [get, list] }
{{- if has "--restart-pods" .Values.clean.extraArgs }}
- { apiGroups: [''], resources: [pods/eviction], verbs: [create] }
- { apiGroups: [apps], resources: [deployments, replicasets, statefulsets], verbs: [get] }
{{- end }}
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs, podplacementconfigs], verbs: [get, list, patch, update] }
- { apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], resourceNames: [{{ include "archwright.clusterName" . }}], verbs: [get, patch, update, delete] }
{{- end }}

{{- define "archwright.probeRules" }}
- { apiGroups: [''], resources: [pods], verbs: [create] }
{{- end }}
