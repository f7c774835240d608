/** The chart's own pods: their nodes, rights and names. */
import t from 'tap';
import type { KubeObject, NodeSelectorTerm } from '../../../src/kube/api/objects.ts';
import { render } from './helm.ts';
import { objectsOf as objectsIn, podsIn, type PodSpec, type PodTemplate } from './rendered.ts';
import { like } from '../../support/like.ts';

interface Rendered extends KubeObject {
  readonly kind: string;
  readonly metadata: NonNullable<KubeObject['metadata']> & { readonly name: string };
  readonly rules?: readonly {
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  }[];
  readonly spec: { readonly template?: PodTemplate; readonly strategy?: { readonly rollingUpdate: object } };
}

function objectsOf(values: object, namespace = 'archwright', release = 'archwright'): readonly Rendered[] {
  const text = render('helm4', values, ['--namespace', namespace], release);
  return objectsIn(text) as readonly KubeObject[] as readonly Rendered[];
}

/** The specs of objects of a kind, by name. */
const specsOf = (kind: RegExp, values: object): Readonly<Record<string, object>> =>
  Object.fromEntries(
    objectsOf(values).flatMap((each) => (kind.test(each.kind) ? [[each.metadata.name, each.spec]] : [])),
  );

/** Everything of the chart that runs, hooks and the report too, by name. */
function podsOf(values: object): ReadonlyMap<string, PodSpec> {
  const pods = podsIn(objectsIn(render('helm4', { report: { enabled: true }, ...values })));
  return new Map([...pods].map(([name, { spec }]) => [name, spec]));
}

const everyPod = 'agent clean controller image-pull report startup-check test use-no-hooks webhook'
  .split(' ')
  .map((part) => `archwright-${part}`);

const requiredOf = (pod: PodSpec | undefined): readonly NodeSelectorTerm[] =>
  pod?.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms ?? [];

const linux = { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] };
const ours = { key: 'kubernetes.io/arch', operator: 'In', values: ['amd64', 'arm64'] };

t.test("archwright's pods go only to nodes that can run its image", async (t) => {
  const pods = podsOf({});
  t.strictSame([...pods.keys()].sort(), everyPod);
  for (const [name, pod] of pods) t.strictSame(requiredOf(pod), [{ matchExpressions: [linux, ours] }], name);

  const [pool, zone] = ['pool', 'zone'].map((key) => ({ key, operator: 'Exists' }));
  const affinity = {
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [] },
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [],
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [pool] },
          { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['one'] }] },
        ],
      },
    },
  };
  const own = podsOf({
    image: { architectures: ['s390x'] },
    webhook: { affinity },
    agent: {
      pools: [
        { name: 'a', affinity: { nodeAffinity: affinity.nodeAffinity } },
        { name: 'b', nodeSelector: { pool: 'b' } },
      ],
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [zone] } },
      },
    },
  });
  const mainframe = { ...ours, values: ['s390x'] };
  const both = [
    { matchExpressions: [pool, linux, mainframe] },
    {
      matchFields: [{ key: 'metadata.name', operator: 'In', values: ['one'] }],
      matchExpressions: [linux, mainframe],
    },
  ];
  // Terms are alternatives, so each gets the expressions.
  t.strictSame(own.get('archwright-webhook')?.affinity, {
    podAntiAffinity: affinity.podAntiAffinity,
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [],
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: both },
    },
  });
  t.strictSame(requiredOf(own.get('archwright-agent-a')), both);
  t.strictSame(requiredOf(own.get('archwright-controller')), [{ matchExpressions: [linux, mainframe] }]);

  for (const [name, pod] of podsOf({ image: { architectures: [] } }))
    t.strictSame(requiredOf(pod), [{ matchExpressions: [linux] }], name);
});

