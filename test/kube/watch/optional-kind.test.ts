import t, { type Test } from 'tap';
import { startReflector } from '../../../src/kube/watch/reflector.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { unlessAborted } from '../../../src/async/wait.ts';
import { connectedStore } from '../support.ts';
import { recordingLog } from '../../support/captured.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

const path = '/apis/arch.example/v1alpha1/podplacementconfigs';
const object = { apiVersion: 'arch.example/v1alpha1', kind: 'PodPlacementConfig', spec: {} };
const absent = { status: 404, message: 'the server could not find the requested resource' };
const forbidden = { status: 403, message: 'podplacementconfigs is forbidden' };

async function watching(t: Test, fault?: { status: number; message: string }) {
  const { store, client } = await connectedStore(t);
  const end = fault ? store.fault(/podplacementconfigs/, fault) : () => undefined;
  const { log, lines } = recordingLog('debug');
  const sleeps: number[] = [];
  let wake = (): void => undefined;
  const sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
    sleeps.push(ms);
    await unlessAborted(new Promise<void>((resolve) => (wake = resolve)), signal);
  };
  const clock = { ...systemClock, sleep };
  const reflector = startReflector({ client, path, isOptional: true, trim: (each) => each, log, clock });
  t.teardown(() => reflector.stop());
  /** Ends pauses until the condition is true. */
  const until = (condition: () => boolean): Promise<void> =>
    store.until(() => {
      wake();
      return condition();
    });
  return { store, end, lines, reflector, sleeps, until };
}

void t.test('a kind without a CRD is an empty collection until it is installed', async (t) => {
  const { store, end, lines, reflector, sleeps, until } = await watching(t, absent);
  await reflector.ready(neverAborted);
  t.equal(reflector.size, 0);
  await store.until(() => sleeps.length === 1);
  t.strictSame(sleeps, [30_000]);
  end();
  store.put(`/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs/web`, object);
  await until(() => reflector.size === 1);
  t.strictSame(
    lines.filter(({ level }) => level !== 'debug'),
    [],
    'nothing is logged',
  );
});

void t.test('a missing permission is logged once', async (t) => {
  const { lines, reflector, sleeps, until } = await watching(t, forbidden);
  await reflector.ready(neverAborted);
  await until(() => sleeps.length >= 5);
  like(
    t,
    lines.filter(({ level }) => level !== 'debug'),
    [{ level: 'warn', path }],
  );
});

void t.test('when the CRD is removed, the collection becomes empty', async (t) => {
  const { store, reflector, until } = await watching(t);
  store.put(`/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs/web`, object);
  await until(() => reflector.size === 1);
  store.fault(/podplacementconfigs/, absent);
  store.cutWatches('end', path);
  await until(() => reflector.size === 0);
  t.equal(reflector.get('shop', 'web'), undefined, 'the object is removed');
});

void t.test('when a permission is lost, the last known objects stay', async (t) => {
  const { store, lines, reflector, until } = await watching(t);
  const web = '/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs/web';
  store.put(web, object);
  await until(() => reflector.size === 1);
  let least = 1;
  reflector.onChange(() => {
    least = Math.min(least, reflector.size);
  });
  const end = store.fault(/podplacementconfigs/, forbidden);
  store.cutWatches('end', path);
  await until(() => store.received(`GET ${path}`).length >= 3);
  end();
  store.put(`${web}-2`, object);
  await until(() => reflector.size === 2);
  t.equal(least, 1, 'a starting API server briefly refuses requests until it knows the roles');
  t.ok(lines.some(({ level, msg }) => level === 'warn' && msg === 'watch is interrupted; trying again'));
});

void t.test('other errors are retried', async (t) => {
  const { end, lines, reflector, until } = await watching(t, { status: 500, message: 'broken' });
  await until(() => lines.some(({ msg }) => msg === 'watch is interrupted; trying again'));
  t.equal(reflector.health().synced, false);
  end();
  await until(() => reflector.health().synced);
});
