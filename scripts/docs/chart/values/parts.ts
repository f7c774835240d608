/** Values of the running parts: webhook, controller, agent, and the Jobs of hooks. */
import { architecture } from '../../../../src/policy/value-kinds/architectures.ts';
import { duration } from '../../../../src/policy/value-kinds/plain.ts';
import {
  count,
  countOrPercent,
  on,
  off,
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
function podValues(resources: {
  readonly requests: Record<string, string>;
  readonly limits: Record<string, string>;
}): Described {
  return {
    resources: object('Resources of the container.', resources, { requests: { cpu: '1' } }),
    nodeSelector: textMap('Node selector.', {}, { pool: 'system' }),
    affinity: object(
      'Additional affinity. Pods always require nodes that can run the image.',
      {},
      { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [] } },
    ),
    dnsConfig: object('DNS parameters of the pods.', {}, { options: [{ name: 'ndots', value: '1' }] }),
    hostAliases: objects(
      'Additional lines of `/etc/hosts`.',
      [],
      [{ ip: '10.0.0.7', hostnames: ['registry.example.com'] }],
    ),
    podLabels: textMap('Labels of the pods.', {}, { 'azure.workload.identity/use': 'true' }),
    podAnnotations: textMap('Annotations of the pods.', {}, { 'sidecar.istio.io/inject': 'false' }),
    priorityClassName: text('Priority class. Empty: the chart’s default.', '', 'system-cluster-critical'),
    podSecurityContext: object(
      'Merged into the security context of the pod. `null` removes a field.',
      {},
      { fsGroup: 2000 },
    ),
    securityContext: object(
      'Merged into the security context of the container. `null` removes a field.',
      {},
      { seLinuxOptions: { type: 'spc_t' } },
    ),
  };
}

const probe = { type: 'object' };

/** Additional values of long-running parts. */
const runningValues: Described = {
  probes: shaped(
    {
      type: 'object',
      properties: { startup: probe, liveness: probe, readiness: probe },
      additionalProperties: false,
    },
    {
      help: 'Fields of the probes `startup`, `liveness` and `readiness`, merged into the chart’s.',
      default: {},
      example: { liveness: { timeoutSeconds: 10 }, readiness: { periodSeconds: 10 } },
    },
  ),
  extraContainers: objects(
    'Additional containers.',
    [],
    [{ name: 'proxy', image: 'registry.example.com/proxy:1' }],
  ),
  extraInitContainers: objects(
    'Init containers.',
    [],
    [{ name: 'wait', image: 'registry.example.com/wait:1' }],
  ),
  extraArgs: texts('Additional flags of the program.', [], ['--log-level=debug']),
  extraEnv: objects(
    'Additional variables, such as `HTTPS_PROXY`.',
    [],
    [{ name: 'HTTPS_PROXY', value: 'http://proxy.example.com:3128' }],
  ),
  extraVolumes: objects('Additional volumes.', [], [{ name: 'extra', emptyDir: {} }]),
  extraVolumeMounts: objects('Additional volume mounts.', [], [{ name: 'extra', mountPath: '/extra' }]),
};

