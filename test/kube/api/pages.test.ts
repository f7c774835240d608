import t from 'tap';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { PageSize } from '../../../src/kube/api/pages.ts';

function listOf(bytes: number, asked: number[]) {
  return (limit: number, maxBytes: number): Promise<string> => {
    asked.push(limit);
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
  ['as large as an answer may be', 16 * MiB, [500, 125, 32, 8, 2, 1, 1]],
] as const) {
  void t.test(`objects ${title}`, async (t) => {
    const asked: number[] = [];
    const pages = new PageSize();
    t.equal(await pages.read(listOf(bytes, asked)), 'page');
    t.equal(await pages.read(listOf(bytes, asked)), 'page');
    t.same(asked, wanted, 'and it is remembered');
  });
}

void t.test('one object that is too large, and other errors', async (t) => {
  const asked: number[] = [];
  const pages = new PageSize();
  await t.rejects(pages.read(listOf(17 * MiB, asked)), { code: 'too-large' });
  t.same(asked, [500, 125, 32, 8, 2, 1]);
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
