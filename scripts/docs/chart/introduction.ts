/** The prose of the chart's README. */
export const chartIntroduction = `# Chart archwright

You need Helm 3 or 4 and Kubernetes 1.30 or later. No other dependencies. Every object is tested with the API servers of 1.30 and 1.36,
cert-manager 1.21, the Prometheus operator 0.85 and the vertical pod autoscaler 1.8.

\`\`\`sh
kubectl create namespace archwright
kubectl label namespace archwright pod-security.kubernetes.io/enforce=privileged      # agents read files of their nodes
helm install archwright charts/archwright --namespace archwright --values values.yaml
\`\`\`

\`\`\`yaml
# values.yaml: your image, the kubelet's credential provider plugins, a preference, and a registry login
image: { registry: registry.example.com, repository: archwright } # instead of ghcr.io/archwright/archwright
kubeletConfig:
  config: /etc/eks/image-credential-provider/config.json
  binDir: /etc/eks/image-credential-provider
schedulableArchitectures: [amd64, arm64]
preferredArchitecture: arm64
registryCredentials:
  ghcr.io:
    existingSecret: ghcr-login # with a key ghcr.io.toml: user = "…", secret = "…"
\`\`\`

## What is installed

All objects are applied at once, in any order. Templates use no lookups and no random values. The controller issues the certificates, and webhook and
agents start when their Secrets exist. When the webhook answers, the controller adds the webhooks to the MutatingWebhookConfiguration, so Helm, Argo CD
and Flux never change them. A second release in the same cluster is [refused](../../docs/operate/upgrade.md#once-per-cluster).

| part | runs as | Pod Security |
| --- | --- | --- |
| webhook, 2 replicas | user 65532, read-only root, no capabilities | \`restricted\` |
| controller, 2 replicas, one leads | the same | \`restricted\` |
| agent, one on each node | root, read-only root, no capabilities | \`privileged\`: see below |

What the agent needs beyond \`restricted\`:

| need | why |
| --- | --- |
| \`hostNetwork\` | registries and metadata services may answer pods and nodes differently. To disable: \`agent.hostNetwork: false\` |
| \`hostPath\`, read-only | the configuration of the container runtime and the kubelet. To disable: \`agent.hostPaths: []\` |
| user 0 | root owns these files. Without capabilities, the agent can read them, but change nothing |
| \`SYS_CHROOT\` | only if \`kubeletConfig\` names plugins, which run in the root of their node |
| \`hostPath\` \`/proc\`, read-only, \`/sys/kernel/tracing/instances\` and \`/run/archwright\`; for an init container \`/sys/kernel\` | only with \`execFormatErrorTracing\` |
| \`SYS_PTRACE\` and \`hostPID\` | only with \`agent.readKubeletEnvironment\` |

### Nodes

All pods of the chart run on Linux nodes of \`image.architectures\`. This is ANDed with any affinity in the values. Agents answer for the images of nodes
without an agent. Pods tolerate taints with the key \`kubernetes.io/arch\` and \`taintKey\`. Agents tolerate every taint. The Dockerfile builds the image
without emulation for every architecture of its base image, such as ppc64le. Add such an architecture to \`image.architectures\`.

### OpenShift and SELinux

With [\`examples/helm/openshift.yaml\`](../../examples/helm/openshift.yaml), OpenShift chooses users, agents have an SCC of their own, and the
[service CA](../../docs/operate/certificates.md#the-service-ca-of-openshift) issues the webhook's certificate. Tests restate the admission rules of SCCs, install
everything on an API server with this API, and hold the chart by the rules of Red Hat's chart verification. Nothing was tried on OpenShift itself: not SELinux, not the
console.

On nodes that enforce SELinux, agents need \`agent.podSecurityContext: {seLinuxOptions: {type: spc_t}}\`: \`container_t\` may not read files of the node.

### Host paths

Default of \`agent.hostPaths\`:

- with \`kubeletConfig.config\` or \`configDir\`: all of \`/\`, because plugins run in the root of the node;
- otherwise those of the container runtime: the directories of \`containerdConfigPathCandidates\` (none if it is empty); if it is not set,
  \`/etc/containerd\`, and with \`runtime: auto\` also \`/etc/crio\` and \`/etc/containers\`; with \`runtime: cri-o\` \`/etc/crio\`,
  \`/etc/containers\` and \`/etc/docker/certs.d\`;
- those of \`dockerConfigPathCandidates\` if it is set, \`/etc/ssl/certs\`, and \`/etc/systemd/system\` for the proxy of the container
  runtime (\`agent.readRuntimeProxy\`).

The container runtime creates missing directories on the node. To prevent that, set the paths of your
[distribution](../../docs/install/distributions.md). \`/var/lib/kubelet\` is not a default, because it contains the Secrets of pods. For certificates
elsewhere, such as in \`/etc/pki\`, set \`agent.extraHostPaths\`.

## Rights

| part | in the cluster | in its own namespace |
| --- | --- | --- |
| webhook | reads nodes, namespaces and the custom resources; Secrets and service accounts by name | reads EndpointSlices, its Lease and two ConfigMaps |
| controller | the same, pods with their logs; changes pods, evicts them, taints nodes, writes events and status; one MutatingWebhookConfiguration; signs certificates of agents | Secrets, Lease, ConfigMaps, EndpointSlices |
| agent | creates and reads CertificateSigningRequests with built-in certificates; tokens of service accounts under \`serviceAccountTokens\` | nothing |
| report | lists pods and nodes; writes OpenReports \`Report\`s of one name; sends requests to the controller | reads three ConfigMaps; writes one |
| clean | pods, nodes, the MutatingWebhookConfiguration; only during uninstallation | Secrets, Lease, ConfigMap |

[Purpose of each right](../../docs/internals/security.md#rights-of-the-webhook). \`rbac.pullSecrets\` limits which Secrets can be read. With
\`certificates: certManager\` or \`external\`, [all agents share one key](../../docs/internals/security.md#one-key-for-all-agents).

## Network

NetworkPolicies cannot select API servers. So every client may reach the webhook's port, unless you list the addresses of the API servers in
\`networkPolicy.webhookFrom\`. \`networkPolicy.metricsFrom\` limits access to the metrics ports. Agents in the network of their node are not limited. If
your cluster denies egress, allow this in \`networkPolicy.egress\`, and for the pods of Jobs:

| from | to |
| --- | --- |
| webhook, controller, agents, Jobs | the API server; DNS |
| webhook, controller | agents: \`agent.port\` (9443) of every node |
| controller | the Service of the webhook |
| agents; the webhook if there are none | registries, mirrors, proxies |

Firewalls of hosted control planes must allow the API server to reach the webhook's port (8443).

## Upgrade

Run \`helm upgrade\` or \`helm rollback\`; no order is required. See [upgrade](../../docs/operate/upgrade.md).

## Removal

\`helm uninstall archwright --namespace archwright\` first runs \`archwright clean\`, which removes gates and taints. If this Job cannot run, use
\`helm uninstall --no-hooks\`, then run \`archwright clean\` with a kubeconfig from your machine. Custom resources and their definitions stay, unless
\`crds.keep\` is \`false\`. To remove them: \`kubectl delete crd architecturerollouts.arch.example clusterpodplacementconfigs.arch.example podplacementconfigs.arch.example\`.

## Argo CD and Flux

Both can use the chart unchanged. Argo CD runs Helm's hooks: the pull of the image before a sync, the check after it, and since 3.3 \`archwright clean\` before the application is
deleted. With older versions, run \`archwright clean\` yourself before you delete the application.

## Validation

\`helm install\`, \`upgrade\`, \`template\` and \`lint\` refuse unknown values, and values of a wrong type. They name the place; for
\`webhook.replica=3\`:

\`\`\`text
- at '/webhook': additional properties 'replica' not allowed
\`\`\`

\`global\` may contain values of other charts. \`enabled\` is accepted for charts with this one as a conditional dependency. \`archwright config check\`
checks the rendered archwright.toml as a whole.
`;
