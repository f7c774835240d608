import t from 'tap';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { defaultConfiguration, type Configuration } from '../../../src/policy/configuration/configuration.ts';
import { createPolicies, type PolicySubject } from '../../../src/policy/effective/policies.ts';
import { collectResources } from '../../../src/policy/resources/collection.ts';
import { followLogLevel, overlaid } from '../../../src/policy/resources/overlay.ts';
import { seriesOf } from '../../support/captured.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { clusterConfig, podConfig, rollout } from '../resources/objects.ts';
import { createSource } from '../resources/source.ts';
import { like } from '../../support/like.ts';

const shop: PolicySubject = {
  namespace: 'shop',
  namespaceLabels: { 'kubernetes.io/metadata.name': 'shop', team: 'a' },
  labels: { app: 'web', tier: 'front' },
};

function setup(
  cluster: KubeObject[] = [],
  pods: KubeObject[] = [],
  values: Partial<Configuration> = {},
  rolling: KubeObject[] = [],
) {
  const world: { configuration: Configuration; leads: boolean | undefined } = {
    configuration: { ...defaultConfiguration(), ...values },
    leads: true,
  };
  const clusterConfigs = createSource(...cluster);
  const podConfigs = createSource(...pods);
  const rollouts = createSource(...rolling);
  const metrics = createMetrics();
  const policies = createPolicies({
    configuration: () => world.configuration,
    controllerLeads: () => world.leads,
    resources: collectResources({ clusterConfigs, podConfigs, rollouts, metrics }),
  });
  const of = (more: Partial<PolicySubject> = {}) => policies.policyOf({ ...shop, ...more });
  return { world, clusterConfigs, podConfigs, rollouts, metrics, of };
}

/** A `PodPlacementConfig` with its name as fallback, so that tests recognize it. */
function rule(name: string, spec: object, namespace = 'shop'): KubeObject {
  return podConfig({ fallbackArchitecture: name, ...spec }, name, namespace);
}

const front = { labelSelector: { matchLabels: { tier: 'front' } } };
const web = { labelSelector: { matchLabels: { app: 'web' } } };

t.test('without custom resources all pods share one policy until something changes', async (t) => {
  const { world, of } = setup();
  const policy = of();
  t.equal(policy.onUnknownImage, 'gate');
  t.equal(of(), policy);
  t.equal(of({ namespace: 'other', namespaceLabels: {}, labels: undefined }), policy);
  world.leads = false;
  t.equal(of().onUnknownImage, 'allow');
  world.leads = true;
  t.equal(of().onUnknownImage, 'gate');
  world.configuration = { ...world.configuration, fallbackArchitecture: 'arm64' };
  t.equal(of().fallbackArchitecture, 'arm64');
  t.equal(of(), of());
});

t.test('if it is not known whether a controller leads, only an explicit gate is honored', async (t) => {
  const { world, of } = setup();
  world.leads = undefined;
  t.equal(of().onUnknownImage, 'allow');
  world.configuration = { ...world.configuration, onUnknownImage: 'gate' };
  t.equal(of().onUnknownImage, 'gate');
});

t.test('the ClusterPodPlacementConfig named cluster applies while it is valid', async (t) => {
  const { clusterConfigs, of } = setup([clusterConfig({ fallbackArchitecture: 's390x' })]);
  t.equal(of().fallbackArchitecture, 's390x');
  clusterConfigs.put(clusterConfig({ fallbackArchitecture: 'arm64', preferredArchitecture: 'arm64' }));
  like(t, of(), {
    fallbackArchitecture: 'arm64',
    preferences: [{ origin: 'ClusterPodPlacementConfig cluster' }],
  });
  clusterConfigs.put(clusterConfig({ fallbackArchitecture: 'amd64' }, 'default'));
  t.equal(of().fallbackArchitecture, 'arm64', 'another name is ignored');
  clusterConfigs.remove('default');
  t.equal(of().fallbackArchitecture, 'arm64');
  clusterConfigs.put(clusterConfig({ fallbackArchitecture: 'arm64', logVerbosity: 'Loud' }));
  t.equal(of().fallbackArchitecture, undefined, 'an invalid object is ignored as a whole');
  clusterConfigs.remove('cluster');
  t.strictSame(of().preferences, []);
});

t.test('namespaces that the selector does not match are excluded', async (t) => {
  const namespaceSelector = { matchExpressions: [{ key: 'team', operator: 'In', values: ['a'] }] };
  const { clusterConfigs, of } = setup([clusterConfig({ namespaceSelector })], [], {
    namespace: 'archwright',
  });
  const usual = ['kube-*', 'openshift-*', 'archwright'];
  t.strictSame(of().excludedNamespaces, usual);
  const other = { namespace: 'other', namespaceLabels: { 'kubernetes.io/metadata.name': 'other' } };
  t.strictSame(of(other).excludedNamespaces, ['*'], 'all');
  t.equal(of(other), of(other), 'its patterns are compiled once');
  t.strictSame(of().excludedNamespaces, usual, 'a matching namespace');
  const { excludedNamespaces } = of({ namespace: 'new', namespaceLabels: {} });
  t.strictSame(excludedNamespaces, usual, 'a namespace with unknown labels is not excluded');
  t.strictSame(of({ ...other, namespaceLabels: { team: 'a' } }).excludedNamespaces, usual);
  clusterConfigs.put(clusterConfig({}));
  t.strictSame(of(other).excludedNamespaces, usual);
});

