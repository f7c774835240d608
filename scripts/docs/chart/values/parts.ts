/** Values of the running parts: webhook, controller, agent, and the Jobs of hooks. */
import { architecture } from '../../../../src/policy/value-kinds/architectures.ts';
import { duration } from '../../../../src/policy/value-kinds/plain.ts';
import {
  count,
  countOrPercent,
  flag,
  object,
  objects,
  oneOf,
  port,
  seconds,
  shaped,
  text,
  textMap,
  texts,
  valuesOf,
  type Described,
  type Section,
} from '../value.ts';

/** Values of every pod template. */
function podValues(resources: { readonly requests: Record<string, string>; readonly limits: Record<string, string> }): Described {
  return {
    resources: object({ help: 'Resources of the container.', default: resources, example: { requests: { cpu: '1' } } }),
    nodeSelector: textMap({ help: 'Node selector.', default: {}, example: { pool: 'system' } }),
    affinity: object({
      help: 'Additional affinity. Pods always require nodes that can run the image.',
      default: {},
      example: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [] } },
    }),
    dnsConfig: object({ help: 'DNS parameters of the pods.', default: {}, example: { options: [{ name: 'ndots', value: '1' }] } }),
    hostAliases: objects({
      help: 'Additional lines of `/etc/hosts`.',
      default: [],
      example: [{ ip: '10.0.0.7', hostnames: ['registry.example.com'] }],
    }),
    podLabels: textMap({ help: 'Labels of the pods.', default: {}, example: { 'azure.workload.identity/use': 'true' } }),
    podAnnotations: textMap({ help: 'Annotations of the pods.', default: {}, example: { 'sidecar.istio.io/inject': 'false' } }),
    priorityClassName: text({ help: 'Priority class. Empty: the chart’s default.', default: '', example: 'system-cluster-critical' }),
    podSecurityContext: object({
      help: 'Merged into the security context of the pod. `null` removes a field.',
      default: {},
      example: { fsGroup: 2000 },
    }),
    securityContext: object({
      help: 'Merged into the security context of the container. `null` removes a field.',
      default: {},
      example: { seLinuxOptions: { type: 'spc_t' } },
    }),
  };
}

const probe = { type: 'object' };

/** Additional values of long-running parts. */
const runningValues: Described = {
  probes: shaped(
    { type: 'object', properties: { startup: probe, liveness: probe, readiness: probe }, additionalProperties: false },
    {
      help: 'Fields of the probes `startup`, `liveness` and `readiness`, merged into the chart’s.',
      default: {},
      example: { liveness: { timeoutSeconds: 10 }, readiness: { periodSeconds: 10 } },
    },
  ),
  extraContainers: objects({
    help: 'Additional containers.',
    default: [],
    example: [{ name: 'proxy', image: 'registry.example.com/proxy:1' }],
  }),
  extraInitContainers: objects({
    help: 'Init containers.',
    default: [],
    example: [{ name: 'wait', image: 'registry.example.com/wait:1' }],
  }),
  extraArgs: texts({ help: 'Additional flags of the program.', default: [], example: ['--log-level=debug'] }),
  extraEnv: objects({
    help: 'Additional variables, such as `HTTPS_PROXY`.',
    default: [],
    example: [{ name: 'HTTPS_PROXY', value: 'http://proxy.example.com:3128' }],
  }),
  extraVolumes: objects({ help: 'Additional volumes.', default: [], example: [{ name: 'extra', emptyDir: {} }] }),
  extraVolumeMounts: objects({
    help: 'Additional volume mounts.',
    default: [],
    example: [{ name: 'extra', mountPath: '/extra' }],
  }),
};

const accountValues: Described = {
  'serviceAccount.create': flag({ help: 'Creates the service account.', default: true, example: false }),
  'serviceAccount.name': text({ help: 'Name of the service account. Empty: derived from the release.', default: '', example: 'mine' }),
  'serviceAccount.annotations': textMap({
    help: 'Annotations of the service account.',
    default: {},
    example: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/x' },
  }),
};

