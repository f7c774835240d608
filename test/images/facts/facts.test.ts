import t from 'tap';
import { formatFacts, readFacts } from '../../../src/images/facts/wire.ts';
import { digestOf, factsOf, failureOf, defaultCacheTimes } from '../../support/facts.ts';
import { createRequestOf } from '../../../src/images/facts/facts.ts';
import { shortNameOf } from '../../../src/images/references/reference.ts';

const good = factsOf('docker.io/library/nginx:1.25');
const refused = failureOf('nginx', 'unauthorized');
const byPlugin = { ...refused, error: { ...refused.error, cause: 'plugin' } };
const platform = { os: 'linux', architecture: 'arm', variant: 'v7' };

t.test('valid facts are read unchanged', async (t) => {
  const { mediaType: _, ...withoutMediaType } = good;
  const cases = [
    good,
    withoutMediaType,
    { ...good, platforms: [platform], stale: true, source: 'memory', credentialSource: 'docker-config' },
    { ...good, digest: `sha512:${'a'.repeat(128)}`, confirmedAt: '2026-11-21T13:00:00+01:00' },
    { ...good, platforms: [], error: { code: 'not-an-image', message: 'a chart' } },
    failureOf('nginx', 'rate-limited', 1500),
    byPlugin,
    { ...failureOf('nginx', 'invalid-reference'), endpoint: '' },
    { ...good, platforms: Array.from({ length: 64 }, () => platform) },
    { ...good, platforms: [{ os: 'windows', architecture: 'amd64', osVersion: '10.0.20348.2' }] },
    { ...good, platforms: [{ os: 'linux', architecture: 'arm64', written: 'aarch64/v8.0' }] },
    { ...good, platforms: [{ os: 'linux', architecture: 'arm64', unnamed: true }] },
    { ...good, platforms: [{ os: 'linux', architecture: 'arm64', needsFeatures: true }] },
  ];
  for (const one of cases) t.strictSame(readFacts(JSON.parse(JSON.stringify(one))), one);
});

t.test('fields of newer versions are dropped', async (t) => {
  const newer = { ...good, score: 7, platforms: [{ ...platform, level: 3 }] };
  t.strictSame(readFacts(newer), { ...good, platforms: [platform] });
  t.strictSame(readFacts({ ...refused, error: { ...refused.error, cause: 'the moon' } }), refused);
});

t.test('malformed facts are refused with the name of the field', async (t) => {
  const error = { code: 'timeout', message: 'slow' };
  const cases: [string, unknown][] = [
    ['', null],
    ['', 'text'],
    ['image', [good]],
    ['image', { ...good, image: '' }],
    ['image', { ...good, image: 'a b' }],
    ['image', { ...good, image: 'a'.repeat(1025) }],
    ['digest', { ...good, digest: 'sha256:abc' }],
    ['digest', { ...good, digest: digestOf('a').toUpperCase() }],
    ['digest', { ...good, digest: `sha256:${'a'.repeat(10_000)}` }],
    ['mediaType', { ...good, mediaType: 'a'.repeat(256) }],
    ['platforms', { ...good, platforms: { length: 1 } }],
    ['platforms.0', { ...good, platforms: [null] }],
    ['platforms', { ...good, platforms: Array.from({ length: 65 }, () => platform) }],
    ['platforms', { ...good, error }],
    ['platforms.0.os', { ...good, platforms: [{ ...platform, os: '' }] }],
    ['platforms.0.os', { ...good, platforms: [{ ...platform, os: 'lin ux' }] }],
    ['platforms.0.architecture', { ...good, platforms: [{ ...platform, architecture: 'unknown' }] }],
    ['platforms.0.architecture', { ...good, platforms: [{ ...platform, architecture: '-arm' }] }],
    ['platforms.0.architecture', { ...good, platforms: [{ ...platform, architecture: 'a'.repeat(64) }] }],
    ['platforms.0.variant', { ...good, platforms: [{ ...platform, variant: 'v 7' }] }],
    ['platforms.0.osVersion', { ...good, platforms: [{ ...platform, osVersion: '10 0' }] }],
    ['platforms.0.osVersion', { ...good, platforms: [{ ...platform, osVersion: '1'.repeat(64) }] }],
    ['platforms.0.written', { ...good, platforms: [{ ...platform, written: 'arm/v7/v8' }] }],
    ['platforms.0.written', { ...good, platforms: [{ ...platform, written: 'a'.repeat(128) }] }],
    ['platforms.0.unnamed', { ...good, platforms: [{ ...platform, unnamed: 1 }] }],
    ['platforms.0.needsFeatures', { ...good, platforms: [{ ...platform, needsFeatures: 1 }] }],
    ['source', { ...good, source: 'rumor' }],
    ['credentialSource', { ...good, credentialSource: 'toString' }],
    ['endpoint', { ...good, endpoint: 'a'.repeat(262) }],
    ['endpoint', { ...good, endpoint: 'a b' }],
    ['confirmedAt', { ...good, confirmedAt: 'tomorrow' }],
    ['confirmedAt', { ...good, confirmedAt: '2026-13-40T12:00:00Z' }],
    ['confirmedAt', { ...good, confirmedAt: '2026' }],
    ['stale', { ...good, stale: 'false' }],
    ['error', { ...good, platforms: [], error: null }],
    ['error.code', { ...good, platforms: [], error: { ...error, code: 'tired' } }],
    ['error.message', { ...good, platforms: [], error: { ...error, message: 'a'.repeat(1025) } }],
    ['error.message', { ...good, platforms: [], error: { code: 'timeout' } }],
    ['error.retryAfterMs', { ...good, platforms: [], error: { ...error, retryAfterMs: -1 } }],
    ['error.retryAfterMs', { ...good, platforms: [], error: { ...error, retryAfterMs: Infinity } }],
  ];
  for (const [where, value] of cases) {
    t.throws(
      () => readFacts(value),
      { name: 'InvalidFacts', message: new RegExp(`^image facts: ${where === '' ? 'they' : where} `) },
      where,
    );
  }
});

t.test('facts of pull secrets are not shared, and what is shared is bounded', async (t) => {
  const line = `${JSON.stringify(good)}\n`;
  const ofPod = { ...good, credentialSource: 'pull-secret' } as const;
  t.equal([...formatFacts([ofPod, good, ofPod], 10_000)].join(''), line);
  t.equal([...formatFacts([good, good, good], 2 * line.length)].join(''), line.repeat(2));
});

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