t.test('objects of a namespace apply by selector and priority', async (t) => {
  const { of } = setup(
    [clusterConfig({ fallbackArchitecture: 'cluster' })],
    [
      rule('front', { ...front, priority: 1, onNoCommonArchitecture: 'pend' }),
      rule('web', { ...web, priority: 2 }),
      rule('elsewhere', { priority: 255 }, 'other'),
    ],
  );
  const cases: [labels: Record<string, string> | undefined, fallback: string, noCommon: string][] = [
    [{ app: 'web', tier: 'front' }, 'web', 'pend'],
    [{ app: 'web' }, 'web', 'deny'],
    [{ tier: 'front' }, 'front', 'pend'],
    [{ app: 'api' }, 'cluster', 'deny'],
    [undefined, 'cluster', 'deny'],
  ];
  for (const [labels, fallback, noCommon] of cases) {
    const policy = of({ labels });
    t.equal(policy.fallbackArchitecture, fallback, JSON.stringify(labels));
    t.equal(policy.onNoCommonArchitecture, noCommon);
    t.equal(of({ labels: { ...labels, more: 'x' } }), policy, 'one policy for the same objects');
  }
  t.equal(of({ namespace: 'other' }).fallbackArchitecture, 'elsewhere');
  t.equal(of({ namespace: 'third' }).fallbackArchitecture, 'cluster');
});

t.test('changes apply at once in their namespace', async (t) => {
  const { world, podConfigs, of } = setup([], [rule('first', web), rule('elsewhere', web, 'other')]);
  t.equal(of().fallbackArchitecture, 'first');
  podConfigs.put(rule('first', { ...web, onNoCommonArchitecture: 'pend' }));
  t.equal(of().onNoCommonArchitecture, 'pend');
  podConfigs.put(rule('second', { priority: 9 }));
  t.equal(of().fallbackArchitecture, 'second');
  podConfigs.put(rule('second', { priority: 256 }));
  t.equal(of().fallbackArchitecture, 'first', 'an invalid object is ignored');
  podConfigs.put(rule('second', { labelSelector: { matchLabels: { app: 'api' } }, priority: 9 }));
  t.equal(of().fallbackArchitecture, 'first');
  t.equal(of({ labels: { app: 'api' } }).fallbackArchitecture, 'second');
  podConfigs.remove('first', 'shop');
  t.equal(of().fallbackArchitecture, undefined);
  podConfigs.remove('second', 'shop');
  t.equal(of({ labels: { app: 'api' } }).fallbackArchitecture, undefined);
  world.configuration = { ...world.configuration, schedulableArchitectures: ['amd64'] };
  t.equal(of({ namespace: 'other' }).fallbackArchitecture, undefined, 'it is no longer schedulable');
});

t.test('cached policies are bounded for any number of label sets', async (t) => {
  const rules = Array.from({ length: 12 }, (_, index) => {
    const labelSelector = { matchLabels: { [`l${index}`]: 'x' } };
    return rule(`f${index}`, { priority: index, labelSelector });
  });
  const { of } = setup([], rules);
  let same = 0;
  for (let bits = 1; bits < 4096; bits++) {
    const labels: Record<string, string> = {};
    for (let index = 0; index < 12; index++) if ((bits >> index) & 1) labels[`l${index}`] = 'x';
    const policy = of({ labels });
    if (policy.fallbackArchitecture !== `f${31 - Math.clz32(bits)}`) t.fail(`${bits}`);
    if (of({ labels }) === policy) same++;
    if (policy.excludedNamespaces !== of().excludedNamespaces) t.fail('the globs are compiled again');
  }
  t.ok(same > 0 && same <= 2048, `${same} are cached`);
});

t.test('used and invalid objects are counted', async (t) => {
  const { metrics, podConfigs, clusterConfigs } = setup(
    [clusterConfig({}), clusterConfig({}, 'default')],
    [rule('a', {}), rule('b', { priority: -1 }), rule('c', {}, 'other')],
  );
  const read = (kind: string, state: string) =>
    seriesOf(metrics, `archwright_custom_resources{kind="${kind}",state="${state}"}`);
  t.equal(await read('ClusterPodPlacementConfig', 'used'), 1);
  t.equal(await read('ClusterPodPlacementConfig', 'invalid'), 1);
  t.equal(await read('PodPlacementConfig', 'used'), 2);
  t.equal(await read('PodPlacementConfig', 'invalid'), 1);
  podConfigs.remove('b', 'shop');
  clusterConfigs.remove('cluster');
  t.equal(await read('PodPlacementConfig', 'invalid'), 0);
  t.equal(await read('ClusterPodPlacementConfig', 'used'), 0);
});