/** Additional values of the two Deployments. */
const deploymentValues: Described = {
  replicas: shaped(
    { type: ['integer', 'null'], minimum: 0 },
    { help: 'Replicas. `null` omits the field, for example for an autoscaler.', default: 2, example: 3 },
  ),
  tolerations: objects({
    help: 'Additional tolerations. Taints of the image’s architectures are always tolerated.',
    default: [],
    example: [{ key: 'dedicated', operator: 'Exists' }],
  }),
  topologySpreadConstraints: shaped(
    { type: ['array', 'null'], items: { type: 'object' } },
    {
      help: 'Spread of the pods. Default: over zones and nodes if possible.',
      example: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
    },
  ),
  'podDisruptionBudget.enabled': flag({ help: 'Creates a PodDisruptionBudget.', default: true, example: false }),
  'podDisruptionBudget.maxUnavailable': countOrPercent({
    help: 'Maximum number of unavailable pods.',
    default: 1,
    example: '50%',
  }),
  'podDisruptionBudget.minAvailable': countOrPercent({ help: 'Minimum number of available pods, instead of `maxUnavailable`.', example: '50%' }),
};

const hostPath = {
  anyOf: [
    { type: 'string', pattern: '^/' },
    {
      type: 'object',
      properties: { path: { type: 'string', pattern: '^/' }, type: { type: 'string' } },
      required: ['path'],
      additionalProperties: false,
    },
  ],
};

/**
 * Measured with plugins and 40 images: 64 MiB idle, 112 MiB after use, 160 MiB together with three `inspect` that it answers (18 MiB
 * each); with `inspect --local` 269 MiB, 55 MiB each.
 */
const agentPod = podValues({ requests: { cpu: '20m', memory: '128Mi' }, limits: { memory: '256Mi' } });

/** Values of one pool of nodes. */
const poolValues: Described = {
  tolerations: objects({
    help: 'Tolerations. Default: every taint.',
    default: [{ operator: 'Exists' }],
    example: [{ key: 'dedicated', operator: 'Exists' }],
  }),
  ...agentPod,
  ...runningValues,
  hostNetwork: flag({
    help: 'Uses the network of the node, as the kubelet does. Metadata services of clouds often respond only to the node.',
    default: true,
    example: false,
  }),
  dnsPolicy: text({ help: 'DNS policy. `Default` is the DNS of the node, as for the kubelet.', default: 'Default', example: 'ClusterFirst' }),
  port: port({ help: 'Port of the agent API, on the address of the node.', default: 9443, example: 9553 }),
  metricsPort: port({ help: 'Port of metrics and health.', default: 9444, example: 9554 }),
  metricsAddress: oneOf('auto', 'loopback', 'pod', 'all')({
    help:
      'Address of metrics and health: that of the pod (`pod`; the node’s address with `hostNetwork`), `127.0.0.1` (`loopback`, only with ' +
      '`hostNetwork`), or all addresses. `auto` with `hostNetwork`: `pod` if `monitoring.mode` or `monitoring.scrapeAnnotations` is set, ' +
      'otherwise `loopback`; without: `all`.',
    default: 'auto',
    example: 'pod',
  }),
  hostPaths: shaped(
    { type: ['array', 'null'], items: hostPath },
    {
      help:
        'Directories of the node that are mounted read-only below `/host`. Default: the paths in the settings. ' +
        '`/` mounts the whole node.',
      example: ['/etc/containerd', '/etc/pki'],
    },
  ),
  extraHostPaths: shaped(
    { type: 'array', items: hostPath },
    { help: 'Additional directories of the node.', default: [], example: ['/etc/pki'] },
  ),
  mountPropagation: oneOf('auto', 'None', 'HostToContainer')({
    help:
      'Whether later mounts and unmounts on the node reach the agent. `HostToContainer` needs shared mounts on the node. `auto`: ' +
      '`HostToContainer` for directories outside `/etc`, `/opt` and `/usr`, otherwise `None`.',
    default: 'auto',
    example: 'HostToContainer',
  }),
  readRuntimeProxy: flag({
    help:
      'Adds `/etc/systemd/system` to the default of `hostPaths`, for the proxy variables of the node’s container runtime. `false` for ' +
      'nodes without systemd, such as Talos.',
    default: true,
    example: false,
  }),
  readKubeletEnvironment: flag({
    help: 'Passes the environment of the running kubelet to plugins. Requires the capability `SYS_PTRACE`, `hostPID` and the whole host file system.',
    default: false,
    example: true,
  }),
  stateHostPath: text({
    help: 'Directory of the node where image facts survive a restart. Empty: an `emptyDir`.',
    default: '',
    example: '/var/lib/archwright',
  }),
  stateSizeLimit: text({ help: 'Size limit of that `emptyDir`.', default: '256Mi', example: '1Gi' }),
};

