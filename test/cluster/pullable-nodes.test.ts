/** `requirePullableNodes`: the nodes that a pod's images exclude, by its pull secrets. The fleet is scripted. */
import t from 'tap';
import type { Cluster } from '../../src/cluster/cluster.ts';
import { createPullableNodes } from '../../src/cluster/pullable-nodes.ts';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { type ImageFacts, createRequestOf } from '../../src/images/facts/facts.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { silentLog } from '../support/captured.ts';
import { defaultCacheTimes, factsOf, failureOf } from '../support/facts.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { until } from '../support/until.ts';

const image = 'registry.example/team/app:1';

function secretWith(text: string): Cluster['secret'] {
  const data = { '.dockerconfigjson': Buffer.from(text).toString('base64') };
  return (namespace, name) =>
    Promise.resolve({ metadata: { namespace, name }, type: 'kubernetes.io/dockerconfigjson', data });
}
const robot = { username: 'robot', password: 'let-me-in' };
const good = secretWith(JSON.stringify({ auths: { 'registry.example': robot } }));

interface Given {
  /** Whether the group `poor` can pull; `able` always can. */
  readonly poor?: 'never' | 'with the secret';
  readonly secret?: Cluster['secret'];
  readonly facts?: ImageFacts;
  /** Hostnames that each agent answers for. Default: its node. */
  readonly hostnames?: (node: string) => readonly string[];
}

/** @returns which nodes can pull, `undefined` if nothing is known, and which requests the fleet got */
async function pullableBy(given: Given) {
  const { poor = 'never', secret, facts = factsOf(image), hostnames = (node) => [node] } = given;
  const clock = createFakeClock();
  const requests: string[] = [];
  const group = (name: string) => ({
    fingerprint: name,
    nodes: [`node-${name}`],
    architectures: ['amd64'],
  });
  const fleet: Pick<Fleet, 'pullable'> = {
    pullable: ({ pullCredentials }) => {
      const hasSecret = pullCredentials.length > 0;
      requests.push(hasSecret ? 'with' : 'without');
      const [able, other] = [group('able'), group('poor')];
      const canPull = hasSecret && poor === 'with the secret';
      return Promise.resolve(
        canPull ? { able: [able, other], unable: [] } : { able: [able], unable: [other] },
      );
    },
  };
  let isRead = false;
  const cluster = {
    secret: (...args: Parameters<Cluster['secret']>) => {
      isRead = true;
      return secret?.(...args) ?? Promise.resolve(undefined);
    },
    serviceAccountPullSecrets: () => Promise.resolve([]),
  };
  const pullableNodes = createPullableNodes({
    fleet,
    requestOf: createRequestOf(defaultCacheTimes, false),
    pullSecrets: createPullSecrets({ cluster, clock, metrics: createMetrics() }),
    nodeHostnames: hostnames,
    clock,
    log: silentLog,
  });
  const request = {
    namespace: 'shop',
    uses: [{ image, pullPolicy: 'IfNotPresent' as const, usedBy: ['app'], volumeOnly: false }],
    pullSecrets: { names: secret ? ['regcred'] : [] },
    serviceAccount: { namespace: 'shop', name: 'default' },
    budgetMs: 500,
  };
  const finding = pullableNodes(request, new Map([[image, facts]]));
  if (secret === hanging) {
    await until(() => isRead, 'the Secret is read');
    await clock.advance(500);
  }
  return { found: (await finding).get(image), requests };
}

const hanging = (): Promise<never> => new Promise(() => undefined);
const byPullSecret = factsOf(image, { credentialSource: 'pull-secret' });

const rows: Readonly<Record<string, [given: Given, excluded: string[] | undefined, requests: string[]]>> = {
  'no pull secret': [{}, ['node-poor'], ['without']],
  'the node can pull with the pull secret': [
    { poor: 'with the secret', secret: good },
    [],
    ['without', 'with'],
  ],
  'it cannot, despite the pull secret': [{ secret: good }, ['node-poor'], ['without', 'with']],
  'facts that needed the pull secret': [
    { poor: 'with the secret', secret: good, facts: byPullSecret },
    [],
    ['with'],
  ],
  'a pull secret that cannot be read': [{ secret: hanging }, undefined, ['without']],
  'a refused read': [
    { secret: () => Promise.reject(new Error('away')) },
    ['node-poor'],
    ['without', 'without'],
  ],
  'a malformed pull secret': [{ secret: secretWith('{') }, undefined, ['without']],
  'an unknown image': [{ facts: failureOf(image, 'not-found') }, undefined, []],
  'an override': [{ facts: factsOf(image, { source: 'override' }) }, undefined, []],
};

for (const [about, [given, excluded, wanted]] of Object.entries(rows))
  t.test(about, async (t) => {
    const { found, requests } = await pullableBy(given);
    const hostnames = found?.unable.flatMap((group) => group.hostnames);
    t.strictSame([hostnames, requests], [excluded, wanted]);
  });

t.test('a node without an agent stays eligible in a pool with agents of both groups', async (t) => {
  const { found } = await pullableBy({ hostnames: (node) => [node, 'shared'] });
  const architectures = ['amd64'];
  t.strictSame(found, {
    able: [{ fingerprint: 'able', architectures, hostnames: ['node-able', 'shared'] }],
    unable: [{ fingerprint: 'poor', architectures, hostnames: ['node-poor'] }],
  });
});
