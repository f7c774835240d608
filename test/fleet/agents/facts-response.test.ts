import t from 'tap';
import { factsOfAnswer, factsOfLine } from '../../../src/fleet/agents/facts-response.ts';
import { factsOf, failureOf } from '../support.ts';

const image = 'registry.example/app:1';
const url = 'https://a:1';

t.test('the one result about the image is taken, without what is not known', (t) => {
  t.strictSame(factsOfAnswer({ results: [factsOf(image)] }, image, url), factsOf(image));
  t.strictSame(
    factsOfAnswer({ later: 1, results: [{ ...factsOf(image), later: 1 }] }, image, url),
    factsOf(image),
  );
  t.strictSame(
    factsOfAnswer({ results: [failureOf(image, 'not-found')] }, image, url),
    failureOf(image, 'not-found'),
  );
  t.end();
});

t.test('anything else is a bad answer', (t) => {
  for (const answer of [
    null,
    undefined,
    1,
    'text',
    [],
    {},
    { results: null },
    { results: [] },
    { results: [factsOf(image), factsOf(image)] },
    { results: [null] },
    { results: [{}] },
    { results: [factsOf('registry.example/app:2')] },
    { results: [{ ...factsOf(image), stale: 'no' }] },
  ]) {
    t.throws(
      () => factsOfAnswer(answer, image, url),
      { code: 'bad-answer', where: url },
      JSON.stringify(answer),
    );
  }
  t.end();
});

t.test('lines', (t) => {
  t.strictSame(factsOfLine(JSON.stringify(factsOf(image))), factsOf(image));
  for (const line of ['', '{', 'null', '{}', JSON.stringify(factsOf(image, { digest: 'x' }))]) {
    t.equal(factsOfLine(line), undefined, line);
  }
  for (const credentialSource of ['pull-secret', 'service-account'] as const) {
    const ofPod = factsOf(image, { credentialSource });
    t.equal(factsOfLine(JSON.stringify(ofPod)), undefined, 'what a pod’s own learned is not for everyone');
  }
  t.end();
});
