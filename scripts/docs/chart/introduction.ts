/** The prose of the chart's README. */
export const chartIntroduction = `# Chart archwright

For Helm 3 and 4, Kubernetes 1.30 and later. Nothing else has to be installed first. Every object is tried with the API servers of
1.30 and 1.36; those of cert-manager, the Prometheus operator and the vertical pod autoscaler with the definitions of their versions
1.21, 0.85 and 1.8.

\`\`\`sh
helm install archwright charts/archwright --namespace archwright --create-namespace
\`\`\`

Nodes pull \`ghcr.io/archwright/archwright\` unless \`image.registry\` and \`image.repository\` name another: a mirror, or an image that you
built ([README](../../README.md#five-minutes-with-a-cluster)).

The agent reads files of its node, so where namespaces are held to a Pod Security level, allow that:

\`\`\`sh
kubectl label namespace archwright pod-security.kubernetes.io/enforce=privileged
\`\`\`

\`\`\`yaml
# values.yaml: where the kubelet of the nodes has its credential provider plugins, and a preference
kubeletConfig:
  config: /etc/eks/image-credential-provider/config.json
  binDir: /etc/eks/image-credential-provider
schedulableArchitectures: [amd64, arm64]
preferredArchitecture: arm64
registryCredentials:
  ghcr.io:
    existingSecret: ghcr-login # with a key ghcr.io.toml: user = "…", secret = "…"
\`\`\`

## What is installed, and when it begins to work

Everything is applied at once, in any order. The controller makes the certificates; webhook and agents start when the Secrets
with them are there. The MutatingWebhookConfiguration comes without webhooks: the controller writes them when the webhook
answers, so that nothing is sent to a webhook that is not there, and an upgrade by Helm or a sync by Argo CD or Flux never changes
them. Rendering is the same each time: nothing is looked up, generated or random. A second release in the same cluster is refused
([docs/operate/upgrade.md](../../docs/operate/upgrade.md#once-per-cluster)).

| part | runs as | Pod Security |
| --- | --- | --- |
| webhook, 2 replicas | user 65532, read-only root, no capabilities | \`restricted\` |
| controller, 2 replicas, one leads | the same | \`restricted\` |
| agent, one on each node | root, read-only root, no capabilities | \`privileged\`: see below |

What the agent needs beyond \`restricted\`, and why:

* \`hostNetwork\`: registries and metadata services answer the node, which may be different from what a pod gets. Off: \`agent.hostNetwork: false\`.
* \`hostPath\`, read-only: the configuration of containerd and the kubelet. None: \`agent.hostPaths: []\`.
* user 0, since those files are root's. It has no capability, so it reads what root may read and changes nothing.
* \`SYS_CHROOT\`, only where \`kubeletConfig\` names plugins, which are run in the root of their node.
* \`SYS_PTRACE\` and \`hostPID\`, only with \`agent.readKubeletEnvironment\`.

### Nodes

All pods of the chart go to Linux nodes of \`image.architectures\` only; that is ANDed with whatever affinity the values have. Nodes of
another architecture, and Windows, have no agent: agents elsewhere answer for the images of their pods. They tolerate taints with the key
\`kubernetes.io/arch\` and \`taintKey\`; agents tolerate every taint.

\`npm run image\` makes the image for amd64 and arm64. The Dockerfile makes it for whatever Docker's \`node\` has, s390x and ppc64le too, without
emulation: \`docker buildx build --platform linux/amd64,linux/s390x …\`, and \`image.architectures: [amd64, s390x]\`.

### OpenShift and SELinux

[\`examples/helm/openshift.yaml\`](../../examples/helm/openshift.yaml) lets OpenShift choose users and gives agents the SCC \`privileged\`. It follows
OpenShift's documentation and has not been tried there. On any nodes that enforce SELinux agents read files of their node under
\`agent.securityContext: {seLinuxOptions: {type: spc_t}}\`.

### Host paths

Not set, \`agent.hostPaths\` is: all of \`/\` where \`kubeletConfig.config\` or \`configDir\` is set, because plugins run in the root of the
node with its programs and libraries; else the directories of \`containerdConfigPathCandidates\` (\`/etc/containerd\` where that is not
set, nothing where it is empty), those of \`dockerConfigPathCandidates\` where it is set, and \`/etc/ssl/certs\`. A directory that a node lacks is
made there, empty, by its container runtime, so name those of your distribution (docs/install/distributions.md); \`/var/lib/kubelet\` is not
among them by itself, because it holds the Secrets of pods. Where certificates are elsewhere, such as in \`/etc/pki\`, add
\`agent.extraHostPaths\`.

## Rights

| part | in the cluster | in its own namespace |
| --- | --- | --- |
| webhook | reads nodes, namespaces and the custom resources; Secrets and service accounts by name | reads EndpointSlices, its Lease and one ConfigMap |
| controller | the same, pods with their logs; changes pods, evicts them, taints nodes, writes events and status; one MutatingWebhookConfiguration | Secrets, Lease, ConfigMap |
| agent | nothing; tokens of service accounts under \`serviceAccountTokens\` | nothing |
| clean | pods, nodes, the MutatingWebhookConfiguration; only while the release is uninstalled | Secrets, Lease, ConfigMap |

\`rbac.pullSecrets: namespaces\` with \`rbac.pullSecretNamespaces\` limits which Secrets can be read; \`none\` takes the right away.

## Network

The NetworkPolicies let anybody reach the webhook's port, since an API server is no pod that could be selected, and \`networkPolicy.metricsFrom\`
the ports of metrics. Agents in the network of their node are no matter of NetworkPolicies. Where all traffic out is forbidden
unless allowed, give in \`networkPolicy.egress\` what webhook and controller need, and the same to the pods of Jobs:

| from | to |
| --- | --- |
| webhook, controller, Jobs | the API server; DNS |
| webhook, controller | agents: \`agent.port\` (9443) of every node |
| controller | the Service of the webhook |
| agents; the webhook where there are none | registries, mirrors, proxies |

From outside: the API server to the webhook's port (8443), which firewalls of hosted control planes have to let through.

## Upgrading

\`helm upgrade\`, in any order with everything else, and \`helm rollback\`: [docs/operate/upgrade.md](../../docs/operate/upgrade.md).

## Leaving

\`helm uninstall archwright --namespace archwright\` first runs \`archwright clean\`, which takes away gates and taints. If it cannot run,
\`helm uninstall --no-hooks\` leaves them, and gated pods can be freed by \`archwright clean\` from anywhere with a kubeconfig.
Custom resources go too, unless \`crds.keep\` is set.

## Argo CD and Flux

Both use the chart as it is. The hooks are Helm's: Argo CD runs the check after a sync, and \`archwright clean\` before the
application is deleted from its version 3.3 on; with an older one run it yourself before.

## What is refused

A value that the chart does not know, by \`helm install\`, \`upgrade\`, \`template\` and \`lint\` alike, with the nearest that it does:

\`\`\`text
webhook.replica is no value of this chart; did you mean webhook.replicas?
\`\`\`

and by the schema a value of the wrong kind. \`global\` may hold what other charts have there, and \`enabled\` is let through for
charts that have this one as a dependency under a condition. \`archwright config check\` looks at the rendered archwright.toml as a whole.
`;
