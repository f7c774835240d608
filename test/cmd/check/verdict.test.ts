import t from 'tap';
import { AllowList } from '../../../cmd/check/allow-list.ts';
import type { CheckedPod } from '../../../cmd/check/pods.ts';
import { judge } from '../../../cmd/check/verdict.ts';
import { failedFacts, type FactsError, type ImageFacts } from '../../../src/images/facts/facts.ts';
import { platformsOf } from '../../../src/names/platform.ts';

const now = Date.parse('2026-11-22T20:00:00Z');

function judged(facts: ImageFacts | undefined, pod: Partial<CheckedPod> = {}) {
  const image = 'web:1';
  const whole: CheckedPod = {
    owner: { kind: 'Pod', namespace: '', name: 'web' },
    os: 'linux',
    chosen: undefined,
    uses: [{ image, usedBy: ['web'], pullPolicy: 'IfNotPresent', volumeOnly: false }],
    places: [{ image, usedBy: 'web', file: 'a.yaml', line: 1 }],
    ...pod,
  };
  const [result] = judge(whole, ['amd64'], () => facts, new AllowList([], now), now);
  return [result?.verdict, result?.why];
}

const failed = (error: FactsError) => failedFacts('web:1', error, now);

function factsOf(platforms: readonly string[], more: Partial<ImageFacts> = {}): ImageFacts {
  const written = platforms.map((text) => {
    const [os = '', architecture = '', variant] = text.split('/');
    return { os, architecture, ...(variant !== undefined && { variant }) };
  });
  const { error: _, ...facts } = failed({ code: 'timeout', message: '' });
  return { ...facts, platforms: platformsOf(written), ...more };
}

t.test('the message says when to try a registry again', (t) => {
  const limit = (message: string, retryAfterMs?: number) =>
    judged(failed({ code: 'rate-limited', message, ...(retryAfterMs !== undefined && { retryAfterMs }) }));
  t.strictSame(limit('m', 90_000), ['rate-limited', 'm; try again after 2026-11-22T20:01:30Z (in 2 min)']);
  t.strictSame(
    limit('m', 15 * 60_000),
    ['rate-limited', 'm; try again after 2026-11-22T20:15:00Z (in at least 15 min)'],
    'longer pauses are capped',
  );
  t.strictSame(limit('m'), ['rate-limited', 'm; try again later']);
  t.strictSame(limit('registry-1.docker.io: 429'), [
    'rate-limited',
    'registry-1.docker.io: 429; try again later; Docker Hub counts the requests of 6 hours',
  ]);
  t.end();
});

t.test('the verdict on each image', (t) => {
  const depends = 'not on every amd64 node: it depends on runtime, CPU level';
  const cases: [what: string, found: unknown, verdict: string, why: string][] = [
    ['it has the architecture', judged(factsOf(['linux/amd64', 'linux/arm64'])), 'ok', ''],
    ['only for a CPU level', judged(factsOf(['linux/amd64/v3'])), 'ok', depends],
    [
      'a CPU level from an override',
      judged(factsOf(['linux/amd64'], { requiredLevel: 3 })),
      'ok',
      'needs x86-64-v3; not on every amd64 node: it depends on CPU level',
    ],
    ['another one', judged(factsOf(['linux/arm64'])), 'missing', 'has arm64'],
    [
      'a pod for Windows',
      judged(factsOf(['linux/amd64']), { os: 'windows' }),
      'missing',
      'has no platform for windows, only linux/amd64',
    ],
    [
      'old facts',
      judged(factsOf(['linux/amd64'], { stale: true })),
      'ok',
      'from the cache, because the registry does not answer',
    ],
    ['no facts', judged(undefined), 'unreachable', 'no answer in time'],
    [
      'a pod without an architecture',
      judged(factsOf(['linux/amd64']), { chosen: [] }),
      'pinned',
      'the pod requires an architecture that does not exist',
    ],
  ];
  for (const [what, found, verdict, why] of cases) t.strictSame(found, [verdict, why], what);
  const [, long = ''] = judged(failed({ code: 'not-found', message: '\u001b'.repeat(5000) }));
  t.ok(long.length <= 600 && !long.includes('\u001b'), 'messages are bounded and printable');
  t.end();
});