t.test('values for all pods apply to hooks too', async (t) => {
  const pods = podsOf({
    image: { digest: `sha256:${'1'.repeat(64)}` },
    imagePullSecrets: [{ name: 'login' }],
    global: {
      imageRegistry: 'mirror.example.com',
      imagePullSecrets: [{ name: 'global-login' }],
      tolerations: [{ key: 'CriticalAddonsOnly', operator: 'Exists' }],
    },
  });
  t.strictSame([...pods.keys()].sort(), everyPod);
  for (const [name, { containers, imagePullSecrets, tolerations }] of pods) {
    const images = containers.map(({ image }) => image);
    t.strictSame(images, [`mirror.example.com/archwright/archwright@sha256:${'1'.repeat(64)}`], name);
    t.strictSame(imagePullSecrets, [{ name: 'login' }, { name: 'global-login' }], name);
    const keys = tolerations.map(({ key }) => key);
    if (name === 'archwright-agent') t.strictSame(keys, [undefined], 'every taint');
    else t.strictSame(keys, ['kubernetes.io/arch', 'arch.example/architecture', 'CriticalAddonsOnly'], name);
  }
});

t.test('webhook and controller may read the certificate that they show agents', async (t) => {
  for (const certificates of ['builtin', 'serviceCa', 'certManager', 'external']) {
    const objects = objectsOf({ certificates });
    for (const part of ['webhook', 'controller']) {
      const roles = objects.filter(
        ({ kind, metadata }) => kind === 'Role' && metadata.name === `archwright-${part}`,
      );
      const rules = roles.flatMap((role) => role.rules ?? []);
      const own = rules.find(({ resourceNames }) => resourceNames?.includes(`archwright-${part}-client-tls`));
      t.ok(own?.verbs.includes('list') && own.verbs.includes('watch'), `${part} ${certificates}`);
    }
  }
});

t.test(
  'before an install and an uninstall, a pod pulls the image for less than a minute, without the priority class of the chart',
  async (t) => {
    const jobs = ['image-pull', 'use-no-hooks'].map((part) => `archwright-${part}`);
    const podOf = (name: string, values: object = {}): PodSpec | undefined => podsOf(values).get(name);
    for (const name of jobs) {
      like(t, podOf(name), { activeDeadlineSeconds: 50, automountServiceAccountToken: false }, name);
      t.equal(podOf(name)?.priorityClassName, undefined, 'the class of the chart may not be installed');
      t.equal(podOf(name, { jobs: { priorityClassName: 'own' } })?.priorityClassName, 'own', name);
      like(t, podOf(name, { startupCheck: { imagePullSeconds: 120 } }), { activeDeadlineSeconds: 120 }, name);
    }
    const [before = '', after = ''] = jobs;
    t.equal(podOf(before)?.volumes, undefined, 'the ConfigMap is not installed yet');
    like(
      t,
      podOf(after)?.volumes,
      [{ configMap: { name: 'archwright', optional: true } }],
      'or it says that there is none',
    );
    for (const startupCheck of [{ imagePullSeconds: 0 }, { enabled: false }]) {
      t.equal(podOf(before, { startupCheck }), undefined);
      like(t, podOf(after, { startupCheck }), { activeDeadlineSeconds: 50 });
    }
    t.equal(podOf(after, { clean: { enabled: false } }), undefined);
  },
);

t.test('an update with hostNetwork does not wait for a free node', async (t) => {
  const strategyOf = (values: object): object | undefined =>
    objectsOf(values).find(
      ({ metadata, kind }) => kind === 'Deployment' && metadata.name === 'archwright-webhook',
    )?.spec.strategy?.rollingUpdate;
  t.strictSame(strategyOf({}), { maxUnavailable: 0, maxSurge: 1 });
  t.strictSame(strategyOf({ webhook: { hostNetwork: true } }), { maxUnavailable: 1, maxSurge: 0 });
});

t.test('pod labels apply to their component only, and cannot replace selector labels', async (t) => {
  const objects = objectsOf({
    webhook: { podLabels: { team: 'edge', 'app.kubernetes.io/component': 'mine' } },
    agent: { podLabels: { team: 'nodes' }, pools: [{ name: 'a' }, { name: 'b', podLabels: { team: 'b' } }] },
  });
  const labels = Object.fromEntries(
    objects.map(({ metadata, spec }) => [metadata.name, spec?.template?.metadata?.labels ?? {}]),
  );
  const teams = Object.entries(labels).filter(([, { team }]) => team !== undefined);
  t.strictSame(Object.fromEntries(teams.map(([name, { team }]) => [name, team])), {
    'archwright-webhook': 'edge',
    'archwright-agent-a': 'nodes',
    'archwright-agent-b': 'b',
  });
  t.equal(labels['archwright-webhook']?.['app.kubernetes.io/component'], 'webhook');
});

