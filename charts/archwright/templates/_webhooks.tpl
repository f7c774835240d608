{{/*
The webhooks of the MutatingWebhookConfiguration, as the controller applies them: it adds `caBundle`. The conditions repeat
what the webhook would leave alone anyway, so that the API server does not call it for that.
*/}}
{{- define "archwright.webhooks" -}}
{{- $excluded := include "archwright.setting" (dict "root" . "key" "excludedNamespaces") | fromJsonArray -}}
{{- /* A namespaceSelector has no globs. kube-system stays out by name, so that its pods need neither the webhook nor a condition. */ -}}
{{- $namespaces := list (include "archwright.namespace" .) -}}
{{- $globs := list -}}
{{- range $excluded -}}
{{- if contains "*" . -}}
{{- $glob := replace "*" ".*" . -}}
{{- $globs = append $globs $glob -}}
{{- if regexMatch (printf "^%s$" $glob) "kube-system" }}{{ $namespaces = append $namespaces "kube-system" }}{{ end -}}
{{- else }}{{ $namespaces = append $namespaces . }}{{ end -}}
{{- end -}}
{{- $namespaces = uniq $namespaces -}}
{{- $condition := "" -}}
{{- with $globs }}{{ $condition = printf "- name: is-not-in-excluded-namespace\n  expression: \"!request.namespace.matches('^(%s)$')\"" (join "|" .) }}{{ end -}}
webhooks:
  - name: pods.arch.example
    {{- include "archwright.webhookBasics" (dict "root" . "failurePolicy" .Values.failurePolicy "namespaces" $namespaces "objectSelector" .Values.objectSelector) | nindent 4 }}
    rules:
      - { apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: Namespaced }
    matchConditions:
      {{- with $condition }}{{ . | nindent 6 }}{{ end }}
      - name: has-no-node
        expression: "!has(object.spec.nodeName) || object.spec.nodeName == ''"
      - name: is-no-mirror-pod
        expression: "!has(object.metadata.annotations) || !('kubernetes.io/config.mirror' in object.metadata.annotations)"
      - name: is-of-no-daemonset
        expression: "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, o.kind == 'DaemonSet')"
      - name: is-not-disabled
        expression: "!has(object.metadata.annotations) || !('arch.example/placement' in object.metadata.annotations) || object.metadata.annotations['arch.example/placement'] != 'disabled'"
      - name: is-not-for-control-plane
        expression: "!has(object.spec.nodeSelector) || !('node-role.kubernetes.io/control-plane' in object.spec.nodeSelector || 'node-role.kubernetes.io/master' in object.spec.nodeSelector)"
      - name: pulls-an-image
        expression: >-
          object.spec.containers.exists(c, !has(c.imagePullPolicy) || c.imagePullPolicy != 'Never')
          || has(object.spec.initContainers) && object.spec.initContainers.exists(c, !has(c.imagePullPolicy) || c.imagePullPolicy != 'Never')
          || has(object.spec.volumes) && object.spec.volumes.exists(v, has(v.image))
      {{- with .Values.matchConditions }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
  - name: daemonsets.arch.example
    {{- include "archwright.webhookBasics" (dict "root" . "failurePolicy" .Values.failurePolicy "namespaces" $namespaces) | nindent 4 }}
    rules:
      - { apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [daemonsets], scope: Namespaced }
    matchConditions:
      {{- with $condition }}{{ . | nindent 6 }}{{ end }}
      - name: stays
        expression: "!has(object.metadata.deletionTimestamp)"
      - name: template-changes-or-is-provisional
        expression: >-
          request.operation == 'CREATE' || object.spec.template != oldObject.spec.template
          || has(object.spec.template.metadata) && has(object.spec.template.metadata.annotations)
          && 'arch.example/decision' in object.spec.template.metadata.annotations
          && object.spec.template.metadata.annotations['arch.example/decision'].contains('"provisional":true')
  {{- if .Values.workloadWarnings }}
  - name: workloads.arch.example
    {{- include "archwright.webhookBasics" (dict "root" . "failurePolicy" "Ignore" "namespaces" $namespaces) | nindent 4 }}
    rules:
      - { apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments, statefulsets, replicasets], scope: Namespaced }
      - { apiGroups: [batch], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [jobs, cronjobs], scope: Namespaced }
    matchConditions:
      {{- with $condition }}{{ . | nindent 6 }}{{ end }}
      - name: stays
        expression: "!has(object.metadata.deletionTimestamp)"
      - name: is-of-a-person
        expression: "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)"
      - name: template-changes
        expression: >-
          request.operation == 'CREATE'
          || (has(object.spec.template) ? object.spec.template != oldObject.spec.template : object.spec.jobTemplate != oldObject.spec.jobTemplate)
  - name: running-pods.arch.example
    {{- include "archwright.webhookBasics" (dict "root" . "failurePolicy" "Ignore" "namespaces" $namespaces "objectSelector" .Values.objectSelector) | nindent 4 }}
    rules:
      - { apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [pods, pods/ephemeralcontainers], scope: Namespaced }
      - { apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: Namespaced }
    matchConditions:
      {{- with $condition }}{{ . | nindent 6 }}{{ end }}
      - name: stays
        expression: "!has(object.metadata.deletionTimestamp)"
      - name: has-a-node
        expression: has(object.spec.nodeName) && object.spec.nodeName != ''
      - name: is-new-of-a-person
        expression: >-
          request.operation != 'CREATE'
          || (!has(object.metadata.annotations) || !('kubernetes.io/config.mirror' in object.metadata.annotations))
          && (!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller))
      - name: image-changes
        expression: >-
          request.operation == 'CREATE' || request.subResource == 'ephemeralcontainers'
          || object.spec.containers.map(c, c.image) != oldObject.spec.containers.map(c, c.image)
          || has(object.spec.initContainers) && object.spec.initContainers.map(c, c.image) != oldObject.spec.initContainers.map(c, c.image)
  {{- end }}
{{- end -}}

{{/* dict root failurePolicy namespaces [objectSelector] */}}
{{- define "archwright.webhookBasics" -}}
admissionReviewVersions: [v1]
sideEffects: None
matchPolicy: Equivalent
failurePolicy: {{ .failurePolicy }}
reinvocationPolicy: {{ .root.Values.reinvocationPolicy }}
timeoutSeconds: {{ .root.Values.timeoutSeconds }}
clientConfig:
  service:
    name: {{ include "archwright.fullname" .root }}-webhook
    namespace: {{ include "archwright.namespace" .root }}
    path: /mutate
    port: 443
{{- $selector := .root.Values.namespaceSelector }}
namespaceSelector:
  {{- with $selector.matchLabels }}
  matchLabels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: {{ .namespaces | toJson }}
    - { key: arch.example/placement, operator: NotIn, values: [disabled] }
    {{- with $selector.matchExpressions }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- $objects := .objectSelector | default dict }}
objectSelector:
  {{- with $objects.matchLabels }}
  matchLabels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  matchExpressions:
    - { key: arch.example/placement, operator: NotIn, values: [disabled] }
    {{- with $objects.matchExpressions }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
