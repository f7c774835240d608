/** `archwright report --html --newer-tags`. */
import t, { type Test } from 'tap';
import { newerTags } from '../../../cmd/report/newer-tags.ts';
import { image, multiArch } from '../../support/registry/content.ts';
import type { TestRegistry, TestRegistryOptions } from '../../support/registry/server.ts';
import { putPod, putPullSecret, startCluster } from './cluster.ts';
import { directory, files, registry } from '../world.ts';
import { like } from '../../support/like.ts';

t.test('newer tags have the same variant, the smallest step first', async (t) => {
  const cases: [tag: string, tags: readonly string[], newer: readonly string[]][] = [
    ['1.2.3', ['1.2.3', '1.2.4', '1.2.10', '1.9.1', '2.0.0', '10.1.0'], ['1.2.10', '1.9.1', '10.1.0']],
    ['1.2.3', ['1.2.2', '1.1.9', '0.9.9'], []],
    ['1.9', ['1.10', '1.11'], ['1.11', '1.10']],
    ['1.9.0', ['1.10.0', '1.10.1', '2.0.0', '1.9.1'], ['1.9.1', '1.10.1', '2.0.0']],
    ['1.2', ['1.3', '1.3.1', '2', '2.1', 'latest', 'v9.9'], ['1.3', '2.1']],
    ['v1.2.3', ['1.2.4', 'v1.2.5', 'v2.0.0'], ['v1.2.5', 'v2.0.0']],
    ['16', ['17', '18', '17.1', '18-alpine'], ['18', '17']],
    ['1.25-alpine', ['1.26', '1.26-alpine', '1.27-alpine-slim', '1.27-bookworm'], ['1.26-alpine']],
    ['1.25-alpine3.18', ['1.26-alpine3.20', '1.27-alpine', '1.26-debian3.20'], ['1.26-alpine3.20']],
    ['12.1.0-bookworm-slim', ['12.2.0-bookworm-slim', '12.3.0-bookworm'], ['12.2.0-bookworm-slim']],
    ['1.2.3', ['1.3.0-rc1', '1.3.0-beta.2', '2.0.0-SNAPSHOT'], []],
    ['1.2.3-rc1', ['1.2.3-rc2', '1.2.3', '2.0.0-rc1'], []],
    ['1.2.3-debian-12-r3', ['1.2.4-debian-12-r0', '1.3.0'], ['1.2.4-debian-12-r0']],
    ['latest', ['1.2.3', '2.0.0'], []],
    ['sha-abcdef', ['sha-fedcba'], []],
    ['3', ['4', '5.1', '20240923', '20250108'], ['4']],
    ['20240923', ['3', '20250108', '99999999'], ['20250108']],
    ['3.20', ['3.21', '2025.1', '3.20240923'], ['3.21']],
    ['2024.9.1-slim', ['2024.12.0-slim', '2101.1.0-slim', '3.0.0-slim'], ['2024.12.0-slim']],
    ['99999999999999999999.1', ['99999999999999999999.2'], []],
  ];
  for (const [tag, tags, newer] of cases)
    t.strictSame(newerTags(tag, tags), newer, `${tag}: ${tags.join(' ')}`);
});

/** The requests for tags that the registry answered. */
const listsIn = ({ requests }: TestRegistry) =>
  requests.filter(({ path, status }) => path.endsWith('/tags/list') && status === 200);

const regcred = { spec: { imagePullSecrets: [{ name: 'regcred' }] } };

async function cluster(t: Test) {
  const closed = await registry(t, {
    auth: { kind: 'basic', users: { ann: 'password-of-ann' } },
    tagsPerPage: 2,
  });
  const single = image('linux/amd64');
  const both = multiArch(['linux/amd64', 'linux/arm64']);
  for (const tag of ['1.2.3', '1.2.4']) closed.push('team/app', tag, single);
  for (const tag of ['1.3.0', '2.0.0', '2.0.0-alpine', 'latest']) closed.push('team/app', tag, both);
  closed.push('team/job', '1.0.0', single);
  const { store, reportWith } = await startCluster(t);
  putPullSecret(store, 'shop', closed.host, 'ann');
  const images = ['app:1.2.3', 'app:2.0.0-alpine', 'job:1.0.0', `job:1.0.0@${single.digest}`];
  for (const [index, name] of images.entries())
    putPod(store, `shop/p${index}`, [`${closed.host}/team/${name}`], regcred);
  const { directory: DOCKER_CONFIG } = files(t, { 'config.json': '{}' });
  const XDG_CACHE_HOME = directory(t);
  const env = { XDG_CACHE_HOME, DOCKER_CONFIG };
  const report = (...args: string[]) => reportWith({ env }, '--html', '-', ...args);
  return { closed, report };
}