t.test('agents have a small semi-space unless NODE_OPTIONS is set', async (t) => {
  const optionsOf = (extraEnv: readonly object[]): readonly unknown[] => {
    const agent = podsOf({ agent: { extraEnv } }).get('archwright-agent')?.containers[0];
    return (agent?.env ?? []).filter(({ name }) => name === 'NODE_OPTIONS');
  };
  const preset = { name: 'NODE_OPTIONS', value: '--max-semi-space-size=1' };
  t.strictSame(optionsOf([]), [preset]);
  t.strictSame(optionsOf([{ name: 'OTHER', value: 'x' }]), [preset]);
  const own = { name: 'NODE_OPTIONS', value: '--max-semi-space-size=4' };
  t.strictSame(optionsOf([own]), [own], 'once, because names are unique');
  const pods = podsOf({});
  for (const part of ['archwright-webhook', 'archwright-controller'])
    t.notOk(
      pods.get(part)?.containers[0]?.env?.some(({ name }) => name === 'NODE_OPTIONS'),
      part,
    );
});

t.test('webhook and controller know whether agents of any pool request service account tokens', async (t) => {
  const valueOf = (agent: object, part: string): string | undefined =>
    podsOf({ agent: { serviceAccountTokenAudiences: ['registry.example.com'], ...agent } })
      .get(`archwright-${part}`)
      ?.containers[0]?.env?.find(({ name }) => name === 'ARCHWRIGHT_SERVICE_ACCOUNT_TOKENS')?.value;
  const pools = [{ name: 'gpu', config: { serviceAccountTokens: true } }, { name: 'others' }];
  for (const part of ['webhook', 'controller']) {
    t.equal(valueOf({ pools }, part), 'true', part);
    t.equal(valueOf({}, part), undefined, part);
  }
});

t.test('namespaceOverride applies to all namespaced objects', async (t) => {
  const [usual, moved] = [objectsOf({}), objectsOf({ namespaceOverride: 'placement' })];
  const home = (objects: readonly Rendered[]): string[] =>
    objects.map(
      ({ kind, metadata: { namespace } }) => `${kind} ${namespace?.replace('placement', 'archwright')}`,
    );
  t.strictSame(home(moved).sort(), home(usual).sort());
  t.notOk(moved.some(({ metadata }) => metadata.namespace === 'archwright'));
  t.notMatch(JSON.stringify(moved), /system:serviceaccount:archwright:|archwright-webhook\.archwright\.svc/);
});

