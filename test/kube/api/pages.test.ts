import t from 'tap';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { PageSize } from '../../../src/kube/api/pages.ts';

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
