import t, { type Test } from 'tap';
import { startReflector, type ReflectorOptions } from '../../../src/kube/watch/reflector.ts';
import { until } from '../../support/until.ts';
import { connect, connectedStore } from '../support.ts';
import { createHastyClock } from '../../support/fake-clock.ts';
import { events, eventsThenEnd, json, startKubeServer, type KubeServer } from '../../support/kube-server.ts';
import { silentLog, recordingLog } from '../../support/captured.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { unlessAborted } from '../../../src/async/wait.ts';
import { like } from '../../support/like.ts';

const path = '/api/v1/nodes';
const watch = `${path}?watch`;

function node(name: string, version: string, architecture = 'amd64'): object {
  return { metadata: { name, resourceVersion: version }, status: { nodeInfo: { architecture } } };
}

function page(version: string, items: object[], more?: string): object {
  return { metadata: { resourceVersion: version, ...(more === undefined ? {} : { continue: more }) }, items };
}

async function start(
  t: Test,
  prepare: (server: KubeServer) => void,
  options: Partial<ReflectorOptions<string>> = {},
) {
  const server = await startKubeServer();
  t.teardown(() => server.close());
  prepare(server);
  const clock = createHastyClock();
  const reflector = startReflector({
    client: connect(t, { access: server.access }),
    path,
    trim: (object) => (JSON.stringify(object).includes('arm64') ? 'arm64' : 'amd64'),
    log: silentLog,
    clock,
    ...options,
  });
  t.teardown(() => reflector.stop());
  return { server, reflector, delays: clock.sleeps };
}

void t.test('a paged list is followed by watch events', async (t) => {
  const { server, reflector } = await start(t, (server) => {
    server.script(path, json(page('10', [node('a', '1')], 'next')), json(page('10', [node('b', '2')])));
    server.script(
      watch,
      events(
        { type: 'ADDED', object: node('c', '11', 'arm64') },
        { type: 'DELETED', object: node('a', '12') },
        { type: 'BOOKMARK', object: { metadata: { resourceVersion: '20' } } },
        { type: 'MODIFIED', object: node('b', '21', 'arm64') },
      ),
    );
  });
  await until(() => reflector.get('', 'b') === 'arm64', 'changed');
  t.equal(reflector.get('', 'a'), undefined);
  t.equal(reflector.get('', 'c'), 'arm64');
  t.equal(server.requests[0]?.query.get('limit'), '500');
  t.equal(server.requests[1]?.query.get('continue'), 'next');
  const query = server.requests[2]?.query;
  t.match(query?.get('resourceVersion'), '10');
  t.equal(query?.get('allowWatchBookmarks'), 'true');
  t.equal(query?.get('timeoutSeconds'), '450');
});

void t.test('a watch resumes at its last version, after a pause', async (t) => {
  const { server, reflector, delays } = await start(t, (server) => {
    server.script(path, json(page('10', [node('a', '1')])));
    server.script(
      watch,
      eventsThenEnd({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '15' } } }),
      eventsThenEnd(),
      events({ type: 'ADDED', object: node('b', '16') }),
    );
  });
  await until(() => reflector.size === 2, 'changed');
  const watches = server.requests.filter((request) => request.query.get('watch'));
  t.strictSame(
    watches.map((request) => request.query.get('resourceVersion')),
    ['10', '15', '15'],
  );
  t.strictSame(delays, [1000, 1000]);
});

void t.test('a 410, as status or as event, leads to a new list', async (t) => {
  const { server, reflector } = await start(t, (server) => {
    server.script(
      path,
      json(page('10', [node('a', '1')])),
      json(page('30', [node('b', '30')])),
      json(page('40', [node('c', '40')])),
    );
    server.script(
      watch,
      json({ kind: 'Status', code: 410, message: 'too old' }, 410),
      events({ type: 'ERROR', object: { kind: 'Status', code: 410, message: 'too old' } }),
      events(),
    );
  });
  await until(() => reflector.get('', 'c') !== undefined, 'changed');
  t.equal(reflector.size, 1);
  await server.untilReceived(watch, 3);
  t.equal(server.requests.at(-1)?.query.get('resourceVersion'), '40');
});

