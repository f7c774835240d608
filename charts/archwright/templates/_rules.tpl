{{/* The RBAC rules of each part. */}}

{{- define "archwright.webhookClusterRules" }}
- { apiGroups: [''], resources: [nodes, namespaces], verbs: [list, watch] }
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs, podplacementconfigs, architecturerollouts], verbs: [list, watch] }
{{- end }}

{{- define "archwright.controllerClusterRules" }}
{{- include "archwright.webhookClusterRules" . }}
# For `kubectl exec` of `archwright explain`. The controller lists pods anyway.
- { apiGroups: [''], resources: [namespaces], verbs: [get] }
# Gates and tolerations: one patch each.
- { apiGroups: [''], resources: [pods], verbs: [get, list, watch, patch] }
{{- $logs := include "archwright.setting" (dict "root" . "key" "execFormatErrorMonitor") }}
{{- if eq $logs "true" }}
# The log of a crash-looping container shows an exec format error.
- { apiGroups: [''], resources: [pods/log], verbs: [get] }
{{- end }}
{{- $rollouts := eq (include "archwright.setting" (dict "root" . "key" "rollouts")) "true" }}
{{- if or $rollouts (eq (include "archwright.settingText" (dict "root" . "key" "misplacedPods")) "evict") }}
- { apiGroups: [''], resources: [pods/eviction], verbs: [create] }
{{- end }}
{{- if $rollouts }}
# Whether the volumes of a StatefulSet can be used on the architecture of a rollout.
- { apiGroups: [''], resources: [persistentvolumeclaims, persistentvolumes], verbs: [get] }
- { apiGroups: [arch.example], resources: [architecturerollouts/status], verbs: [patch] }
{{- end }}
# Owners of pods: for the limit of simultaneous evictions, and as objects of events.
- { apiGroups: [''], resources: [replicationcontrollers], verbs: [get] }
- { apiGroups: [apps], resources: [replicasets, statefulsets, daemonsets], verbs: [get] }
- { apiGroups: [batch], resources: [jobs], verbs: [get] }
# For `archwright explain` in its pod.
- { apiGroups: [apps], resources: [deployments], verbs: [get] }
- { apiGroups: [batch], resources: [cronjobs], verbs: [get] }
# Checks who asks for image facts (`archwright explain` on other machines).
- { apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create] }
- { apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create] }
# Taints, and the labels of `agentNodes` and `amd64LevelLabels`.
- { apiGroups: [''], resources: [nodes], verbs: [get, patch] }
- { apiGroups: [''], resources: [events], verbs: [create, patch] }
- { apiGroups: [arch.example], resources: [clusterpodplacementconfigs/status, podplacementconfigs/status], verbs: [patch] }
# No create: a deleted object stays deleted.
- { apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], resourceNames: [{{ include "archwright.clusterName" . }}], verbs: [get, list, watch, patch] }
{{- end }}

{{/* Built-in certificates: an agent requests its own. RBAC cannot limit a read to one's own requests; they have no secrets. */}}
{{- define "archwright.agentCertificateRules" }}
- { apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, get] }
{{- end }}

{{- define "archwright.signerRules" }}
- { apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [list, watch, delete] }
- { apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/approval, certificatesigningrequests/status], verbs: [patch] }
- { apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [arch.example/agent], verbs: [approve, sign] }
{{- end }}

{{- define "archwright.tokenRules" }}
- { apiGroups: [''], resources: [serviceaccounts], verbs: [get] }
- { apiGroups: [''], resources: [serviceaccounts/token], verbs: [create] }
{{- end }}

{{- define "archwright.cleanClusterRules" }}
- { apiGroups: [''], resources: [pods], verbs: [get, list, patch] }
- { apiGroups: [''], resources: [nodes], verbs: [get, list, patch] }
- { apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [list, delete] }
{{- if has "--restart-pods" .Values.clean.extraArgs }}
- { apiGroups: [apps], resources: [replicasets], verbs: [get] }
- { apiGroups: [apps], resources: [deployments, statefulsets], verbs: [patch] }
{{- end }}
- { apiGroups: [openreports.io], resources: [reports], resourceNames: [{{ printf "%s-report" (include "archwright.fullname" .) }}], verbs: [list, delete] }
- { apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], resourceNames: [{{ include "archwright.clusterName" . }}], verbs: [get, delete] }
{{- end }}

{{/* `archwright report --publish`: it reads no Secrets, because the controller looks up the images. */}}
{{- define "archwright.reportClusterRules" }}
- { apiGroups: [''], resources: [pods, nodes], verbs: [list] }
- { apiGroups: [''], resources: [replicationcontrollers], verbs: [get, list] }
- { apiGroups: [apps], resources: [replicasets, statefulsets], verbs: [get, list] }
- { apiGroups: [apps], resources: [daemonsets], verbs: [get] }
- { apiGroups: [batch], resources: [jobs], verbs: [get, list] }
# Requests to the controller for images of every namespace.
- { apiGroups: [arch.example], resources: [imagefacts], verbs: [create] }
- { apiGroups: [openreports.io], resources: [reports], resourceNames: [{{ printf "%s-report" (include "archwright.fullname" .) }}], verbs: [list, create, patch, delete] }
{{- end }}

{{- define "archwright.probeRules" }}
- { apiGroups: [''], resources: [pods], verbs: [create] }
{{- end }}

{{/* Who runs, with which configuration, and why agents do not: for the startup check. */}}
{{- define "archwright.installationRules" }}
- { apiGroups: [''], resources: [pods, events], verbs: [list] }
- { apiGroups: [''], resources: [configmaps], resourceNames: [{{ include "archwright.fullname" . }}], verbs: [get] }
- { apiGroups: [apps], resources: [deployments, daemonsets], verbs: [list] }
{{- end }}
