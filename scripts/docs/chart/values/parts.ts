/** Values of the running parts: webhook, controller, agent, and the Jobs of hooks. */
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

/** What every Pod template takes. */
function podValues(resources: { readonly requests: Record<string, string>; readonly limits: Record<string, string> }): Described {
  return {
    resources: object({ help: 'Resources of the container.', default: resources, example: { requests: { cpu: '1' } } }),
    nodeSelector: textMap({ help: 'Node selector.', default: {}, example: { pool: 'system' } }),
    affinity: object({
      help: 'Affinity, besides to nodes that can run the image.',
      default: {},
      example: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [] } },
    }),
    podLabels: textMap({ help: 'Labels of its pods.', default: {}, example: { 'azure.workload.identity/use': 'true' } }),
    podAnnotations: textMap({ help: 'Annotations of its pods.', default: {}, example: { 'sidecar.istio.io/inject': 'false' } }),
    priorityClassName: text({ help: 'Priority class; empty: that of the chart.', default: '', example: 'system-cluster-critical' }),
    podSecurityContext: object({
      help: 'Added to the security context of the pod; null takes a field away.',
      default: {},
      example: { fsGroup: 2000 },
    }),
    securityContext: object({
      help: 'Added to the security context of the container; null takes a field away.',
      default: {},
      example: { seLinuxOptions: { type: 'spc_t' } },
    }),
  };
}

/** What long-running parts take besides. */
const runningValues: Described = {
  extraArgs: texts({ help: 'Further flags of the program.', default: [], example: ['--log-level=debug'] }),
  extraEnv: objects({
    help: 'Further variables, such as `HTTPS_PROXY`.',
    default: [],
    example: [{ name: 'HTTPS_PROXY', value: 'http://proxy.example.com:3128' }],
  }),
  extraVolumes: objects({ help: 'Further volumes.', default: [], example: [{ name: 'extra', emptyDir: {} }] }),
  extraVolumeMounts: objects({
    help: 'Further volume mounts.',
    default: [],
    example: [{ name: 'extra', mountPath: '/extra' }],
  }),
};

const accountValues: Described = {
  'serviceAccount.create': flag({ help: 'Whether its service account is made.', default: true, example: false }),
  'serviceAccount.name': text({ help: 'Name of its service account; empty: made from that of the release.', default: '', example: 'mine' }),
  'serviceAccount.annotations': textMap({
    help: 'Annotations of its service account.',
    default: {},
    example: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/x' },
  }),
};