void t.test(
  'failures, and lists without a version, are retried with growing delays or after Retry-After',
  async (t) => {
    const { reflector, delays } = await start(t, (server) => {
      const broken = json({ message: 'no' }, 500);
      server.script(
        path,
        broken,
        broken,
        json({ metadata: {}, items: [] }),
        json({}, 429, { 'retry-after': '20' }),
        json(page('1', [node('a', '1')])),
      );
      server.script(watch, events());
    });
    await reflector.ready(neverAborted);
    t.strictSame(delays, [750, 1500, 3000, 20_000]);
  },
);

void t.test('a reset, an error event and a malformed line do not end the watch', async (t) => {
  const { reflector } = await start(t, (server) => {
    server.script(path, json(page('1', [])));
    server.script(
      watch,
      (_request, response) => {
        response.writeHead(200);
        response.write('\n');
        response.socket?.destroy();
      },
      events({ type: 'ERROR', object: { kind: 'Status', code: 500, message: 'etcd' } }),
      (_request, response) => response.end('{"type":\n'),
      events({ type: 'ADDED', object: node('z', '2') }),
    );
  });
  await until(() => reflector.get('', 'z') !== undefined, 'changed');
  t.equal(reflector.get('', 'z'), 'amd64');
});

void t.test('an exception of a listener does not end the watch', async (t) => {
  const { reflector } = await start(t, (server) => {
    server.script(path, json(page('1', [])));
    server.script(
      watch,
      events(
        { type: 'ADDED', object: node('a', '2') },
        { type: 'DELETED', object: node('unknown', '3') },
        { type: 'ADDED', object: node('b', '4') },
      ),
    );
  });
  let calls = 0;
  const each: string[] = [];
  reflector.onEach(({ name }) => {
    each.push(name);
    throw new Error('listener');
  });
  reflector.onChange(() => {
    calls += 1;
    throw new Error('listener');
  });
  await until(() => reflector.size === 2, 'changed');
  t.equal(calls, 4, 'after the list, and after each event');
  t.strictSame(each, ['a', 'b'], 'objects that changed');
});

void t.test('ready rejects when its signal aborts', async (t) => {
  const { reflector } = await start(t, (server) => server.script(path, () => undefined));
  await t.rejects(reflector.ready(AbortSignal.timeout(20)));
  await t.rejects(reflector.ready(AbortSignal.abort(new Error('before'))), { message: 'before' });
});

void t.test('values can be limited to one namespace', async (t) => {
  const pods = '/api/v1/pods';
  const pod = (namespace: string, name: string, version: string) => ({
    metadata: { namespace, name, resourceVersion: version },
  });
  const { reflector } = await start(
    t,
    (server) => {
      server.script(pods, json(page('10', [pod('a', 'x', '1'), pod('b', 'x', '2'), pod('a', 'y', '3')])));
      server.script(
        `${pods}?watch`,
        events(
          { type: 'DELETED', object: pod('b', 'x', '11') },
          { type: 'MODIFIED', object: pod('a', 'y', '12') },
        ),
      );
    },
    {
      path: pods,
      trim: ({ metadata: { namespace, name, resourceVersion } = {} }) =>
        `${namespace}/${name} ${resourceVersion}`,
    },
  );
  await until(() => reflector.get('a', 'y') === 'a/y 12', 'the last event');
  t.strictSame([...reflector.values('a')], ['a/x 1', 'a/y 12']);
  t.strictSame([...reflector.values('b')], []);
  t.equal(reflector.size, 2);
});

const configs = '/apis/arch.example/v1alpha1/podplacementconfigs';
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
  const clock = { ...systemClock, random: () => 1, sleep };
  const reflector = startReflector({
    client,
    path: configs,
    isOptional: true,
    trim: (each) => each,
    log,
    clock,
  });
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

void t.test('a missing permission is logged once, and looked for after growing pauses', async (t) => {
  const { lines, reflector, sleeps, until } = await watching(t, forbidden);
  await reflector.ready(neverAborted);
  await until(() => sleeps.length >= 7);
  t.strictSame(sleeps.slice(0, 7), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  like(
    t,
    lines.filter(({ level }) => level !== 'debug'),
    [{ level: 'warn', path: configs }],
  );
});

void t.test('when the CRD is removed, the collection becomes empty', async (t) => {
  const { store, reflector, until } = await watching(t);
  store.put(`/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs/web`, object);
  await until(() => reflector.size === 1);
  store.fault(/podplacementconfigs/, absent);
  store.cutWatches('end', configs);
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
  store.cutWatches('end', configs);
  await until(() => store.received(`GET ${configs}`).length >= 3);
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