t.test('the longest names are valid', async (t) => {
  // Helm takes 53 characters for a release, Kubernetes 63 for a namespace.
  const pools = [{ name: 'p'.repeat(32), config: { proxies: [] } }];
  const objects = objectsOf({ agent: { pools } }, 'n'.repeat(63), 'r'.repeat(53));
  t.ok(objects.length > 20);
  /** The name becomes a label of their pods, or a part of a host name. */
  const short = new Set(['Job', 'Pod', 'Service']);
  for (const { kind, metadata, spec } of objects) {
    t.match(metadata.name, /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/, kind);
    t.ok(metadata.name.length <= (short.has(kind) ? 63 : 253), `${kind} ${metadata.name}`);
    const labels = { ...metadata.labels, ...spec?.template?.metadata?.labels };
    for (const [key, value] of Object.entries(labels))
      t.match(value, /^([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$/, `${kind} ${key}`);
  }
});

t.test('metrics of agents do not listen on all addresses of the node', async (t) => {
  const listensOn = (values: object) => {
    const [agent] = podsOf(values).get('archwright-agent')?.containers ?? [];
    const value = agent?.env?.find(({ name }) => name === 'ARCHWRIGHT_METRICS_LISTEN')?.value;
    return [value, agent?.readinessProbe?.httpGet.host, agent?.readinessProbe?.httpGet.scheme];
  };
  const node = ['[$(POD_IP)]:9444', undefined, undefined];
  t.strictSame(listensOn({}), ['127.0.0.1:9444', '127.0.0.1', undefined]);
  t.strictSame(listensOn({ monitoring: { mode: 'PodMonitor' } }), node);
  t.strictSame(listensOn({ monitoring: { scrapeAnnotations: true } }), node);
  t.strictSame(listensOn({ agent: { metricsAddress: 'pod' } }), node);
  t.strictSame(listensOn({ agent: { metricsTls: true } }), ['127.0.0.1:9444', '127.0.0.1', 'HTTPS']);
  t.strictSame(
    listensOn({ agent: { hostNetwork: false } }),
    [':9444', undefined, undefined],
    'the pod has its own addresses',
  );
  t.strictSame(listensOn({ agent: { metricsAddress: 'all' } }), [':9444', undefined, undefined]);
});

t.test('monitors use TLS if the metrics do', async (t) => {
  t.strictSame(Object.keys(specsOf(/^PodMonitor$/, { monitoring: { mode: 'PodMonitor' } })), ['archwright']);
  const parts = { agent: { metricsTls: true }, webhook: { metricsTls: true } };
  const values = { monitoring: { mode: 'ServiceMonitor' }, ...parts };
  const endpointOf = (serverName: string, name: string) => [
    { port: 'metrics', scheme: 'https', tlsConfig: { serverName, ca: { secret: { name, key: 'ca.crt' } } } },
  ];
  const services = specsOf(/^ServiceMonitor$/, values);
  const webhook = endpointOf('archwright-webhook.archwright.svc', 'archwright-webhook-tls');
  like(t, services, {
    'archwright-webhook': { endpoints: webhook },
    archwright: { endpoints: [{ port: 'metrics' }] },
  });
  t.equal(Object.keys(services).length, 2);
  const agent = endpointOf('archwright-agent', 'archwright-agent-tls');
  like(t, specsOf(/^PodMonitor$/, values), { 'archwright-agent': { podMetricsEndpoints: agent } });
});

t.test('all pods outside the host network have a network policy', async (t) => {
  const policiesOf = (values: object) => specsOf(/^NetworkPolicy$/, values);
  const egress = [{ ports: [{ port: 443 }] }];
  const metricsFrom = [{ podSelector: {} }];
  const startupCheck = {
    podSelector: {
      matchLabels: {
        'app.kubernetes.io/name': 'archwright',
        'app.kubernetes.io/instance': 'archwright',
        'app.kubernetes.io/component': 'startup-check',
      },
    },
  };
  const from = [...metricsFrom, startupCheck];
  const metrics = { ports: [{ port: 'metrics', protocol: 'TCP' }], from };
  const some = policiesOf({ networkPolicy: { egress, metricsFrom } });
  t.strictSame(Object.keys(some).sort(), ['archwright-controller', 'archwright-webhook']);
  like(t, some['archwright-controller'], {
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ ports: [{ port: 'facts', protocol: 'TCP' }] }, metrics],
    egress,
  });
  like(t, some['archwright-webhook'], {
    ingress: [{ ports: [{ port: 'webhook', protocol: 'TCP' }] }, metrics],
    egress,
  });
  const all = policiesOf({
    networkPolicy: { egress, metricsFrom },
    agent: { pools: [{ name: 'a' }, { name: 'b', hostNetwork: false }] },
  });
  like(t, all['archwright-agent'], {
    policyTypes: ['Ingress'],
    podSelector: { matchLabels: { 'app.kubernetes.io/component': 'agent' } },
    ingress: [{ ports: [{ port: 'api', protocol: 'TCP' }] }, metrics],
  });
  t.notOk('egress' in (all['archwright-agent'] ?? {}), 'an agent may connect to any registry');
  const report = policiesOf({ networkPolicy: { egress }, report: { enabled: true } })['archwright-report'];
  like(t, report, { policyTypes: ['Ingress', 'Egress'], egress });
  t.notOk('ingress' in (report ?? {}), 'no connections to it');
  const off = { networkPolicy: { enabled: false }, report: { enabled: true }, agent: { hostNetwork: false } };
  t.strictSame(policiesOf(off), {});
  const webhookOnly = {
    certificates: 'external',
    controller: { enabled: false },
    agent: { enabled: false },
  };
  t.strictSame(Object.keys(policiesOf(webhookOnly)), ['archwright-webhook']);
});
