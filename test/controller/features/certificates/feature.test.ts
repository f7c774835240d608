/** The feature as the leader runs it, with watches and metrics. */
import { lead } from '../../leader.ts';
import t, { type Test } from 'tap';
import { certificatesWith } from '../../../../src/controller/features/certificates/certificates.ts';
import { leafNames, readLeaf } from '../../../../src/controller/features/certificates/leaves.ts';
import type { LiveWebhooks, Webhook } from '../../../../src/controller/state/webhooks-file.ts';
import type { Configuration } from '../../../../src/policy/settings/all.ts';
import { seriesOf } from '../../../support/captured.ts';
import { until } from '../../../support/until.ts';
import { createWorld, minute, picture, times, type World } from './world.ts';

function start(t: Test, world: World, configuration: Partial<Configuration> = {}, webhooks?: LiveWebhooks) {
  const ending = new AbortController();
  const context = world.context({ signal: ending.signal, configuration, ...(webhooks && { webhooks }) });
  const running = lead(certificatesWith(times), context);
  const end = async (): Promise<void> => {
    ending.abort(new Error('deposed'));
    await running;
  };
  t.teardown(end);
  const expiry = () => value('archwright_certificate_expires_in_seconds{certificate="ca"}');
  const value = async (series: string) => Number(await seriesOf(context.metrics, series));
  return { end, value, expiry };
}

const isComplete = (world: World, what: string): Promise<void> =>
  world.store.until(() => picture(world) === 'A signing: A/A A/A A/A A/A', what);

t.test('it issues certificates, repairs deleted ones, and stops on request', async (t) => {
  const world = await createWorld(t);
  const { end, value, expiry } = start(t, world);
  await isComplete(world, 'every Secret exists');
  await world.store.until(() => world.store.watches() === 5, 'every Secret is watched');
  for (const name of leafNames) {
    world.remove(name);
    await isComplete(world, `${name} exists again`);
  }
  t.equal(await value('archwright_certificates_issued_total{certificate="agent",reason="missing"}'), 2);
  t.equal(await value('archwright_certificates_issued_total{certificate="ca",reason="missing"}'), 1);
  await isComplete(world, 'at rest');
  // The first reconcile may still be running; it sets the metric at its end.
  await until(async () => !Number.isNaN(await expiry()), 'the metric of the CA');
  t.equal(await expiry(), times.caMs / 1000);
  world.advance(minute);
  t.equal(await expiry(), times.caMs / 1000 - 60);
  await end();
  await world.store.until(() => world.store.watches() === 0, 'watches end');
  t.ok(Number.isNaN(await expiry()), 'no value without leadership');
  t.notMatch(world.log.join(''), 'PRIVATE');
});

t.test('the DNS names of the webhook come from the webhooks file', async (t) => {
  const world = await createWorld(t);
  let known: readonly Webhook[] | undefined;
  let changed = (): void => undefined;
  const close = (): Promise<void> => Promise.resolve();
  const onChange = (listener: () => void): void => void (changed = listener);
  const webhooks = { current: () => known, problem: () => undefined, onChange, close };
  const { end } = start(t, world, {}, webhooks);
  await world.store.until(
    () => world.texts('controller-client') !== undefined,
    'the other certificates need no names',
  );
  t.equal(world.texts('webhook'), undefined);
  known = [{ name: 'a', clientConfig: { service: { namespace: 'ns', name: 'hook' } } }];
  changed();
  await world.store.until(() => world.texts('webhook') !== undefined, 'now they are known');
  await end();
  const { certificate } = readLeaf(world.texts('webhook'));
  t.equal(certificate?.x509.subjectAltName, 'DNS:hook.ns.svc, DNS:hook.ns.svc.cluster.local');
});

t.test('the service CA of OpenShift issues only the certificate of the webhook', async (t) => {
  const world = await createWorld(t);
  const { end } = start(t, world, { certificates: 'serviceCa' });
  await world.store.until(() => world.texts('controller-client') !== undefined, 'the others are issued');
  await end();
  const isThere = leafNames.filter((name) => world.texts(name) !== undefined);
  t.strictSame(isThere, ['agent', 'webhook-client', 'controller-client']);
});

t.test('with another issuer of certificates, it reads and writes nothing', async (t) => {
  const world = await createWorld(t);
  await lead(certificatesWith(), world.context({ configuration: { certificates: 'external' } }));
  t.equal(world.store.requests.length, 0);
});
