/**
 * A cluster with something to do for every feature of the leader: what people and kubelets do in it (`moves`),
 * what other controllers do (`live`), and what it must look like in the end (`picture`).
 */
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:https';
import type { Test } from 'tap';
import { createRequest } from '../../../daemon/certificate/signing-request.ts';
import { readAuthorities } from '../../../src/certificates/authorities.ts';
import { leafNames, readLeaf } from '../../../src/controller/features/certificates/leaves.ts';
import type { RolloutStatus } from '../../../src/controller/features/rollouts/status.ts';
import { readCaBundles, type WebhookConfiguration } from '../../../src/controller/state/webhooks-file.ts';
import type { ResourceStatus } from '../../../src/controller/write/conditions.ts';
import { agentSigner, agentUsages } from '../../../src/certificates/agent-names.ts';
import type { Fleet } from '../../../src/fleet/fleet.ts';
import { FactsCache } from '../../../src/images/cache/cache.ts';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import type { Pod, Taint } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import type { NodeReport } from '../../../src/nodes/node-report.ts';
import { uncheckedRecord } from '../../../src/placement/record/read.ts';
import { tolerates } from '../../../src/controller/pods/chosen-nodes.ts';
import { podConfig, rollout } from '../../policy/resources/objects.ts';
import { silentLog } from '../../support/captured.ts';
import { digestOf, facts, failureOf } from '../../support/facts.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { startKubeStore, type StoredObject } from '../../support/kube-store.ts';
import { listen } from '../../support/listen.ts';
import { onArch, termsOf } from '../../support/placement-input.ts';
import {
  controllerRef,
  dataAt,
  podPath,
  putNode,
  putPod,
  putReplicaSet,
  type PodOptions,
  readyIs,
} from '../objects.ts';
import { userOf } from '../features/agent-certificates/world.ts';

const own = 'archwright';
const gate = 'arch.example/scheduling-gate';
const rolloutPath = '/apis/arch.example/v1alpha1/namespaces/shop/architecturerollouts/roll';
const requestPath = (name: string): string => `${paths.certificateSigningRequests()}/${name}`;
const configPath = (name: string): string =>
  `/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs/${name}`;
const daemonPath = (name: string): string => `/apis/apps/v1/namespaces/shop/daemonsets/${name}`;
const pulled = (image: string, of = image): string => `registry.example/${image}@${digestOf(of)}`;

export type WalkCluster = Awaited<ReturnType<typeof createWalkCluster>>;