/** JSON Schema of one entry of `agent.pools`. */
function poolSchema(): { readonly [key: string]: unknown } {
  const properties = Object.fromEntries(
    Object.entries(poolValues)
      .filter(([key]) => !key.includes('.'))
      .map(([key, { schema }]) => [key, schema]),
  );
  return {
    type: 'object',
    properties: { name: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$' }, ...properties, config: { $ref: '#/definitions/settings' } },
    required: ['name'],
    additionalProperties: false,
  };
}

const labelSelector = 'as in a MutatingWebhookConfiguration';

export const partSections: readonly Section[] = [
  {
    title: 'Webhook configuration',
    values: valuesOf('', {
      failurePolicy: oneOf('Ignore', 'Fail')({
        help: 'What happens to pods and DaemonSets while the webhook does not respond: admitted unchanged (`Ignore`) or refused (`Fail`).',
        default: 'Ignore',
        example: 'Fail',
      }),
      timeoutSeconds: shaped(
        { type: 'integer', minimum: 1, maximum: 30 },
        { help: 'Time limit of the API server for a webhook call, in seconds.', default: 2, example: 5 },
      ),
      reinvocationPolicy: oneOf('IfNeeded', 'Never')({
        help: 'Whether the API server calls the webhook again after another webhook changed the pod, for example to add a sidecar.',
        default: 'IfNeeded',
        example: 'Never',
      }),
      namespaceSelector: object({
        help: `Selects namespaces, ${labelSelector}. The release’s own and \`excludedNamespaces\` are always excluded.`,
        default: {},
        example: { matchLabels: { team: 'shop' } },
      }),
      objectSelector: object({
        help: `Selects pods and workloads, ${labelSelector}. The label \`arch.example/placement: disabled\` always excludes.`,
        default: {},
        example: { matchLabels: { tier: 'web' } },
      }),
      matchConditions: shaped(
        {
          type: 'array',
          maxItems: 50,
          items: {
            type: 'object',
            properties: { name: { type: 'string' }, expression: { type: 'string' } },
            required: ['name', 'expression'],
            additionalProperties: false,
          },
        },
        {
          help: 'Additional conditions in CEL that a pod must meet.',
          default: [],
          example: [{ name: 'not-batch', expression: "object.metadata.namespace != 'batch'" }],
        },
      ),
      workloadWarnings: flag({
        help: 'Warns users if workloads, pods that name their node, or new images of running pods cannot run.',
        default: true,
        example: false,
      }),
    }),
  },
  {
    title: 'Webhook',
    values: valuesOf('webhook', {
      ...deploymentValues,
      ...podValues({ requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '384Mi' } }),
      ...runningValues,
      ...accountValues,
      port: port({ help: 'Port of the webhook.', default: 8443, example: 9443 }),
      clientCa: text({
        help:
          'CA of the client certificate that the API server presents (PEM). Reviews without such a certificate are refused. Needs an ' +
          'AdmissionConfiguration of the API server. Empty: none.',
        default: '',
        example: '-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n',
      }),
      metricsPort: port({ help: 'Port of metrics and health.', default: 8080, example: 9080 }),
      metricsTls: flag({
        help: 'Serves metrics and health over TLS, with the certificate of the webhook. Probes and monitors use it too.',
        default: false,
        example: true,
      }),
      hostNetwork: flag({
        help:
          'Uses the network of the node, for API servers that cannot reach pods. Each replica then needs its own node, and an update ' +
          'stops a replica before it starts the next.',
        default: false,
        example: true,
      }),
      terminationGracePeriodSeconds: seconds({ help: 'Termination grace period. Must exceed `drainTime` by more than 5 s.', default: 45, example: 60 }),
      'autoscaling.enabled': flag({ help: 'Creates a HorizontalPodAutoscaler.', default: false, example: true }),
      'autoscaling.minReplicas': count({ help: 'Minimum number of replicas.', default: 2, example: 3 }),
      'autoscaling.maxReplicas': count({ help: 'Maximum number of replicas.', default: 6, example: 9 }),
      'autoscaling.targetCPUUtilizationPercentage': count({ help: 'Target CPU utilization in percent.', default: 70, example: 50 }),
      'verticalAutoscaling.enabled': flag({ help: 'Creates a VerticalPodAutoscaler.', default: false, example: true }),
      'verticalAutoscaling.updateMode': text({ help: 'Update mode of the VerticalPodAutoscaler.', default: 'Auto', example: 'Off' }),
    }),
  },
  {
    title: 'Controller',
    values: valuesOf('controller', {
      enabled: flag({
        help: 'Runs the controller. Without it no pod is gated, certificates must be `external`, and you write the webhook configuration.',
        default: true,
        example: false,
      }),
      ...deploymentValues,
      ...podValues({ requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } }),
      ...runningValues,
      ...accountValues,
      metricsPort: port({ help: 'Port of metrics and health.', default: 8080, example: 9080 }),
      factsPort: port({
        help: 'Port for `explain` and `report` on other machines. They reach it through the API server.',
        default: 8443,
        example: 9443,
      }),
      terminationGracePeriodSeconds: seconds({ help: 'Termination grace period.', default: 30, example: 60 }),
    }),
  },
  {
    title: 'Agent',
    values: [
      ...valuesOf('agent', {
        enabled: flag({ help: 'Runs the agents. Without them the webhook inspects images itself.', default: true, example: false }),
        ...poolValues,
        metricsTls: flag({
          help: 'Serves metrics and health over TLS, with the certificate of the agent API. Probes and monitors use it too.',
          default: false,
          example: true,
        }),
        ...accountValues,
        'updateStrategy.maxUnavailable': countOrPercent({
          help: 'Maximum number of nodes without an agent during an update.',
          default: '10%',
          example: 1,
        }),
        terminationGracePeriodSeconds: seconds({ help: 'Termination grace period.', default: 30, example: 60 }),
        serviceAccountTokenAudiences: texts({
          help: 'Audiences for which agents may request service account tokens (`serviceAccountTokens`).',
          default: [],
          example: ['registry.example.com'],
        }),
        pools: shaped(
          { type: 'array', items: poolSchema() as never },
          {
            help:
              'One DaemonSet for each pool of nodes instead of one for all nodes. Each has a `name`, any of the values above, and its own ' +
              'settings in `config`. Node selectors or affinities of pools must not overlap.',
            default: [],
            example: [{ name: 'gpu', nodeSelector: { pool: 'gpu' }, config: { proxies: ['docker.io=mirror.example.com'] } }],
          },
        ),
      }),
    ],
  },
  {
    title: 'Jobs: report, uninstall, checks',
    values: [
      ...valuesOf('report', {
        enabled: flag({
          help: 'Runs `archwright report --publish` on a schedule. Needs the controller.',
          default: false,
          example: true,
        }),
        schedule: text({ help: 'Schedule of the CronJob.', default: '17 4 * * *', example: '0 6 * * 1' }),
        architecture: shaped(architecture.schema, { help: 'Target architecture.', default: 'arm64', example: 's390x' }),
        prices: text({
          help: 'Prices of node types: the text of a `prices.toml`, for example by `--set-file`.',
          default: '',
          example: '[[node]]\ninstance-type = "m7g.large"\non-demand = 0.0978\n',
        }),
        newerTags: flag({
          help: 'Looks for newer tags, in public repositories only because the Job reads no pull secrets. Needs egress to registries.',
          default: false,
          example: true,
        }),
        // 20,000 pods of 1,500 workloads take about 300 MiB.
        resources: object({
          help: 'Resources of the container.',
          default: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
          example: { limits: { memory: '1Gi' } },
        }),
      }),
      ...valuesOf('clean', {
        enabled: flag({
          help: 'Runs `archwright clean`, which removes gates and taints, before the release is uninstalled.',
          default: true,
          example: false,
        }),
        extraArgs: texts({ help: 'Additional flags, such as `--restart-pods`.', default: [], example: ['--restart-pods'] }),
        activeDeadlineSeconds: seconds({ help: 'Time limit of the Job, in seconds.', default: 240, example: 600 }),
      }),
      ...valuesOf('startupCheck', {
        enabled: flag({
          help: 'After each install and upgrade, runs a Job that waits until the API server calls the webhook, every replica has the new configuration, and agents answer.',
          default: true,
          example: false,
        }),
        timeout: shaped(duration(0, 1).schema, { help: 'Time limit of that Job.', default: '4m', example: '1m' }),
        namespace: text({
          help: 'Namespace of the pod that the Job creates in a dry run. The webhook must serve it.',
          default: 'default',
          example: 'shop',
        }),
      }),
      ...valuesOf('jobs', {
        ...podValues({ requests: { cpu: '20m', memory: '96Mi' }, limits: { memory: '256Mi' } }),
        tolerations: objects({
          help: 'Additional tolerations of the Jobs. Taints of the image’s architectures are always tolerated.',
          default: [],
          example: [{ key: 'dedicated', operator: 'Exists' }],
        }),
      }),
    ],
  },
];
