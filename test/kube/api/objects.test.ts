import t from 'tap';
import { timeOf } from '../../../src/kube/api/objects.ts';
import { clusterPath, namespacedPath, paths } from '../../../src/kube/api/paths.ts';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { PageSize } from '../../../src/kube/api/pages.ts';

t.test('a time that is no text is not known', async (t) => {
  t.equal(timeOf('2026-11-27T10:00:00Z'), Date.UTC(2026, 10, 27, 10));
  for (const value of [undefined, null, '', 'soon', 5, { toString: 'toString' }]) t.equal(timeOf(value), 0);
});

const cases: readonly (readonly [string, string])[] = [
  [paths.pods(), '/api/v1/pods'],
  [paths.pods('shop'), '/api/v1/namespaces/shop/pods'],
  [paths.pods('shop', 'web'), '/api/v1/namespaces/shop/pods/web'],
  [paths.nodes(), '/api/v1/nodes'],
  [paths.nodes('node-1'), '/api/v1/nodes/node-1'],
  [paths.leases('shop', 'x'), '/apis/coordination.k8s.io/v1/namespaces/shop/leases/x'],
  [paths.daemonSets('shop', 'x'), '/apis/apps/v1/namespaces/shop/daemonsets/x'],
  [namespacedPath('batch/v1', 'jobs')('a/b', 'c?d'), '/apis/batch/v1/namespaces/a%2Fb/jobs/c%3Fd'],
  [clusterPath('x.example/v1', 'things')('..%'), '/apis/x.example/v1/things/..%25'],
];

t.test('paths of collections and objects have encoded names', async (t) => {
  for (const [path, expected] of cases) t.equal(path, expected);
});

function listOf(bytes: number, limits: number[]) {
  return (limit: number, maxBytes: number): Promise<string> => {
    limits.push(limit);
    return limit * bytes > maxBytes
      ? Promise.reject(new KubeError('too-large', 'GET /x', 'too large'))
      : Promise.resolve('page');
  };
}

const MiB = 1024 * 1024;

for (const [title, bytes, wanted] of [
  ['of ordinary size', 20_000, [500, 500]],
  ['of 50 KB', 50_000, [500, 125, 125]],
  ['of one MiB', MiB, [500, 125, 32, 8, 8]],
  ['as large as a response may be', 16 * MiB, [500, 125, 32, 8, 2, 1, 1]],
] as const) {
  void t.test(`page size for objects ${title}`, async (t) => {
    const limits: number[] = [];
    const pages = new PageSize();
    t.equal(await pages.read(listOf(bytes, limits)), 'page');
    t.equal(await pages.read(listOf(bytes, limits)), 'page');
    t.strictSame(limits, wanted, 'the second read starts with the size that worked');
  });
}

void t.test('after large objects, pages of small ones grow again', async (t) => {
  const limits: number[] = [];
  const pages = new PageSize();
  await pages.read(listOf(16 * MiB, limits));
  for (let page = 0; page < 40; page += 1) await pages.read(listOf(1000, limits));
  const each = [1, 4, 16, 64, 256].flatMap((limit) => Array<number>(8).fill(limit));
  t.strictSame(limits.slice(5), [...each, 500]);
  await pages.read(listOf(MiB, limits));
  t.strictSame(limits.slice(-4), [500, 125, 32, 8]);
});

void t.test('an object that is too large, and other errors, are thrown', async (t) => {
  const limits: number[] = [];
  const pages = new PageSize();
  await t.rejects(pages.read(listOf(17 * MiB, limits)), { code: 'too-large' });
  t.strictSame(limits, [500, 125, 32, 8, 2, 1]);
  const gone = new KubeError('gone', 'GET /x', 'gone');
  await t.rejects(
    new PageSize().read(() => Promise.reject(gone)),
    gone,
  );
  const defect = new TypeError('a defect');
  await t.rejects(
    new PageSize().read(() => Promise.reject(defect)),
    defect,
  );
});