/** What the two Deployments take besides. */
const deploymentValues: Described = {
  replicas: shaped(
    { type: ['integer', 'null'], minimum: 0 },
    { help: 'How many; null leaves the field out, for somebody else who sets it.', default: 2, example: 3 },
  ),
  tolerations: objects({
    help: 'Tolerations, besides those for taints of architectures, which the image runs on.',
    default: [],
    example: [{ key: 'dedicated', operator: 'Exists' }],
  }),
  topologySpreadConstraints: shaped(
    { type: ['array', 'null'], items: { type: 'object' } },
    {
      help: 'How pods spread; not set: over zones and nodes where possible.',
      example: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
    },
  ),
  'podDisruptionBudget.enabled': flag({ help: 'Whether there is a PodDisruptionBudget.', default: true, example: false }),
  'podDisruptionBudget.maxUnavailable': countOrPercent({
    help: 'How many may be away at the same time.',
    default: 1,
    example: '50%',
  }),
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

const agentPod = podValues({ requests: { cpu: '20m', memory: '96Mi' }, limits: { memory: '256Mi' } });

/** What a pool of nodes may have of its own. */
const poolValues: Described = {
  tolerations: objects({
    help: 'Tolerations; by default every taint.',
    default: [{ operator: 'Exists' }],
    example: [{ key: 'dedicated', operator: 'Exists' }],
  }),
  ...agentPod,
  ...runningValues,
  hostNetwork: flag({
    help: 'Whether the agent uses the network of its node, as the kubelet does; metadata services of clouds often answer nobody else.',
    default: true,
    example: false,
  }),
  dnsPolicy: text({ help: 'DNS policy; `Default` is the DNS of the node, as the kubelet uses it.', default: 'Default', example: 'ClusterFirst' }),
  port: port({ help: 'Port of its API, on the address of the node.', default: 9443, example: 9553 }),
  metricsPort: port({ help: 'Port of its metrics and health, on the address of the node.', default: 9444, example: 9554 }),
  hostPaths: shaped(
    { type: ['array', 'null'], items: hostPath },
    {
      help:
        'Directories of the node that the agent sees, read-only, below `/host`. Not set: what the settings name (see Host paths below); ' +
        '`/` is all of the node.',
      example: ['/etc/containerd', '/etc/pki'],
    },
  ),
  extraHostPaths: shaped(
    { type: 'array', items: hostPath },
    { help: 'Directories of the node besides those.', default: [], example: ['/etc/pki'] },
  ),
  readKubeletEnvironment: flag({
    help: 'Whether plugins get the environment of the running kubelet; takes the capability `SYS_PTRACE`, `hostPID` and all of the host’s files.',
    default: false,
    example: true,
  }),
  stateHostPath: text({
    help: 'Directory of the node in which the agent keeps what it knows across restarts; empty: as long as the pod lives.',
    default: '',
    example: '/var/lib/archwright',
  }),
  stateSizeLimit: text({ help: 'Limit of that where it is kept as long as the pod lives.', default: '256Mi', example: '1Gi' }),
};

/** Schema of one entry of `agent.pools`, and the names of what it may hold. */
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
    title: 'What the API server sends to the webhook',
    values: valuesOf('', {
      failurePolicy: oneOf('Ignore', 'Fail')({
        help: 'What happens to pods and DaemonSets while the webhook does not answer: created as they are (`Ignore`) or refused (`Fail`).',
        default: 'Ignore',
        example: 'Fail',
      }),
      timeoutSeconds: shaped(
        { type: 'integer', minimum: 1, maximum: 30 },
        { help: 'How long the API server waits for the webhook.', default: 2, example: 5 },
      ),
      reinvocationPolicy: oneOf('IfNeeded', 'Never')({
        help: 'Whether the webhook is called again after another one changed the pod, such as one that adds a sidecar.',
        default: 'IfNeeded',
        example: 'Never',
      }),
      namespaceSelector: object({
        help: `Which namespaces, ${labelSelector}; the release’s own and \`excludedNamespaces\` are always left out.`,
        default: {},
        example: { matchLabels: { team: 'shop' } },
      }),
      objectSelector: object({
        help: `Which pods and workloads, ${labelSelector}; those with the label \`arch.example/placement: disabled\` are always left out.`,
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
          help: 'Further conditions in CEL that a pod must meet.',
          default: [],
          example: [{ name: 'not-batch', expression: "object.metadata.namespace != 'batch'" }],
        },
      ),
      workloadWarnings: flag({
        help: 'Whether Deployments and other workloads, and new images of running pods, are looked at too, for warnings to who applies them.',
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
      port: port({ help: 'Port that it listens on.', default: 8443, example: 9443 }),
      metricsPort: port({ help: 'Port of metrics and health.', default: 8080, example: 9080 }),
      hostNetwork: flag({
        help:
          'Whether it uses the network of its node, for API servers that cannot reach pods. Each replica then needs a node of its own, and ' +
          'updates take one away before the next comes.',
        default: false,
        example: true,
      }),
      terminationGracePeriodSeconds: seconds({ help: 'Time to end; longer than `drainTime` and 5 s.', default: 45, example: 60 }),
      'autoscaling.enabled': flag({ help: 'Whether a HorizontalPodAutoscaler sets the replicas.', default: false, example: true }),
      'autoscaling.minReplicas': count({ help: 'Its least.', default: 2, example: 3 }),
      'autoscaling.maxReplicas': count({ help: 'Its most.', default: 6, example: 9 }),
      'autoscaling.targetCPUUtilizationPercentage': count({ help: 'Its target.', default: 70, example: 50 }),
      'verticalAutoscaling.enabled': flag({ help: 'Whether there is a VerticalPodAutoscaler.', default: false, example: true }),
      'verticalAutoscaling.updateMode': text({ help: 'Its mode.', default: 'Auto', example: 'Off' }),
    }),
  },
  {
    title: 'Controller',
    values: valuesOf('controller', {
      enabled: flag({
        help: 'Whether it runs. Without it nothing is gated, certificates must be `external`, and the webhook configuration is written by the chart’s user.',
        default: true,
        example: false,
      }),
      ...deploymentValues,
      ...podValues({ requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } }),
      ...runningValues,
      ...accountValues,
      metricsPort: port({ help: 'Port of metrics and health.', default: 8080, example: 9080 }),
      terminationGracePeriodSeconds: seconds({ help: 'Time to end.', default: 30, example: 60 }),
    }),
  },
  {
    title: 'Agent',
    values: [
      ...valuesOf('agent', {
        enabled: flag({ help: 'Whether agents run; without them the webhook asks registries itself.', default: true, example: false }),
        ...poolValues,
        ...accountValues,
        'updateStrategy.maxUnavailable': countOrPercent({
          help: 'How many nodes may be without an agent during an update.',
          default: '10%',
          example: 1,
        }),
        terminationGracePeriodSeconds: seconds({ help: 'Time to end.', default: 30, example: 60 }),
        serviceAccountTokenAudiences: texts({
          help: 'Audiences for which agents may ask for tokens of service accounts, under `serviceAccountTokens`.',
          default: [],
          example: ['registry.example.com'],
        }),
        pools: shaped(
          { type: 'array', items: poolSchema() as never },
          {
            help:
              'One DaemonSet for each pool of nodes in place of one for all, with a `name`, any of the values above, and in `config` ' +
              'settings of its own. Their node selectors or affinities must not overlap.',
            default: [],
            example: [{ name: 'gpu', nodeSelector: { pool: 'gpu' }, config: { proxies: ['docker.io=mirror.example.com'] } }],
          },
        ),
      }),
    ],
  },
  {
    title: 'Jobs: leaving, checks',
    values: [
      ...valuesOf('clean', {
        enabled: flag({
          help: 'Whether `archwright clean` runs before the release is uninstalled: it takes away gates and taints.',
          default: true,
          example: false,
        }),
        extraArgs: texts({ help: 'Further flags, such as `--restart-pods`.', default: [], example: ['--restart-pods'] }),
        activeDeadlineSeconds: seconds({ help: 'Its time limit.', default: 240, example: 600 }),
      }),
      ...valuesOf('startupCheck', {
        enabled: flag({
          help: 'Whether a Job after each install and upgrade waits until the webhook answers through the API server.',
          default: true,
          example: false,
        }),
        timeout: text({ help: 'How long it waits.', default: '4m', example: '1m' }),
        namespace: text({
          help: 'Namespace of the pod that it asks the API server about, by a dry run; one that the webhook serves.',
          default: 'default',
          example: 'shop',
        }),
      }),
      ...valuesOf('jobs', {
        ...podValues({ requests: { cpu: '20m', memory: '96Mi' }, limits: { memory: '256Mi' } }),
        tolerations: objects({
          help: 'Tolerations of the Jobs, besides those for taints of architectures.',
          default: [],
          example: [{ key: 'dedicated', operator: 'Exists' }],
        }),
      }),
    ],
  },
];
