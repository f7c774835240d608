{{/* What each part may do. */}}

{{- define "archwright.webhookClusterRules" }}
- { apiGroups: [''], resources: [nodes, namespaces], verbs: [list, watch] }
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs, podplacementconfigs], verbs: [list, watch] }
{{- end }}

{{- define "archwright.controllerClusterRules" }}
{{- include "archwright.webhookClusterRules" . }}
# For `kubectl exec` of `archwright explain`; it is listed anyway.
- { apiGroups: [''], resources: [namespaces], verbs: [get] }
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
- { apiGroups: [''], resources: [replicationcontrollers], verbs: [get] }
- { apiGroups: [apps], resources: [replicasets, statefulsets, daemonsets], verbs: [get] }
- { apiGroups: [batch], resources: [jobs], verbs: [get] }
# Taints.
- { apiGroups: [''], resources: [nodes], verbs: [get, patch] }
- { apiGroups: [''], resources: [events], verbs: [create, patch] }
# Their finalizer, and what became of them.
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs], verbs: [patch] }
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs/status, podplacementconfigs/status], verbs: [patch] }
# Not created: what was removed stays removed.
- { apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], resourceNames: [{{ include "archwright.clusterName" . }}], verbs: [get, list, watch, patch] }
{{- end }}

{{- define "archwright.tokenRules" }}
- { apiGroups: [''], resources: [serviceaccounts], verbs: [get] }
- { apiGroups: [''], resources: [serviceaccounts/token], verbs: [create] }
{{- end }}

{{- define "archwright.cleanClusterRules" }}
- { apiGroups: [''], resources: [pods], verbs: [get, list, patch] }
- { apiGroups: [''], resources: [nodes], verbs: [get, list, patch] }
{{- if has "--restart-pods" .Values.clean.extraArgs }}
- { apiGroups: [''], resources: [pods/eviction], verbs: [create] }
- { apiGroups: [''], resources: [replicationcontrollers], verbs: [get] }
- { apiGroups: [apps], resources: [replicasets, statefulsets], verbs: [get] }
{{- end }}
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs], verbs: [get, list, patch] }
- { apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], resourceNames: [{{ include "archwright.clusterName" . }}], verbs: [get, delete] }
{{- end }}

{{- define "archwright.probeRules" }}
- { apiGroups: [''], resources: [pods], verbs: [create] }
{{- end }}
