import * as fc from 'fast-check';
import t from 'tap';
import { scrub } from '../../src/telemetry/scrub.ts';
import { secret } from '../../src/telemetry/secret.ts';

t.test('a text without secrets is the same', async (t) => {
  t.equal(scrub('nothing to hide'), 'nothing to hide');
  t.equal(scrub(''), '');
});

t.test('forms', async (t) => {
  const text = 'p"ä ss/wörd+?';
  secret(text);
  const cases: [string, string, string][] = [
    ['plain', `a ${text} b`, 'a [secret] b'],
    ['at both ends', text, '[secret]'],
    ['twice', `${text} ${text}`, '[secret] [secret]'],
    ['side by side', `${text}${text}`, '[secret][secret]'],
    ['escaped in JSON', JSON.stringify({ text }), '{"text":"[secret]"}'],
    ['in a URL', `?q=${encodeURIComponent(text)}&r=1`, '?q=[secret]&r=1'],
  ];
  for (const [name, line, expected] of cases) t.equal(scrub(line), expected, name);
});

t.test('inside base64, at any offset', async (t) => {
  const text = 'correct horse battery staple';
  secret(text);
  for (const user of ['', 'u', 'us', 'use', 'user']) {
    for (const encoding of ['base64', 'base64url'] as const) {
      const header = Buffer.from(`${user}:${text}!`).toString(encoding);
      const inner = Buffer.from(text).toString('base64').slice(4, 20);
      t.match(scrub(`Basic ${header}`), /\[secret\]/, `${user} ${encoding}`);
      t.notOk(scrub(`Basic ${header}`).includes(inner), `${user} ${encoding}`);
    }
  }
});

t.test('base64 of long texts is not searched', async (t) => {
  for (const [length, expected] of [
    [512, true],
    [513, false],
  ] as const) {
    const text = String.fromCharCode(
      ...Array.from({ length }, (_, index) => 97 + ((index * 7 + length) % 26)),
    );
    secret(text);
    t.equal(scrub(Buffer.from(text).toString('base64')).includes('[secret]'), expected, `${length}`);
  }
});

t.test('a secret that begins with another is removed as a whole', async (t) => {
  secret('abcdefgh');
  secret('abcdefgh-and-more');
  t.equal(scrub('<abcdefgh-and-more>'), '<[secret]>');
});

t.test('overlapping secrets are removed as a whole', async (t) => {
  secret('overlap-one-');
  secret('one-two-three');
  t.equal(scrub('<overlap-one-two-three>'), '<[secret]>');
});

t.test('short texts stay', async (t) => {
  secret('error');
  t.equal(scrub('an error occurred'), 'an error occurred');
  secret('errors');
  t.equal(scrub('two errors occurred'), 'two [secret] occurred');
});

t.test('a lone surrogate does not throw', async (t) => {
  secret('surrogate\uD800');
  t.equal(scrub('<surrogate\uD800>'), '<[secret]>');
});

t.test('the oldest secrets are removed, repeated ones stay', async (t) => {
  secret('kept-by-use-secret');
  secret('forgotten-secret');
  for (let index = 0; index < 2047; index++) {
    secret(`filler-${index}-filler`);
    if (index === 1000) secret('kept-by-use-secret');
  }
  t.equal(scrub('kept-by-use-secret'), '[secret]');
  t.equal(scrub('forgotten-secret'), 'forgotten-secret');
  t.equal(scrub('filler-2046-filler'), '[secret]');
});

t.test('the limit on the number of secrets', async (t) => {
  secret('first-of-them-all');
  for (let index = 0; index < 2047; index++) secret(`room-${index}-room`);
  t.equal(scrub('first-of-them-all'), '[secret]');
  secret('one-more-than-room');
  t.equal(scrub('first-of-them-all'), 'first-of-them-all');
});

t.test('the limit on characters; the newest secret always stays', async (t) => {
  secret('before-the-large-ones');
  for (const letter of ['a', 'b', 'c']) secret(letter.repeat(600_000));
  t.equal(scrub('before-the-large-ones'), 'before-the-large-ones');
  t.equal(scrub('c'.repeat(600_000)), '[secret]');

  secret('d'.repeat(448_576));
  t.equal(scrub('c'.repeat(600_000)), '[secret]', 'both just fit');
  secret('one-more-secret');
  t.equal(scrub('c'.repeat(600_000)), 'c'.repeat(600_000));
  secret('e'.repeat(1_100_000));
  t.equal(scrub('e'.repeat(1_100_000)), '[secret]', 'larger than all room, but the newest');
});

t.test('a shared form stays as long as one of its secrets', async (t) => {
  secret('shared a'); // in a URL: shared%20a
  secret('shared%20a');
  for (let index = 0; index < 2047; index++) secret(`other-${index}-other`);
  t.equal(scrub('shared%20a'), '[secret]');
  t.equal(scrub('shared a'), 'shared a');
  secret('the-last-that-shares');
  t.equal(scrub('shared%20a'), 'shared%20a', 'gone with the last');
});

t.test('property: secrets are removed from any text', async () => {
  const part = fc.string({ unit: fc.constantFrom('a', 'b', '-', '"', 'ä'), maxLength: 12 });
  const hidden = fc.string({ unit: fc.constantFrom('a', 'b', '-'), minLength: 6, maxLength: 10 });
  fc.assert(
    fc.property(fc.array(hidden, { minLength: 1, maxLength: 4 }), fc.array(part), (secrets, parts) => {
      for (const text of secrets) secret(text);
      const line = parts.flatMap((part, index) => [part, secrets[index % secrets.length] ?? '']).join('');
      const clean = scrub(line).split('[secret]');
      return clean.every((rest) => secrets.every((text) => !rest.includes(text)));
    }),
    { numRuns: 300 },
  );
});
