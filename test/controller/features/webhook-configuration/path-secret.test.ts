/** The secret part of the webhook's path: how it is added, and how it is rotated. */
import t from 'tap';
import { issueLeaf } from '../../../../src/certificates/issue.ts';
import type { Secret } from '../../../../src/kube/api/objects.ts';
import { paths } from '../../../../src/kube/api/paths.ts';
import { namespace, type World } from '../certificates/world.ts';
import { endpoints, fileText, get, path, start, startHook, subject, validity, withHook } from './support.ts';
import { like } from '../../../support/like.ts';

const webhookPathSecret = 'archwright-webhook-path';
const secretPath = paths.secrets(namespace, webhookPathSecret);
const day = 86_400_000;

const data = (world: World) => (world.store.get(secretPath) as Secret | undefined)?.data;

function textOf(world: World, key: string): string {
  return Buffer.from(data(world)?.[key] ?? '', 'base64').toString('utf8');
}
const pathInForce = (world: World): string | undefined => {
  const { service, url } = get(world)?.webhooks?.[0]?.clientConfig ?? {};
  return service?.path ?? (url === undefined ? undefined : new URL(url).pathname);
};
/** A webhook that has read the Secret. */
const accepting = (world: World) => (given: string) =>
  ['current', 'previous'].some(
    (key) => textOf(world, key) !== '' && given === `/mutate/${textOf(world, key)}`,
  );

t.test('the path is rotated once every endpoint accepts the next one', async (t) => {
  const { world, a, hook } = await withHook(t);
  const other = await startHook(t, await issueLeaf(a, subject, validity));
  hook.accepted = () => false;
  other.accepted = () => false;
  const { state } = await start(t, world, fileText(), { webhookPathSecret });
  await world.store.until(() => textOf(world, 'current') !== '', 'the Secret exists before any endpoint');
  const first = textOf(world, 'current');
  const key = textOf(world, 'record-key');
  like(t, [first, key], [/^[0-9a-f]{64}$/, /^[0-9a-f]{64}$/]);
  like(t, world.store.get(secretPath), { type: 'Opaque' });
  // More than are probed at once.
  endpoints(world, [...Array.from({ length: 45 }, () => hook), other]);
  await state('waiting');
  hook.accepted = accepting(world);
  other.accepted = accepting(world);
  await state('in-force');
  t.equal(pathInForce(world), `/mutate/${first}`);

  // A replica that has not read the Secret yet accepts only the current path.
  const late = (given: string): boolean => given === `/mutate/${first}`;
  other.accepted = late;
  world.advance(7 * day);
  world.store.put(path, { ...get(world), metadata: { labels: { touched: 'yes' } } });
  await world.store.until(() => textOf(world, 'previous') === first, 'a new token');
  const second = textOf(world, 'current');
  t.not(second, first);
  t.equal(textOf(world, 'record-key'), key);
  const { probes } = hook;
  await world.store.until(() => hook.probes > probes + 2 * 45, 'two more looks');
  t.equal(pathInForce(world), `/mutate/${first}`, 'one of 46 endpoints does not accept the next path');
  await state('in-force');
  world.advance(7 * day);
  const looks = hook.probes;
  await world.store.until(() => hook.probes > looks + 2 * 45, 'two more looks');
  t.equal(textOf(world, 'current'), second, 'no new rotation during a rotation');
  other.accepted = accepting(world);
  await world.store.until(() => pathInForce(world) === `/mutate/${second}`, 'the new path');
  t.notMatch(world.log.join(''), new RegExp(`${first}|${second}|${key}`), 'no path and no key in the log');
});

t.test('a lost, damaged or misdated Secret is written again, with the current path', async (t) => {
  const { world, hook } = await withHook(t);
  hook.accepted = accepting(world);
  endpoints(world, [hook]);
  const { state } = await start(t, world, fileText(), { webhookPathSecret });
  await state('in-force');
  const putRotated = (text: string): void => {
    const rotated = Buffer.from(text).toString('base64');
    const secret = world.store.get(secretPath);
    world.store.put(secretPath, { ...secret, data: { ...data(world), rotated } });
  };
  for (const lose of [
    () => world.store.remove(secretPath),
    () => world.store.put(secretPath, { type: 'Opaque', data: { current: 'eA==' } }),
    () => putRotated(''),
    // By an API server with a wrong clock.
    () => putRotated(new Date(world.now() + 365 * day).toISOString()),
  ]) {
    const before = textOf(world, 'current');
    lose();
    await world.store.until(() => pathInForce(world) !== `/mutate/${before}`, 'another path');
    t.equal(textOf(world, 'previous'), before);
    t.equal(pathInForce(world), `/mutate/${textOf(world, 'current')}`);
  }
});

t.test('a webhook with a URL', async (t) => {
  const { world, hook } = await withHook(t, ['127.0.0.1']);
  hook.accepted = accepting(world);
  const url = `https://127.0.0.1:${hook.port}/mutate`;
  const { state } = await start(t, world, fileText('failurePolicy: Fail', `url: '${url}'`), {
    webhookPathSecret,
  });
  await state('in-force');
  t.equal(get(world)?.webhooks?.[0]?.clientConfig.url, `${url}/${textOf(world, 'current')}`);
});
