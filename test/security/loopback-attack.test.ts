/** Attack: an image at a port of the node, to learn from the error or the time whether the port is open. */
import t from 'tap';
import { openFactsCache } from '../../cmd/wiring/image-facts.ts';
import { openInspection } from '../../cmd/wiring/inspection.ts';
import { systemClock } from '../../src/async/clock.ts';
import { createFactsOfPod } from '../../src/cluster/facts-of-pod.ts';
import { createRequestOf } from '../../src/images/facts/facts.ts';
import { defaultConfiguration, type Configuration } from '../../src/policy/configuration/configuration.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { run } from '../cmd/run.ts';
import { openNode, startCountingListener } from './support.ts';
import { silentLog } from '../support/captured.ts';
import { requestFor } from '../support/facts.ts';
import { like } from '../support/like.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { writeFiles } from '../support/write-files.ts';

const numbers = ['127.0.0.1', '127.8.9.1', '127.1', '2130706433', '0x7f.1', '0X7F.0.0.1', '0177.1'];
const v6 = ['[::1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]'];
const spellings = ['localhost', 'LOCALHOST', 'app.localhost', ...numbers, ...v6];

t.test('in a cluster, no notation of loopback distinguishes an open port from a closed one', async (t) => {
  const listener = await startCountingListener(t);
  const open = listener.port;

  const configuration = (): Configuration => ({ ...defaultConfiguration(), allowLoopbackRegistries: false });
  const metrics = createMetrics();
  const log = silentLog;
  const inspection = await openInspection({ configuration, dockerConfigs: 'none', env: {}, log });
  t.teardown(() => inspection.close());
  const cache = await openFactsCache({ configuration, source: inspection.source, log, metrics });
  t.teardown(() => cache.close());
  const secretsRead: unknown[] = [];
  const factsOfPod = createFactsOfPod({
    cache,
    requestOf: createRequestOf(configuration, false),
    pullSecrets: {
      mayHave: () => true,
      source: (...wanted) => {
        secretsRead.push(wanted);
        return Promise.reject(new Error('no Secret is read'));
      },
    },
    clock: systemClock,
    log,
  });
  const images = spellings.flatMap((host) => [`${host}:${open}/app`, `${host}:1/app`, `${host}:80/app:v1`]);
  const facts = await factsOfPod({
    uses: images.map((image) => ({ image, usedBy: ['c'], pullPolicy: 'Always', volumeOnly: false })),
    namespace: 'tenant',
    pullSecrets: { names: ['regcred'] },
    serviceAccount: undefined,
    budgetMs: 5000,
  });
  const message =
    'not inspected: the image names a registry of the node itself, and allowLoopbackRegistries is false';
  for (const image of images) like(t, facts.get(image)?.error, { code: 'forbidden', message }, image);
  t.strictSame(secretsRead, []);
  t.equal(listener.connections(), 0);
});

t.test('a denied registry gets no request for a short name that a node resolves to it', async (t) => {
  const listener = await startCountingListener(t);
  const host = `127.0.0.1:${listener.port}`;
  const root = t.testdir();
  writeFiles(root, { '/etc/containers/registries.conf': `unqualified-search-registries = ["${host}"]\n` });
  for (const [denied, message, connections] of [
    [`${host}/**`, 'not inspected: the image is in deniedRegistries', 0],
    ['docker.io', /127\.0\.0\.1/, 1],
  ] as const) {
    const node = await openNode(t, {
      hostRoot: root,
      runtime: 'cri-o',
      deniedRegistries: denied,
      allowLoopbackRegistries: 'false',
    });
    const configuration = (): Configuration => ({ ...defaultConfiguration(), deniedRegistries: [denied] });
    const cache = await openFactsCache({
      configuration,
      source: node.inspection.source,
      log: silentLog,
      metrics: createMetrics(),
    });
    t.teardown(() => cache.close());
    const request = { ...requestFor('app'), shortName: 'app' };
    like(t, await cache.get(request, { signal: neverAborted }), { error: { message } });
    t.equal(listener.connections() > 0, connections > 0);
  }
});

t.test('denied registries get no request', async (t) => {
  const listener = await startCountingListener(t);
  const host = `127.0.0.1:${listener.port}`;
  for (const [flag, reason] of [
    [`--denied-registries=${host}`, 'is in deniedRegistries'],
    ['--allowed-registries=docker.io/library/*', 'is not in allowedRegistries'],
    ['--no-allow-loopback-registries', 'allowLoopbackRegistries is false'],
  ] as const) {
    const { code, out } = await run(['inspect', flag, `${host}/team/app:v1`]);
    t.equal(code, 1);
    t.ok(out.includes(reason), out);
  }
  t.equal(listener.connections(), 0);
  await run(['inspect', `${host}/team/app:v1`]);
  t.ok(listener.connections() > 0, 'requests without the rules');
});
