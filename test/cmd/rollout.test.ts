/** `archwright rollout` over an API server with a store. */
import t, { type Test } from 'tap';
import { run } from './run.ts';
import { storeWithConfig } from './world.ts';
import { like } from '../support/like.ts';

const path = (name: string): string =>
  `/apis/arch.example/v1alpha1/namespaces/shop/architecturerollouts/${name}`;

const status = {
  phase: 'Progressing',
  share: '50%',
  attempt: 1,
  message: 'moving 50% of the pods to arm64',
  pods: 10,
  moved: 3,
  workloads: [
    { name: 'Deployment/api', pods: 4, moved: 0, ready: 0, wanted: 0, blocked: 'api:1: no arm64' },
    { name: 'Deployment/web', pods: 6, moved: 3, ready: 2, wanted: 3 },
  ],
};

async function setup(t: Test, now?: () => number) {
  const { store, config } = await storeWithConfig(t, now && { now });
  const put = (more: object): void =>
    void store.put(path('web'), { spec: { architecture: 'arm64' }, status: { ...status, ...more } });
  put({});
  const rollout = (...args: readonly string[]) =>
    run(['rollout', ...args, '--kubeconfig', config, '-n', 'shop']);
  return { store, put, rollout };
}

t.test('it shows a rollout with its workloads', async (t) => {
  const { rollout } = await setup(t);
  const { code, out, err } = await rollout('status', 'web');
  t.equal(err, '');
  t.equal(
    out,
    [
      'rollout  web to arm64',
      'phase    Progressing, target 50%, attempt 1',
      'moved    [#########.....................] 3 of 10',
      'message  moving 50% of the pods to arm64',
      '',
      'WORKLOAD        PODS  MOVED  READY  WANTED  REASON',
      'Deployment/api  4     0      0      0       api:1: no arm64',
      'Deployment/web  6     3      2      3       -',
      '',
    ].join('\n'),
  );
  t.equal(code, 0);
});

t.test('it lists all rollouts of the namespace', async (t) => {
  const { store, rollout } = await setup(t);
  store.put(path('new'), { spec: { architecture: 's390x' } });
  const { out } = await rollout('status');
  t.match(out, /^NAME +ARCHITECTURE +PHASE +TARGET +MOVED +MESSAGE\n/);
  t.match(out, /\nweb +arm64 +Progressing +50% +3 of 10 +moving 50% of the pods to arm64\n/);
  t.match(out, /\nnew +s390x +- +- +- +no controller follows it so far/);
  const json: unknown = JSON.parse((await rollout('status', '-o', 'json')).out);
  like(t, json, [{ metadata: { name: 'new' } }, { metadata: { name: 'web' } }]);
  store.remove(path('web'));
  store.remove(path('new'));
  like(t, await rollout('status'), { out: 'no rollouts in namespace shop\n', code: 0 });
});

t.test('a rollout that does not exist', async (t) => {
  const { rollout } = await setup(t);
  const message =
    /^archwright rollout: there is no ArchitectureRollout wbe in the namespace shop; archwright rollout status -n/;
  like(t, await rollout('status', 'wbe'), { code: 1, err: message });
  like(t, await rollout('abort', 'wbe'), { code: 1, err: message });
});

t.test('`pause`, `abort` and `resume` change the spec', async (t) => {
  const { store, rollout } = await setup(t);
  const spec = (): unknown => store.get(path('web'))?.['spec'];
  like(t, await rollout('pause', 'web'), { code: 0, out: /^rollout  web/ });
  t.strictSame(spec(), { architecture: 'arm64', paused: true });
  await rollout('abort', 'web');
  t.strictSame(spec(), { architecture: 'arm64', paused: true, aborted: true });
  await rollout('resume', 'web');
  like(t, spec(), { paused: false, aborted: false, resumedAt: /^20/ });
});

t.test('`pause` warns that it has no effect on a complete or aborted rollout', async (t) => {
  const { put, rollout } = await setup(t);
  t.equal((await rollout('pause', 'web')).err, '');
  put({ phase: 'Complete' });
  like(t, await rollout('pause', 'web'), { code: 0, err: /web is complete, so pause has no effect until/ });
  put({});
  await rollout('abort', 'web');
  like(t, await rollout('pause', 'web'), {
    code: 0,
    err: 'archwright rollout: web is aborted, so pause has no effect; to begin again: archwright rollout resume web\n',
  });
});

t.test('a status from before the last change of the spec is not shown as current', async (t) => {
  const year = 365 * 24 * 3600_000;
  const ahead = Date.now() + year;
  const { store, put, rollout } = await setup(t, () => ahead);
  const { generation: observedGeneration = 0 } = store.get(path('web'))?.metadata ?? {};
  put({ phase: 'RolledBack', observedGeneration });
  t.equal((await rollout('status', 'web')).code, 1);
  like(t, await rollout('resume', 'web'), { code: 0, out: /has not seen the last change yet/ });
  const spec = store.get(path('web'))?.['spec'] as { resumedAt?: string } | undefined;
  t.ok(Date.parse(spec?.resumedAt ?? '') > ahead - 5000, "by the API server's clock");
});

t.test('a rolled back rollout is a failure, and ends `--watch`', async (t) => {
  const { put, rollout } = await setup(t);
  put({ phase: 'RolledBack', retryAt: new Date(Date.now() + 3600_000).toISOString() });
  const { code, out } = await rollout('status', 'web', '--watch');
  t.equal(code, 1);
  t.match(out, /retry    in (?:1h|59m\d+s)/);
});

t.test('an abort that takes effect at once is no failure', async (t) => {
  const { put, rollout } = await setup(t);
  put({ phase: 'Aborted' });
  t.equal((await rollout('abort', 'web', '--watch')).code, 0);
  t.equal((await rollout('status', 'web')).code, 1);
});

t.test('exit codes of wrong usage, a missing definition and a failing API server', async (t) => {
  const { store, rollout } = await setup(t);
  like(t, await rollout(), { code: 2, err: /name one of status, pause, resume, abort/ });
  like(t, await rollout('puase'), { code: 2, err: /did you mean pause\?/ });
  like(t, await rollout('pause'), { code: 2, err: /name the rollout to pause/ });
  like(t, await rollout('status', 'a', 'b'), { code: 2, err: /takes one rollout/ });
  t.strictSame(store.writes(), [], 'wrong usage changes nothing');
  const end = store.fault(/architecturerollouts/, {
    status: 404,
    message: 'the server could not find the requested resource',
  });
  const message =
    /the cluster has no ArchitectureRollouts: is archwright installed there\? .*requested resource/;
  like(t, await rollout('status'), { code: 1, err: message });
  like(t, await rollout('pause', 'web'), { code: 1, err: message });
  end();
  store.fault(/architecturerollouts/, { status: 503 });
  like(t, await rollout('status', 'web'), { code: 3, err: /^archwright rollout: / });
});
