import t from 'tap';
import { deadlineLimits, maxImages, parseFactsRequest } from '../../../daemon/api/facts.ts';
import { like } from '../../support/like.ts';

const good = { images: [{ image: 'nginx', maxAgeMs: 5000 }], deadlineMs: 100 };

const parse = (value: unknown) => parseFactsRequest(Buffer.from(JSON.stringify(value)));

t.test('valid requests are read', async (t) => {
  like(t, parse(good), good);
  like(t, parse({ ...good, images: [{ image: 'x'.repeat(1024) }] }).images, {
    length: 1,
  });
  like(t, parse({ images: [], deadlineMs: 0.5 }), { images: [], deadlineMs: deadlineLimits.leastMs });
  like(t, parse({ ...good, deadlineMs: 1e12 }), { deadlineMs: deadlineLimits.mostMs });
  t.equal(
    parse({ ...good, images: Array.from({ length: maxImages }, () => good.images[0]) }).images.length,
    maxImages,
  );
  const ages = [{ image: 'x', maxAgeMs: 0 }, { image: 'x' }];
  t.strictSame(parse({ ...good, images: ages }).images, [
    ages[0],
    { image: 'x', maxAgeMs: Number.POSITIVE_INFINITY },
  ]);
  const { pullSecrets } = parse({
    ...good,
    auths: {
      'r.example/team': { username: 'ann', password: 'secret-of-ann' },
      'r.example': [{ username: 'a', password: 'b' }],
    },
  });
  like(t, await pullSecrets.lookup('r.example/team/app'), [
    { credential: { username: 'ann' }, source: 'pull-secret' },
    { credential: { username: 'a' } },
  ]);
  t.strictSame(await parse(good).pullSecrets.lookup('r.example/team/app'), []);
  const serviceAccount = { namespace: 'team', name: 'build.er' };
  t.strictSame(parse({ ...good, serviceAccount }).serviceAccount, serviceAccount);
  t.notOk('serviceAccount' in parse(good));
});

t.test('invalid requests are refused with the field', (t) => {
  const image = { image: 'nginx', maxAgeMs: 5000 };
  const cases: [unknown, RegExp][] = [
    [null, /^the body must be an object$/],
    [[], /^images is missing$/],
    ['text', /^the body must be an object$/],
    [{ images: {}, deadlineMs: 1 }, /^images must be a list$/],
    [{ images: [image] }, /^deadlineMs\b/],
    [{ images: [image], deadlineMs: '5' }, /^deadlineMs\b/],
    [{ images: [image], deadlineMs: 0 }, /^deadlineMs\b/],
    [{ ...good, other: 1 }, /^other is not a known field$/],
    [{ ...good, ['x'.repeat(1000)]: 1 }, /^"x{64}" is not a known field$/],
    [{ ...good, images: ['nginx'] }, /^images\.0\b/],
    [{ ...good, images: [image, null] }, /^images\.1 must be an object$/],
    [{ ...good, images: [image, { image: 'x', maxAgeMs: '5' }] }, /^images\.1\.maxAgeMs\b/],
    [{ ...good, images: [{ ...image, maxAgeMs: -1 }] }, /^images\.0\.maxAgeMs\b/],
    [{ ...good, images: [{ ...image, image: '' }] }, /^images\.0\.image\b/],
    [{ ...good, images: [{ ...image, image: 'x'.repeat(1025) }] }, /^images\.0\.image\b/],
    [{ ...good, images: [{ ...image, tag: 'x' }] }, /^images\.0\.tag is not a known field$/],
    [{ ...good, images: Array.from({ length: maxImages + 1 }, () => image) }, /^images\b/],
    [{ ...good, serviceAccount: null }, /^serviceAccount must be an object$/],
    [{ ...good, serviceAccount: { namespace: 'team', name: '' } }, /^serviceAccount\b.*names/],
    [{ ...good, serviceAccount: { namespace: 'team', name: 'hunter22,b' } }, /^serviceAccount\b.*names/],
    [
      { ...good, serviceAccount: { namespace: 'a', name: 'b', uid: 'c' } },
      /^serviceAccount\.uid is not a known field$/,
    ],
    [{ ...good, auths: { 'r.example': 'ann:hunter22' } }, /auths/],
  ];
  for (const [value, message] of cases) {
    const wanted = { code: 'bad-request', status: 400, message };
    t.throws(() => parse(value), wanted, JSON.stringify(value)?.slice(0, 80));
    t.throws(() => parse(value), { message: /^(?!.*hunter22)/ });
  }
  t.end();
});

t.test('invalid JSON is refused', (t) => {
  const message = 'the body is not JSON';
  for (const body of ['', '{', '{"images":', "{'a':1}", 'NaN', '[1,]', '{"\xff":1}']) {
    t.throws(() => parseFactsRequest(Buffer.from(body, 'latin1')), { code: 'bad-request', message }, body);
  }
  const refused: [string, object][] = [
    ['['.repeat(1_000_000) + ']'.repeat(1_000_000), {}],
    ['{"images":[],"deadlineMs":1e999}', { message: /^deadlineMs / }],
    ['{"images":[],"deadlineMs":1,"__proto__":{"images":[]}}', {}],
  ];
  for (const [body, more] of refused) {
    t.throws(() => parseFactsRequest(Buffer.from(body)), { code: 'bad-request', ...more }, body.slice(0, 60));
  }
  t.end();
});