const accountValues: Described = {
  'serviceAccount.create': on('Creates the service account.'),
  'serviceAccount.name': text('Name of the service account. Empty: derived from the release.', '', 'mine'),
  'serviceAccount.annotations': textMap(
    'Annotations of the service account.',
    {},
    { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/x' },
  ),
};

/** Additional values of the two Deployments. */
const deploymentValues: Described = {
  replicas: shaped(
    { type: ['integer', 'null'], minimum: 0 },
    { help: 'Replicas. `null` omits the field, for example for an autoscaler.', default: 2, example: 3 },
  ),
  tolerations: objects(
    'Additional tolerations. Taints of the image’s architectures are always tolerated.',
    [],
    [{ key: 'dedicated', operator: 'Exists' }],
  ),
  topologySpreadConstraints: shaped(
    { type: ['array', 'null'], items: { type: 'object' } },
    {
      help: 'Spread of the pods. Default: over zones and nodes if possible.',
      example: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
    },
  ),
  'podDisruptionBudget.enabled': on('Creates a PodDisruptionBudget.'),
  'podDisruptionBudget.maxUnavailable': countOrPercent('Maximum number of unavailable pods.', 1, '50%'),
  'podDisruptionBudget.minAvailable': countOrPercent(
    'Minimum number of available pods, instead of `maxUnavailable`.',
    undefined,
    '50%',
  ),
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
 * Measured with plugins and 40 images: 64 MiB idle, 112 MiB after use, and 55 MiB for an `inspect` in its
 * container, 85 MiB with `serviceAccountTokens`.
 */
const agentPod = podValues({ requests: { cpu: '20m', memory: '128Mi' }, limits: { memory: '256Mi' } });

/** Values of one pool of nodes. */
const poolValues: Described = {
  tolerations: objects(
    'Tolerations. Default: every `NoSchedule` taint, because a node without an agent is not known to pull and run images. A `NoExecute` ' +
      'taint, as for quarantine, removes the agent.',
    [{ operator: 'Exists', effect: 'NoSchedule' }],
    [{ operator: 'Exists' }],
  ),
  ...agentPod,
  ...runningValues,
  hostNetwork: on(
    'Uses the network of the node, as the kubelet does. Metadata services of clouds often respond only to the node.',
  ),
  dnsPolicy: text(
    'DNS policy. `Default` is the DNS of the node, as for the kubelet.',
    'Default',
    'ClusterFirst',
  ),
  port: port('Port of the agent API, on the address of the node.', 9443, 9553),
  metricsPort: port('Port of metrics and health.', 9444, 9554),
  metricsAddress: oneOf(
    'auto',
    'loopback',
    'pod',
    'all',
  )(
    'Address of metrics and health: that of the pod (`pod`; the node’s address with `hostNetwork`), `127.0.0.1` (`loopback`, only with ' +
      '`hostNetwork`), or all addresses. `auto` with `hostNetwork`: `pod` if `monitoring.mode` or `monitoring.scrapeAnnotations` is set, ' +
      'otherwise `loopback`; without: `all`.',
    'auto',
    'pod',
  ),
  hostPaths: shaped(
    { type: ['array', 'null'], items: hostPath },
    {
      help:
        'Directories of the node that are mounted read-only below `/host`. Default: the paths in the settings. ' +
        '`/` mounts the whole node.',
      example: ['/'],
    },
  ),
  extraHostPaths: shaped(
    { type: 'array', items: hostPath },
    { help: 'Additional directories of the node.', default: [], example: ['/etc/pki'] },
  ),
  mountPropagation: oneOf('auto', 'None', 'HostToContainer')(
    'Whether later mounts and unmounts on the node reach the agent. `HostToContainer` needs shared mounts on the node. `auto`: ' +
      '`HostToContainer` for directories outside `/etc`, `/opt` and `/usr`, otherwise `None`.',
    'auto',
    'HostToContainer',
  ),
  readRuntimeProxy: on(
    'Adds `/etc/systemd/system` to the default of `hostPaths`, for the proxy variables of the node’s container runtime. `false` for ' +
      'nodes without systemd, such as Talos.',
  ),
  readKubeletEnvironment: off(
    'Passes the environment of the running kubelet to plugins. Requires the capability `SYS_PTRACE`, `hostPID` and the whole host file system (`/` in `hostPaths`, if they are set).',
  ),
  stateHostPath: text(
    'Directory of the node where image facts survive a restart. Empty: an `emptyDir`.',
    '',
    '/var/lib/archwright',
  ),
  stateSizeLimit: text('Size limit of that `emptyDir`.', '256Mi', '1Gi'),
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
    properties: {
      name: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$' },
      ...properties,
      config: { $ref: '#/definitions/settings' },
    },
    required: ['name'],
    additionalProperties: false,
  };
}

const labelSelector = 'as in a MutatingWebhookConfiguration';

export const partSections: readonly Section[] = [
  {
    title: 'Webhook configuration',
    values: valuesOf('', {
      failurePolicy: oneOf('Ignore', 'Fail')(
        'What happens to pods and DaemonSets while the webhook does not respond: admitted unchanged (`Ignore`) or refused (`Fail`).',
        'Ignore',
        'Fail',
      ),
      timeoutSeconds: shaped(
        { type: 'integer', minimum: 1, maximum: 30 },
        { help: 'Time limit of the API server for a webhook call, in seconds.', default: 2, example: 5 },
      ),
      reinvocationPolicy: oneOf('IfNeeded', 'Never')(
        'Whether the API server calls the webhook again after another webhook changed the pod, for example to add a sidecar.',
        'IfNeeded',
        'Never',
      ),
      namespaceSelector: object(
        `Selects namespaces, ${labelSelector}. The release’s own and \`excludedNamespaces\` are always excluded.`,
        {},
        { matchLabels: { team: 'shop' } },
      ),
      objectSelector: object(
        `Selects pods and workloads, ${labelSelector}. The label \`arch.example/placement: disabled\` always excludes.`,
        {},
        { matchLabels: { tier: 'web' } },
      ),
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
      workloadWarnings: on(
        'Warns users if workloads, pods that name their node, or new images of running pods cannot run.',
      ),
    }),
  },
  {
    title: 'Webhook',
    values: valuesOf('webhook', {
      ...deploymentValues,
      ...podValues({ requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '384Mi' } }),
      ...runningValues,
      ...accountValues,
      port: port('Port of the webhook.', 8443, 9443),
      clientCa: text(
        'CA of the client certificate that the API server presents (PEM). Reviews without such a certificate are refused. Needs an ' +
          'AdmissionConfiguration of the API server. Empty: none.',
        '',
        '-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n',
      ),
      metricsPort: port('Port of metrics and health.', 8080, 9080),
      metricsTls: off(
        'Serves metrics and health over TLS, with the certificate of the webhook. Probes and monitors use it too.',
      ),
      hostNetwork: off(
        'Uses the network of the node, for API servers that cannot reach pods. Each replica then needs its own node, and an update ' +
          'stops a replica before it starts the next.',
      ),
      terminationGracePeriodSeconds: seconds(
        'Termination grace period. Must exceed `drainTime` by more than 5 s.',
        45,
        60,
      ),
      'autoscaling.enabled': off('Creates a HorizontalPodAutoscaler.'),
      'autoscaling.minReplicas': count('Minimum number of replicas.', 2, 3),
      'autoscaling.maxReplicas': count('Maximum number of replicas.', 6, 9),
      'autoscaling.targetCPUUtilizationPercentage': count('Target CPU utilization in percent.', 70, 50),
      'verticalAutoscaling.enabled': off('Creates a VerticalPodAutoscaler.'),
      'verticalAutoscaling.updateMode': text('Update mode of the VerticalPodAutoscaler.', 'Auto', 'Off'),
    }),
  },
  {
    title: 'Controller',
    values: valuesOf('controller', {
      enabled: on(
        'Runs the controller. Without it no pod is gated, certificates must be `external`, and you write the webhook configuration.',
      ),
      ...deploymentValues,
      ...podValues({ requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } }),
      ...runningValues,
      ...accountValues,
      metricsPort: port('Port of metrics and health.', 8080, 9080),
      factsPort: port(
        'Port for `explain` and `report` on other machines. They reach it through the API server.',
        8443,
        9443,
      ),
      terminationGracePeriodSeconds: seconds('Termination grace period.', 30, 60),
    }),
  },
  {
    title: 'Agent',
    values: [
      ...valuesOf('agent', {
        enabled: on('Runs the agents. Without them the webhook inspects images itself.'),
        ...poolValues,
        metricsTls: off(
          'Serves metrics and health over TLS, with the certificate of the agent API. Probes and monitors use it too.',
        ),
        ...accountValues,
        'updateStrategy.maxUnavailable': countOrPercent(
          'Maximum number of nodes without an agent during an update.',
          '10%',
          1,
        ),
        terminationGracePeriodSeconds: seconds('Termination grace period.', 30, 60),
        serviceAccountTokenAudiences: texts(
          'Audiences for which agents may request service account tokens (`serviceAccountTokens`).',
          [],
          ['registry.example.com'],
        ),
        pools: shaped(
          { type: 'array', items: poolSchema() as never },
          {
            help:
              'One DaemonSet for each pool of nodes instead of one for all nodes. Each has a `name`, any of the values above, and its own ' +
              'settings in `config`. Node selectors or affinities of pools must not overlap.',
            default: [],
            example: [
              {
                name: 'gpu',
                nodeSelector: { pool: 'gpu' },
                config: { proxies: ['docker.io=mirror.example.com'] },
              },
            ],
          },
        ),
      }),
    ],
  },
  {
    title: 'Jobs: report, uninstall, checks',
    values: [
      ...valuesOf('report', {
        enabled: off('Runs `archwright report --publish` on a schedule. Needs the controller.'),
        schedule: text('Schedule of the CronJob.', '17 4 * * *', '0 6 * * 1'),
        architecture: shaped(architecture.schema, {
          help: 'Target architecture.',
          default: 'arm64',
          example: 's390x',
        }),
        prices: text(
          'Prices of node types: the text of a `prices.toml`, for example by `--set-file`.',
          '',
          '[[node]]\ninstance-type = "m7g.large"\non-demand = 0.0978\n',
        ),
        newerTags: off(
          'Looks for newer tags, in public repositories only because the Job reads no pull secrets. Needs egress to registries.',
        ),
        // 20,000 pods of 1,500 workloads take about 300 MiB.
        resources: object(
          'Resources of the container.',
          { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
          { limits: { memory: '1Gi' } },
        ),
      }),
      ...valuesOf('clean', {
        enabled: on(
          'Runs `archwright clean`, which removes gates and taints, before the release is uninstalled.',
        ),
        extraArgs: texts('Additional flags, such as `--restart-pods`.', [], ['--restart-pods']),
        activeDeadlineSeconds: seconds('Time limit of the Job, in seconds.', 240, 600),
      }),
      ...valuesOf('startupCheck', {
        enabled: on(
          'Before each install and upgrade, runs a Job that fails if the image cannot be pulled. After it, runs a Job that waits until the API server calls the webhook, every replica has the new configuration, and agents answer.',
        ),
        timeout: shaped(duration(0, 1).schema, {
          help: 'Time limit of the second Job.',
          default: '4m',
          example: '1m',
        }),
        imagePullSeconds: count(
          'Time for a node to pull the image, in seconds. 0: without the first Job, which needs the pull secrets and the namespace before the install.',
          50,
          120,
        ),
        namespace: text(
          'Namespace of the pod that the second Job creates in a dry run. The webhook must serve it.',
          'default',
          'shop',
        ),
      }),
      ...valuesOf('jobs', {
        ...podValues({ requests: { cpu: '20m', memory: '96Mi' }, limits: { memory: '256Mi' } }),
        tolerations: objects(
          'Additional tolerations of the Jobs. Taints of the image’s architectures are always tolerated.',
          [],
          [{ key: 'dedicated', operator: 'Exists' }],
        ),
      }),
    ],
  },
];
