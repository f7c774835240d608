/** The prose of the chart's README. */
export const chartIntroduction = `# Chart archwright

For Helm 3 and 4, Kubernetes 1.30 and later. No other dependencies. Every object is tested with the API servers of 1.30 and 1.36, cert-manager
1.21, the Prometheus operator 0.85 and the vertical pod autoscaler 1.8.

\`\`\`sh
kubectl create namespace archwright
kubectl label namespace archwright pod-security.kubernetes.io/enforce=privileged      # the agent reads files of its node
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

Everything is applied at once, in any order; nothing is looked up, generated or random. The controller issues the certificates; webhook and agents start
when their Secrets exist. The controller adds the webhooks to the MutatingWebhookConfiguration when the webhook answers, so Helm, Argo CD and Flux never
change them. A second release in the same cluster is [refused](../../docs/operate/upgrade.md#once-per-cluster).

| part | runs as | Pod Security |
| --- | --- | --- |
| webhook, 2 replicas | user 65532, read-only root, no capabilities | \`restricted\` |
| controller, 2 replicas, one leads | the same | \`restricted\` |
| agent, one on each node | root, read-only root, no capabilities | \`privileged\`: see below |

What the agent needs beyond \`restricted\`:

| need | why |
| --- | --- |
| \`hostNetwork\` | registries and metadata services may answer a pod differently from the node. Off: \`agent.hostNetwork: false\` |
| \`hostPath\`, read-only | the configuration of containerd and the kubelet. None: \`agent.hostPaths: []\` |
| user 0 | these files are root's. Without capabilities, it reads what root may read and changes nothing |
| \`SYS_CHROOT\` | only if \`kubeletConfig\` names plugins, which run in the root of their node |
| \`SYS_PTRACE\` and \`hostPID\` | only with \`agent.readKubeletEnvironment\` |

### Nodes

All pods of the chart run on Linux nodes of \`image.architectures\`, ANDed with any affinity in the values. Agents elsewhere answer for the images of other
nodes. Pods tolerate taints with the key \`kubernetes.io/arch\` and \`taintKey\`; agents tolerate every taint. The Dockerfile builds the image for every
architecture of its base image, such as ppc64le, without emulation: then add it to \`image.architectures\`.

### OpenShift and SELinux

[\`examples/helm/openshift.yaml\`](../../examples/helm/openshift.yaml) lets OpenShift choose users and gives agents the SCC \`privileged\` (not tested there).
On nodes that enforce SELinux, agents need \`agent.securityContext: {seLinuxOptions: {type: spc_t}}\`.

### Host paths

Default of \`agent.hostPaths\`:

- with \`kubeletConfig.config\` or \`configDir\`: all of \`/\`, because plugins run in the root of the node;
- otherwise the directories of \`containerdConfigPathCandidates\` (\`/etc/containerd\` if it is not set, none if it is empty), those of
  \`dockerConfigPathCandidates\` if it is set, \`/etc/ssl/certs\`, and \`/etc/systemd/system\` for the proxy of the container runtime
  (\`agent.readRuntimeProxy\`).

The container runtime creates a missing directory on the node, so name those of your [distribution](../../docs/install/distributions.md).
\`/var/lib/kubelet\` is not a default, because it holds the Secrets of pods. For certificates elsewhere, such as in \`/etc/pki\`, add
\`agent.extraHostPaths\`.

## Rights

| part | in the cluster | in its own namespace |
| --- | --- | --- |
| webhook | reads nodes, namespaces and the custom resources; Secrets and service accounts by name | reads EndpointSlices, its Lease and two ConfigMaps |
| controller | the same, pods with their logs; changes pods, evicts them, taints nodes, writes events and status; one MutatingWebhookConfiguration; signs certificates of agents | Secrets, Lease, ConfigMaps, EndpointSlices |
| agent | creates and reads CertificateSigningRequests with built-in certificates; tokens of service accounts under \`serviceAccountTokens\` | nothing |
| report | lists pods and nodes; \`Report\`s of OpenReports by one name; asks the controller | three ConfigMaps; writes one |
| clean | pods, nodes, the MutatingWebhookConfiguration; only while the release is uninstalled | Secrets, Lease, ConfigMap |

[Purpose of each right](../../docs/internals/security.md#rights-of-the-webhook). \`rbac.pullSecrets\` limits which Secrets can be read. With
\`certificates: certManager\` or \`external\`, [all agents share one key](../../docs/internals/security.md#one-key-for-all-agents).

## Network

NetworkPolicies cannot select an API server, so all may reach the webhook's port, unless you name its addresses in \`networkPolicy.webhookFrom\`.
\`networkPolicy.metricsFrom\` limits the metrics ports. Agents in the network of their node are not limited. If your cluster denies egress, allow
this in \`networkPolicy.egress\`, and for the pods of Jobs:

| from | to |
| --- | --- |
| webhook, controller, agents, Jobs | the API server; DNS |
| webhook, controller | agents: \`agent.port\` (9443) of every node |
| controller | the Service of the webhook |
| agents; the webhook if there are none | registries, mirrors, proxies |

Firewalls of hosted control planes must allow the API server to reach the webhook's port (8443).

## Upgrade

\`helm upgrade\` and \`helm rollback\` need no order: [upgrade](../../docs/operate/upgrade.md).

## Removal

\`helm uninstall archwright --namespace archwright\` first runs \`archwright clean\`, which removes gates and taints. If the Job cannot run,
\`helm uninstall --no-hooks\` leaves them, and \`archwright clean\` with a kubeconfig removes them from outside. Custom resources and their
definitions stay, unless \`crds.keep\` is \`false\`: \`kubectl delete crd architecturerollouts.arch.example clusterpodplacementconfigs.arch.example podplacementconfigs.arch.example\`.

## Argo CD and Flux

Both can use the chart as it is. Argo CD runs Helm's hooks: the check after a sync, and since 3.3 \`archwright clean\` before the application is
deleted. With an older version, run it yourself first.

## Validation

\`helm install\`, \`upgrade\`, \`template\` and \`lint\` refuse unknown values with a suggestion, and values of a wrong type:

\`\`\`text
webhook.replica is not a value of this chart; did you mean webhook.replicas?
\`\`\`

\`global\` may hold what other charts have there, and \`enabled\` is accepted for charts that depend on this one under a condition.
\`archwright config check\` checks the rendered archwright.toml as a whole.
`;
