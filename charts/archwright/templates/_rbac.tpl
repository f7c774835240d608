{{/* Roles and their bindings. */}}

{{/*
A role with its binding to the service account of a part. dict root part rules [namespace] [name] [account] [hook]
namespace: absent for a ClusterRole. account: service account, default that of the part.
*/}}
{{- define "archwright.role" -}}
{{- $cluster := not .namespace -}}
{{- $name := .name | default (printf "%s-%s" (ternary (include "archwright.clusterName" .root) (include "archwright.fullname" .root) $cluster) .part) -}}
{{- $base := dict "root" .root "name" $name "part" .part "cluster" $cluster "namespace" .namespace "annotations" .hook -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "ClusterRole" "Role" $cluster }}
{{ include "archwright.metadata" (merge (dict "kind" (ternary "clusterrole" "role" $cluster)) $base) }}
rules:
  {{- .rules | nindent 2 }}
---
{{ include "archwright.binding" (merge (dict "name" $name "roleKind" (ternary "ClusterRole" "Role" $cluster)) .) }}
{{- end -}}

{{/* dict root part name roleKind [namespace] [account] [hook] */}}
{{- define "archwright.binding" -}}
{{- $cluster := not .namespace -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "ClusterRoleBinding" "RoleBinding" $cluster }}
{{ include "archwright.metadata" (dict "root" .root "kind" (ternary "clusterrolebinding" "rolebinding" $cluster) "name" .name "part" .part "cluster" $cluster "namespace" .namespace "annotations" .hook) }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: {{ .roleKind }}, name: {{ .name }} }
subjects:
  - { kind: ServiceAccount, name: {{ if .account }}{{ .account }}{{ else }}{{ include "archwright.serviceAccount" . }}{{ end }}, namespace: {{ include "archwright.namespace" .root }} }
{{- end -}}

{{/* Templates lack the pull secrets that pods get from their service account. */}}
{{- define "archwright.pullSecretRules" -}}
# Read by name, if a pod names them. Never listed.
- { apiGroups: [''], resources: [secrets, serviceaccounts], verbs: [get] }
{{- end -}}
