import t from 'tap';
import { createRequestOf } from '../../src/images/facts/facts.ts';
import { shortNameOf } from '../../src/images/references/reference.ts';
import { defaultCacheTimes } from '../support/facts.ts';

const nobody = { namespace: 'default', serviceAccount: undefined };

t.test('a short name is noted only if nodes resolve it by themselves', async (t) => {
  let isOwn = false;
  const requestOf = createRequestOf(defaultCacheTimes, false, () => isOwn);
  const namesOf = () =>
    ['team/app:v1', 'quay.io/team/app:v1'].map((image) => requestOf(image, 'Always', nobody).shortName);
  t.strictSame(namesOf(), [undefined, undefined]);
  isOwn = true;
  t.strictSame(namesOf(), ['team/app', undefined]);
});

t.test('short names by the rules of CRI-O', async (t) => {
  const digest = `sha256:${'a'.repeat(64)}`;
  for (const [image, name] of [
    ['nginx', 'nginx'],
    [`nginx:1@${digest}`, 'nginx'],
    ['MYREG/app:v1', 'MYREG/app'],
    ['a_b.c/d', 'a_b.c/d'],
    ['localhost/app', undefined],
    ['localhost', 'localhost'],
    ['host:5000/app', undefined],
    ['docker.io/nginx', undefined],
  ] as const)
    t.equal(shortNameOf(image), name, image);
});