t.test('--html --newer-tags suggests newer tags', async (t) => {
  const { closed, report } = await cluster(t);
  const without = await report();
  like(t, without, { code: 0, err: '' });
  t.notMatch(without.out, /[Nn]ewer tag|in place of/);
  const unasked = closed.requests.filter(({ path }) => path.endsWith('/tags/list'));
  t.strictSame(unasked, [], 'off by default');

  closed.clearRequests();
  const { out, code, err } = await report('--newer-tags');
  t.strictSame([code, err], [0, '']);
  const text = out.replaceAll(closed.host, 'R');
  t.match(text, /"label":"Newer tag"/);
  t.match(
    text,
    /Take R\/team\/app:1\.3\.0 in place of <span class="name">R\/team\/app:1\.2\.3</,
    'the nearest tag with the architecture',
  );
  t.match(text, /Build for the architecture: <span class="name">R\/team\/job:1\.0\.0</);
  t.match(text, /\["R\/team\/app:1\.2\.3",[^\]]*\["image"\],"amd64","R\/team\/app:1\.3\.0","has amd64"\]/);
  const lists = listsIn(closed).map(({ path, query }) => `${path} ${query.get('last') ?? ''}`);
  const pages = ['app/tags/list ', 'app/tags/list 1.2.4', 'app/tags/list 2.0.0', 'job/tags/list '];
  const wanted = pages.map((page) => `/v2/team/${page}`);
  t.strictSame(lists.sort(), wanted, 'each repository once, in pages');
  t.notMatch(out, /password-of-ann/);

  closed.faults.add(/\/tags\/list/, { kind: 'status', status: 429 });
  const limited = await report('--newer-tags', '--no-cache');
  like(t, limited, { code: 0, err: /^archwright: warning: newer tags: 127.*\n/ });

  closed.faults.clear();
  for (let index = 0; index < 30; index += 1) closed.push('team/job', `0.${index}`, image('linux/amd64'));
  const truncated = await report('--newer-tags');
  const warning = 'newer tags: R/team/job has more than the 20 tags that were listed';
  t.equal(truncated.err.replaceAll(closed.host, 'R'), `archwright: warning: ${warning}\n`);
  t.ok(truncated.out.replaceAll(closed.host, 'R').includes(`<p>N${warning.slice(1)}</p>`));
});

/** A cluster with `app:1.0` for amd64, which has arm64 as `app:1.1`. */
async function withNewer(t: Test, options: TestRegistryOptions = {}) {
  const server = await registry(t, options);
  server.push('app', '1.0', image('linux/amd64'));
  server.push('app', '1.1', multiArch(['linux/amd64', 'linux/arm64']));
  const { store, report } = await startCluster(t);
  const find = async () => {
    const { code, out, err } = await report('-o', 'json', '--newer-tags', '--no-cache');
    t.equal(code, 0, err);
    return { isFound: out.includes(`"newerTag": "${server.host}/app:1.1"`), err };
  };
  return { server, app: [`${server.host}/app:1.0`], store, find };
}

t.test('images of one namespace with high CPU requests leave lookups for the others', async (t) => {
  const { server, app, store, find } = await withNewer(t);
  for (let index = 0; index < 60; index += 1) {
    server.push(`evil-${index}`, '1.0', image('linux/amd64'));
    putPod(store, `evil/p${index}`, [`${server.host}/evil-${index}:1.0`], { requests: { cpu: '1000' } });
  }
  putPod(store, 'shop/app', app);
  like(t, await find(), { isFound: true, err: /only 50 images were looked up/ });
  t.equal(listsIn(server).length, 50);
});

t.test('without the permission to read Secrets, tags are listed anonymously', async (t) => {
  const { app, store, find } = await withNewer(t);
  putPod(store, 'shop/app', app, regcred);
  store.fault(/\/(?:secrets|serviceaccounts)\//, { status: 403 });
  const { isFound, err } = await find();
  t.ok(isFound);
  t.notMatch(err, /newer tags/);
});

t.test('if credentials may not list tags, those of other pods with the image may', async (t) => {
  const users = ['ann', 'ann', 'bob', 'eve', 'joe'];
  const passwords = Object.fromEntries(users.map((name) => [name, `password-of-${name}`]));
  const newer = await withNewer(t, { auth: { kind: 'basic', users: passwords } });
  const { server: closed, app, store, find } = newer;
  for (const [index, name] of users.entries()) {
    putPullSecret(store, `n${index}`, closed.host, name);
    putPod(store, `n${index}/app`, app, regcred);
  }
  const report = async () => {
    closed.clearRequests();
    const found = await find();
    const lists = closed.requests.filter(({ path }) => path.endsWith('/tags/list'));
    return { ...found, listedAs: lists.flatMap(({ authorization }) => authorization?.user ?? []) };
  };
  t.strictSame(await report(), { isFound: true, err: '', listedAs: ['ann'] });

  const refuse = (status: number, times = Infinity) =>
    closed.faults.add(/\/tags\/list/, { kind: 'status', status }, { times, isAuthorized: true });
  for (const status of [401, 403, 404]) {
    refuse(status, 1);
    t.strictSame(await report(), { isFound: true, err: '', listedAs: ['ann', 'bob'] }, `${status}`);
  }

  refuse(503, 1);
  like(t, await report(), { isFound: false, err: /503/, listedAs: ['ann'] }, 'others would fail too');

  refuse(403);
  const { err, ...refused } = await report();
  t.strictSame(refused, { isFound: false, listedAs: ['ann', 'bob', 'eve'] }, 'at most three');
  t.match(
    err,
    /^archwright: warning: newer tags: [^\n]*n0\/regcred[^\n]*n2\/regcred[^\n]*n3\/regcred[^\n]*\n$/,
  );
});
