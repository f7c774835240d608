/** The webhook's own Secrets in a new cluster: the webhook runs before the controller has written them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { keepOwnSecrets } from '../../../cmd/wiring/own-secrets.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import type { Configuration } from '../../../src/policy/settings/all.ts';
import { openAdmissionPaths } from '../../../src/webhook/admission-paths.ts';
import { connect } from '../../kube/support.ts';
import { createWorld, namespace, type World } from '../../controller/features/certificates/world.ts';
import { captureLog } from '../../support/captured.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const webhookPathSecret = 'archwright-webhook-path';

function keep(t: Test, world: World, own: Partial<Configuration> = {}) {
  const dir = t.testdir();
  const [tlsDir, agentTlsDir, webhookPathDir] = ['tls', 'agent-tls', 'path'].map((name) => join(dir, name));
  const directories = { tlsDir, agentTlsDir };
  const agents = ['https://127.0.0.1:9'];
  const configuration = { ...defaultConfiguration(), agents, webhookPathSecret, ...directories, ...own };
  const client = connect(t, { access: world.store.access });
  const kubernetes = { client, podNamespace: namespace, access: world.store.access, another: () => client };
  const { log } = captureLog('debug');
  const kept = keepOwnSecrets(configuration, kubernetes, namespace, webhookPathDir, log);
  t.teardown(() => kept?.close());
  return { kept, dir, log };
}

t.test('the webhook waits for its certificate, and follows all of its Secrets', async (t) => {
  const world = await createWorld(t);
  const { kept, dir, log } = keep(t, world);
  t.match(kept?.checks['certificate']?.(), /^the webhook has no certificate yet; the controller writes it$/);
  await kept?.ready(AbortSignal.abort());
  t.ok(kept?.checks['certificate']?.(), 'not ready without the certificate');
  const ready = kept?.ready(neverAborted);
  await world.leader()();
  await ready;
  t.equal(kept?.checks['certificate']?.(), undefined);
  t.equal(readFileSync(join(dir, 'tls', 'tls.key'), 'utf8'), world.texts('webhook')?.['tls.key']);
  const client = (): string => readFileSync(join(dir, 'agent-tls', 'tls.crt'), 'utf8');
  const isThere = (): boolean => {
    try {
      return client() === world.texts('webhook-client')?.['tls.crt'];
    } catch {
      return false;
    }
  };
  await world.store.until(isThere, 'the client certificate');

  const paths = await openAdmissionPaths({ dir: join(dir, 'path'), log, pollMs: 20 });
  t.teardown(() => paths.close());
  t.ok(paths.problem());
  const put = (data: Readonly<Record<string, string>>): void => {
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    const secret = { apiVersion: 'v1', kind: 'Secret', data: Object.fromEntries(encoded) as object };
    world.store.put(`/api/v1/namespaces/${namespace}/secrets/${webhookPathSecret}`, secret);
  };
  put({ current: 'one', 'record-key': 'key' });
  await world.store.until(() => paths.routeOf('/mutate/one') === 'mutate', 'the path');
  t.equal(paths.problem(), undefined);
  put({ current: 'two', previous: 'one', 'record-key': 'key' });
  await world.store.until(() => paths.routeOf('/mutate/two') === 'mutate', 'the next path');
  t.equal(paths.routeOf('/mutate/one'), 'mutate');
  put({ current: 'two', 'record-key': 'key' });
  await world.store.until(() => paths.routeOf('/mutate/one') === undefined, 'the end of the earlier path');
});

t.test('the kubelet mounts the certificate of the service CA; the others are written', async (t) => {
  const world = await createWorld(t);
  await world.leader({ certificates: 'serviceCa' })();
  world.put('webhook', { 'tls.crt': 'of the service CA', 'tls.key': 'too' });
  const { kept, dir } = keep(t, world, { certificates: 'serviceCa' });
  await kept?.ready(neverAborted);
  t.equal(kept?.checks['certificate']?.(), undefined, 'the pod starts only with it');
  await world.store.until(() => existsSync(join(dir, 'agent-tls', 'tls.crt')), 'the client certificate');
  t.notOk(existsSync(join(dir, 'tls')));
});

t.test('files from another issuer are not written', async (t) => {
  const world = await createWorld(t);
  t.equal(keep(t, world, { certificates: 'external' }).kept, undefined, 'mounted Secrets');
  const { log } = captureLog('debug');
  const outside = keepOwnSecrets(defaultConfiguration(), undefined, undefined, undefined, log);
  t.equal(outside, undefined, 'outside of a cluster');
});