export async function createWalkCluster(t: Test) {
  const clock = createFakeClock();
  const store = await startKubeStore({ isPlain: true, now: clock.now });
  t.teardown(() => store.close());
  const platforms: Record<string, string> = { amd: 'amd64', arm: 'arm64', both: 'amd64 arm64', tag: 'amd64' };
  const reports = new Map<string, NodeReport>([['amd-1', { amd64Level: 3 }]]);
  const problem = { source: 'docker-config', origin: '/etc/creds', message: 'no such file' } as const;

  function factsOf(image: string): ImageFacts {
    const [name = ''] = image.split('/').at(-1)?.split(/[:@]/u) ?? [];
    const [, digest] = image.split('@');
    // The tag was pushed again: pods run what it named before.
    const isOld = digest !== undefined && digest === digestOf('tag, before');
    const known = isOld ? 'amd64 arm64' : platforms[name];
    if (known === undefined) return failureOf(image, 'not-found');
    const confirmedAt = new Date(clock.now()).toISOString();
    return facts(known, { image, digest: digest ?? digestOf(name), source: 'registry', confirmedAt });
  }
  const cache = new FactsCache({
    source: { lookup: ({ image }) => Promise.resolve(factsOf(image)) },
    clock,
    log: silentLog,
  });
  t.teardown(() => cache.close());
  const fleet: Partial<Fleet> = {
    nodeReports: () => reports,
    useNodes: () => undefined,
    credentialProblems: () => new Map([['amd-1', [problem]]]),
    readShared: () => Promise.resolve(),
    grouped: () => Promise.resolve(),
  };

  const hook = createServer((request, response) => {
    response.writeHead(/^\/mutate\/[0-9a-f]{64}$/u.test(request.url ?? '') ? 200 : 404).end();
  });
  const port = await listen(hook);
  t.teardown(() => {
    hook.closeAllConnections();
    hook.close();
  });
  const service = `service: { namespace: ${own}, name: hook, path: /mutate }`;
  const rules = "rules: [{ apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE] }]";
  const webhooksFile = `${t.testdir({
    'webhooks.yaml': `webhooks: [{ name: pods.arch.example, clientConfig: { ${service} }, ${rules} }]`,
  })}/webhooks.yaml`;

  const pod = (name: string, namespace?: string) =>
    store.get(podPath(name, namespace)) as (StoredObject & Pod) | undefined;
  const pods = (): readonly (StoredObject & Pod)[] => store.list('/api/v1/pods') as (StoredObject & Pod)[];
  const node = (name: string) => store.get(paths.nodes(name));
  const taintsOf = (name: string): readonly Taint[] =>
    (node(name)?.spec as { taints?: readonly Taint[] } | undefined)?.taints ?? [];

  const notReady = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' };
  const crashing = { restartCount: 3, ready: false, state: { waiting: { reason: 'CrashLoopBackOff' } } };
  const run = (name: string, nodeName: string, image: string, more: PodOptions = {}): void => {
    const now = clock.now();
    const spec = { tolerations: [notReady] };
    const options = { node: nodeName, image, imageID: pulled(image), createdAt: now, changedAt: now, spec };
    putPod(store, name, { ...options, ...more });
  };
  const gated = (name: string, images: readonly string[], spec: object = {}, more: object = {}): void => {
    const containers = images.map((image, index) => ({
      name: `c${index}`,
      image,
      imagePullPolicy: 'IfNotPresent',
    }));
    const creationTimestamp = new Date(clock.now()).toISOString();
    store.put(podPath(name), {
      metadata: { creationTimestamp, ...more },
      spec: { containers, schedulingGates: [{ name: gate }], ...spec },
    });
  };
  const request = (name: string, token: Parameters<typeof userOf>[0], of: string): void => {
    const text = Buffer.from(createRequest(of).request).toString('base64');
    const spec = { signerName: agentSigner, usages: agentUsages, request: text, ...userOf(token) };
    store.put(requestPath(name), { spec });
  };
  const daemon = (name: string, nodeName: string, tolerations: readonly object[]): void => {
    store.put(daemonPath(name), { metadata: { uid: name }, spec: { template: { spec: { tolerations } } } });
    const spec = { tolerations };
    run(`${name}-pod`, nodeName, 'both', { owner: controllerRef('DaemonSet', name), spec });
  };
  const config = (name: string, spec: object, second: number): void => {
    const creationTimestamp = `2026-10-01T00:00:0${second}Z`;
    store.put(configPath(name), { ...podConfig(spec, name), metadata: { creationTimestamp } });
  };

  for (const name of ['shop', 'jobs', own]) store.put(`/api/v1/namespaces/${name}`, { metadata: { name } });
  for (const [name, architecture] of Object.entries({ 'amd-1': 'amd64', 'arm-1': 'arm64', 'z-1': 's390x' }))
    putNode(store, name, architecture, { labels: { 'karpenter.sh/nodepool': architecture } });
  putReplicaSet(store, 'web-1', controllerRef('Deployment', 'web'), { spec: { replicas: 2 } });
  store.put(paths.mutatingWebhookConfigurations(own), {});
  store.put(paths.endpointSlices(own, 'hook-1'), {
    metadata: { labels: { 'kubernetes.io/service-name': 'hook' } },
    endpoints: [{ addresses: ['127.0.0.1'] }],
    ports: [{ name: 'https', port }],
  });
  const agent = { namespace: own, owner: controllerRef('DaemonSet', 'agents') };
  run('agent-on-amd-1', 'amd-1', 'both', {
    ...agent,
    metadata: { uid: 'uid-agent-on-amd-1' },
    spec: { serviceAccountName: 'archwright-agent' },
  });
  daemon('stubborn', 'z-1', []);
  daemon('log', 'arm-1', []);
  run('plain', 'arm-1', 'both');
  gated('never', ['never', 'arm']);
  store.put(
    rolloutPath,
    rollout({ architecture: 'arm64', steps: ['50%'], pause: '10s', rebalance: true, names: ['roll'] }),
  );
  // Writes that fail at first, in every walk.
  store.fault(/^PATCH .*configmaps.[a-z-]+$/u, { status: 500, times: 4 });
  store.fault(/^PATCH .*requests.good.status$/u, { status: 500, times: 2 });
  let replicas = { web: 0, roll: 4 };
  let made = 0;

  /** ReplicaSets, the scheduler, and the kubelet of the webhook. */
  function live(): void {
    for (const [workload, wanted] of Object.entries(replicas)) {
      const alive = pods().filter(({ metadata }) => metadata.labels?.['of'] === workload).length;
      for (let count = alive; count < wanted; count += 1) {
        made += 1;
        const labels = { of: workload, 'pod-template-hash': '1' };
        if (workload === 'web') run(`web-${made}`, 'amd-1', 'amd', { labels });
        else
          gated(
            `roll-${made}`,
            ['both'],
            {},
            { labels, ownerReferences: [controllerRef('ReplicaSet', 'roll-1')] },
          );
      }
    }
    for (const { metadata, spec } of pods()) {
      if (metadata.labels?.['of'] !== 'roll' || spec.nodeName || spec.schedulingGates?.length) continue;
      const [term] = termsOf({ spec }) ?? [];
      const values = term?.matchExpressions?.[0]?.values ?? [];
      const name = values.includes('amd64') ? 'amd-1' : 'arm-1';
      if (!taintsOf(name).every((taint) => tolerates(spec.tolerations ?? [], taint))) continue;
      const lastTransitionTime = new Date(clock.now()).toISOString();
      store.put(podPath(metadata.name), {
        metadata,
        spec: { ...spec, nodeName: name },
        status: {
          phase: 'Running',
          conditions: ['PodScheduled', 'Ready'].map((type) => ({
            ...readyIs(true),
            type,
            lastTransitionTime,
          })),
        },
      });
    }
    const { certificate, texts } = readLeaf(textsOf('webhook-tls'));
    if (certificate) hook.setSecureContext({ cert: certificate.pem, key: texts?.['tls.key'] });
  }

  function textsOf(name: string): Readonly<Record<string, string>> | undefined {
    const secret = store.get(paths.secrets(own, `archwright-${name}`));
    if (secret === undefined) return undefined;
    const { data: encoded = {} } = secret as { readonly data?: Readonly<Record<string, string>> };
    const data = Object.entries(encoded);
    return Object.fromEntries(data.map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]));
  }

  /** Each happens once, at any time and in any order. */
  const moves: readonly (() => void)[] = [
    // Pods behind their gate.
    () => gated('known', ['both']),
    () => {
      gated('unknown', ['later', 'both']);
      clock.timer(20_000, () => (platforms['later'] = 'arm64'));
    },
    () => gated('nothing', ['amd', 'arm']),
    () => gated('disabled', ['never'], {}, { labels: { 'arch.example/placement': 'disabled' } }),
    () => gated('own', ['both'], onArch('arm64')),
    // Nodes.
    () => putNode(store, 'arm-2', 'arm64', { labels: { 'karpenter.sh/nodepool': 'arm64' } }),
    () => {
      const labels = { 'karpenter.sh/nodepool': 'spare' };
      const agentLabel = { 'arch.example/agent': 'true' };
      putNode(store, 'leaving', 'amd64', {
        labels: { ...labels, ...agentLabel },
        spec: { unschedulable: true },
      });
      putNode(store, 'spare', 'amd64', { labels });
    },
    () => daemon('log', 'arm-1', [{ operator: 'Exists' }]),
    // Pods on the wrong node.
    () => {
      replicas = { ...replicas, web: 2 };
      store.evictions(podPath('web-a'), { status: 429 }, { status: 403 });
      for (const name of ['web-a', 'web-b'])
        run(name, 'arm-1', 'amd', { labels: { of: 'web' }, ready: false, status: crashing });
    },
    // Images with binaries for another architecture, and for another CPU.
    () => {
      const lastState = { terminated: { exitCode: 255, message: 'exec /app: exec format error' } };
      run('broken', 'amd-1', 'both', { namespace: 'jobs', ready: false, status: { ...crashing, lastState } });
    },
    () => {
      const message = 'Fatal glibc error: CPU does not support x86-64-v4\n';
      const lastState = { terminated: { exitCode: 127, message } };
      run('level', 'amd-1', 'amd', { namespace: 'jobs', ready: false, status: { ...crashing, lastState } });
    },
    () => run('tag', 'arm-2', 'tag', { imageID: pulled('tag', 'tag, before'), owner: null }),
    // Requests for certificates.
    () => request('good', { node: 'amd-1' }, 'amd-1'),
    () => request('other-node', { node: 'amd-1' }, 'arm-1'),
    () => request('mallory', { node: 'amd-1', username: 'mallory' }, 'amd-1'),
    // Custom resources.
    () => config('older', { priority: 4, labelSelector: { matchLabels: { x: 'y' } } }, 1),
    () => config('younger', { priority: 4, labelSelector: { matchLabels: { x: 'y' } } }, 2),
    () => config('wrong', { priority: 400 }, 3),
  ];

  /** What other writers break afterwards; each is repaired. */
  const damage: readonly (() => void)[] = [
    () => store.put(paths.nodes('arm-1'), { ...node('arm-1'), spec: { taints: [] } }),
    () => {
      const metadata = node('amd-1')?.metadata;
      const labels = { ...metadata?.labels, 'arch.example/amd64-level': 'v2' };
      store.put(paths.nodes('amd-1'), { ...node('amd-1'), metadata: { ...metadata, labels } });
    },
    () => store.remove(paths.secrets(own, 'archwright-agent-tls')),
    () => store.put(paths.secrets(own, 'archwright-controller-client-tls'), { data: { 'tls.crt': 'eA==' } }),
    () => store.put(paths.mutatingWebhookConfigurations(own), { webhooks: [] }),
    () => store.remove(paths.secrets(own, 'archwright-webhook-path')),
  ];

  function gatedPicture(name: string): unknown {
    const found = pod(name);
    if (found === undefined) return 'gone';
    if (found.spec.schedulingGates?.length) return 'gated';
    const [term] = termsOf(found) ?? [];
    return `${uncheckedRecord(found).outcome ?? 'no record'}: ${(term?.matchExpressions?.[0]?.values ?? []).join(' ')}`;
  }
  const nodePicture = (name: string): unknown => {
    const labels = node(name)?.metadata.labels ?? {};
    const [agentLabel, level] = [labels['arch.example/agent'], labels['arch.example/amd64-level']];
    return [agentLabel, level, ...taintsOf(name).map(({ key, value }) => `${key}=${value}`)]
      .filter(Boolean)
      .join(' ');
  };
  function certificatesPicture(): string {
    const { newest, previous } = readAuthorities(textsOf('ca') ?? {});
    const wrong = leafNames.filter((name) => {
      const { certificate, keyFits, bundle = [] } = readLeaf(textsOf(`${name}-tls`));
      const isTrusted = bundle.length === 1 && bundle[0]?.id === newest?.certificate.id;
      return !isTrusted || !keyFits || !certificate?.x509.checkIssued(bundle[0]?.x509 as X509Certificate);
    });
    return [newest ? 'ca' : 'none', ...previous.map(() => 'previous'), ...wrong].join(' ');
  }
  function webhookPicture(): string {
    const found = store.get(paths.mutatingWebhookConfigurations(own)) as WebhookConfiguration;
    const [webhook, ...others] = found.webhooks ?? [];
    const isSecret =
      webhook?.clientConfig.service?.path === `/mutate/${textsOf('webhook-path')?.['current']}`;
    const ids = readCaBundles(found)[0]?.map(({ id }) => id);
    const isTrusted = ids?.join() === readAuthorities(textsOf('ca') ?? {}).newest?.certificate.id;
    return [
      webhook?.name,
      isSecret && 'secret path',
      isTrusted && 'trusted',
      ...others.map(({ name }) => name),
    ]
      .filter(Boolean)
      .join(', ');
  }
  const requestPicture = (name: string): string => {
    const found = store.get(requestPath(name));
    const { conditions = [], certificate } = (found?.status ?? {}) as {
      conditions?: readonly { readonly type: string }[];
      certificate?: string;
    };
    const issued = certificate && new X509Certificate(Buffer.from(certificate, 'base64')).subjectAltName;
    return found ? [...conditions.map(({ type }) => type), issued].filter(Boolean).join(' ') : 'removed';
  };
  const configPicture = (name: string): unknown =>
    (store.get(configPath(name))?.status as ResourceStatus | undefined)?.conditions
      ?.map(({ type, status, reason }) => `${type} ${status} ${reason}`)
      .join(', ');
  const onNode = (workload: string, name: string): number =>
    pods().filter(({ metadata, spec }) => metadata.labels?.['of'] === workload && spec.nodeName === name)
      .length;
  const short = (key: string): string => key.replace(/^sha256-[0-9a-f]*/u, '');

  function picture(): Readonly<Record<string, unknown>> {
    const { phase, moved } = (store.get(rolloutPath)?.status ?? {}) as Partial<RolloutStatus>;
    const events = store.list('/api/v1/events').map((event) => {
      const { reason, involvedObject } = event as unknown as {
        reason: string;
        involvedObject: { kind: string; name: string };
      };
      return `${reason} ${involvedObject.kind}/${involvedObject.name}`;
    });
    const names = ['known', 'unknown', 'never', 'nothing', 'disabled', 'own'];
    return {
      ...Object.fromEntries(names.map((name) => [name, gatedPicture(name)])),
      ...Object.fromEntries(
        ['amd-1', 'arm-1', 'arm-2', 'leaving', 'spare', 'z-1'].map((name) => [name, nodePicture(name)]),
      ),
      web: `${onNode('web', 'amd-1')} on amd-1, ${onNode('web', 'arm-1')} on arm-1`,
      roll: `${phase}: ${moved} moved, ${onNode('roll', 'amd-1')} on amd-1, ${onNode('roll', 'arm-1')} on arm-1`,
      broken: Object.keys(dataAt(store, paths.configMaps(own, 'archwright-broken-images')))
        .map(short)
        .sort(),
      drift: Object.values(dataAt(store, paths.configMaps(own, 'archwright-drift'))).map(
        (text) => (JSON.parse(text) as { lost: unknown }).lost,
      ),
      certificates: certificatesPicture(),
      webhook: webhookPicture(),
      requests: ['good', 'other-node', 'mallory'].map(requestPicture),
      configs: ['older', 'younger', 'wrong'].map(configPicture),
      events: [...new Set(events)].filter((event) => lasting.test(event)).sort(),
    };
  }

  const untolerated: string[] = [];
  /** The first taint of an architecture comes after the tolerations of that node's pods, as the caches show them. */
  store.fault(({ verb, path, json }) => {
    const isTaint =
      verb === 'PATCH' && path.includes('/nodes/') && JSON.stringify(json).includes('NoSchedule');
    if (!isTaint || ['arm-1', 'arm-2'].some((name) => taintsOf(name).length > 0)) return false;
    const taint = { key: 'arch.example/architecture', value: 'arm64', effect: 'NoSchedule' };
    const isLate = ({ creationTimestamp = '' }: StoredObject['metadata']): boolean =>
      clock.now() - Date.parse(creationTimestamp) < 90_000;
    for (const { metadata, spec } of pods())
      if (
        path === paths.nodes(spec.nodeName) &&
        !isLate(metadata) &&
        !tolerates(spec.tolerations ?? [], taint)
      )
        untolerated.push(metadata.name);
    return false;
  }, {});

  return {
    clock,
    store,
    cache,
    fleet: fleet as Fleet,
    webhooksFile,
    configuration: {
      namespace: own,
      webhookConfiguration: own,
      webhookPathSecret: 'archwright-webhook-path',
      agents: [`${own}/archwright-agent`],
      agentNodes: 1,
      amd64LevelLabels: true,
      taintArchitectures: ['arm64', 's390x'],
      maxGateDuration: 2 * 60_000,
      driftInterval: 10 * 60_000,
      evictionsPerMinute: 60,
      misplacedPodsShare: 50,
    },
    moves,
    damage,
    live,
    picture,
    /** Pods whose node got its taint before they tolerated it. */
    untolerated,
  };
}

/** Events about what lasts: a new leader reports it again. */
const lasting =
  /^(?:CredentialProblem|ExecFormatError|CpuLevelTooLow|ImageLostArchitecture) |^TaintHeldBack .*stubborn/u;