t.test('the oldest active rollout of a pod applies', async (t) => {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'r', controller: true };
  const labels = { app: 'web', 'pod-template-hash': '1' };
  const rolled = (name: string, spec: object, newPods?: string, second = 0): KubeObject => {
    const object = rollout({ architecture: 'arm64', ...spec }, name);
    const creationTimestamp = new Date(second * 1000).toISOString();
    return {
      ...object,
      metadata: { ...object.metadata, creationTimestamp },
      ...(newPods && { status: { newPods } }),
    };
  };
  const { world, rollouts, of } = setup([], [], {}, [rolled('new', {}, 'Choose', 9)]);
  const ofWeb = () => of({ labels, owners: [owner] }).rollout;
  t.strictSame(ofWeb(), { name: 'new', architecture: 'arm64', newPods: 'Choose' });
  t.equal(of({ labels }).rollout, undefined, 'a pod without an owner');
  t.equal(of({ labels, owners: [{ ...owner, kind: 'Job' }] }).rollout, undefined);
  t.equal(of({ namespace: 'other', labels, owners: [owner] }).rollout, undefined);
  world.leads = false;
  t.equal(ofWeb()?.newPods, 'Other', 'without a leader');
  world.leads = true;
  world.configuration = { ...world.configuration, rollouts: false };
  t.equal(ofWeb(), undefined, 'rollouts are switched off');
  world.configuration = { ...world.configuration, rollouts: true };
  rollouts.put(rolled('idle', {}, undefined, 1));
  rollouts.put(rolled('others', { names: ['api'] }, 'Target', 2));
  rollouts.put(rolled('wrong', { steps: [] }, 'Target', 3));
  t.equal(ofWeb()?.name, 'new');
  rollouts.put(rolled('old', { names: ['web'] }, 'Target', 4));
  t.strictSame(ofWeb(), { name: 'old', architecture: 'arm64', newPods: 'Target' });
  for (const name of ['new', 'idle', 'others', 'wrong', 'old']) rollouts.remove(name, 'shop');
  t.equal(of({ labels, owners: [owner] }), of(), 'the same policy as before');
});

t.test('the log level follows the custom resource, else the configuration', async (t) => {
  const clusterConfigs = createSource();
  let current: Configuration = { ...defaultConfiguration(), logLevel: 'warn' };
  const listeners: ((configuration: Configuration) => void)[] = [];
  const configuration = {
    current: () => current,
    onChange: (listener: (configuration: Configuration) => void): void => {
      listeners.push(listener);
    },
  };
  const log = { level: 'info' };
  followLogLevel({ log, configuration, resources: collectResources({ clusterConfigs }) });
  t.equal(log.level, 'warn', 'from the configuration');
  const cases = { Normal: 'info', Debug: 'debug', Trace: 'trace', TraceAll: 'trace' };
  for (const [logVerbosity, level] of Object.entries(cases)) {
    clusterConfigs.put(clusterConfig({ logVerbosity }));
    t.equal(log.level, level, logVerbosity);
  }
  current = { ...current, logLevel: 'error' };
  for (const listener of listeners) listener(current);
  t.equal(log.level, 'trace', 'a changed configuration does not override it');
  clusterConfigs.put(clusterConfig({}));
  t.equal(log.level, 'error', 'without logVerbosity the configuration applies');
  clusterConfigs.put(clusterConfig({ logVerbosity: 'Debug' }));
  clusterConfigs.remove('cluster');
  t.equal(log.level, 'error');
});

t.test(
  'the custom resource overrides the configuration; unchanged results are the same object',
  async (t) => {
    const clusterConfigs = createSource();
    let from = defaultConfiguration();
    const configuration = overlaid(() => from, collectResources({ clusterConfigs }));
    t.equal(configuration(), from);
    clusterConfigs.put(clusterConfig({ plugins: { execFormatErrorMonitor: { enabled: false } } }));
    const over = configuration();
    t.strictSame(over, { ...from, execFormatErrorMonitor: false });
    t.equal(configuration(), over);
    from = { ...from, evictionsPerMinute: 1 };
    t.strictSame(configuration(), { ...from, execFormatErrorMonitor: false });
    from = { ...from, execFormatErrorMonitor: false };
    clusterConfigs.put(
      clusterConfig({ logVerbosity: 'Debug', plugins: { execFormatErrorMonitor: { enabled: true } } }),
    );
    t.strictSame(configuration(), { ...from, execFormatErrorMonitor: true, logLevel: 'debug' });
    clusterConfigs.put(clusterConfig({ fallbackArchitecture: 'arm64' }));
    t.equal(configuration(), from, 'placement fields are not overlaid');
  },
);
