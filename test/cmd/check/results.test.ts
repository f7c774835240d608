/**
 * Verdicts of `archwright check`, and their JUnit and SARIF with extreme names. The texts are valid by Jenkins'
 * junit-10.xsd and by sarif-schema-2.1.0.json; another element, attribute or property needs a look at these.
 */
import t from 'tap';
import { classes, type Result, type CheckVerdict, checkPod } from '../../../cmd/check/verdict.ts';
import { asJunit, asSarif, type Checked } from '../../../cmd/check/write.ts';
import { programVersion } from '../../../cmd/program/version.ts';
import { AllowList } from '../../../cmd/check/allow-list.ts';
import type { CheckedPod } from '../../../cmd/check/pods.ts';
import { failedFacts, type FactsError, type ImageFacts } from '../../../src/images/facts/facts.ts';
import { platformsOf } from '../../../src/names/platform.ts';
import { archLabel, notIn, termOf } from '../../support/placement-input.ts';
import { like } from '../../support/like.ts';

const hostile = 'a<b>&"\'\u0000\u001b[31m\ud800\ufffe]]>é{0}\\';

function result(verdict: CheckVerdict, file: string, more: Partial<Result> = {}): Result {
  const owner = { namespace: 'shop', kind: 'Deployment', name: 'web' };
  const use = { usedBy: 'app', image: 'app:1', architecture: 'arm64' };
  return { ...owner, ...use, file, line: 3, verdict, why: verdict === 'ok' ? '' : 'so', ...more };
}

const checked: Checked = {
  architectures: ['arm64'],
  allowList: [],
  results: [
    result('ok', 'k8s/a b.yaml'),
    result('missing', 'k8s/a b.yaml', { line: 7, name: hostile, image: '[x](https://evil)', why: hostile }),
    result('unauthorized', '/elsewhere/c#d.yaml', { namespace: '' }),
    result('allowed', 'standard input'),
    result('pinned', '../up.yaml'),
  ],
};
const all: Checked = {
  ...checked,
  results: Object.keys(classes).map((verdict) => result(verdict as CheckVerdict, 'a')),
};

t.test('JUnit output', (t) => {
  const escaped = "a&lt;b&gt;&amp;&quot;'??[31m\ufffd?]]&gt;é{0}\\";
  const web = 'classname="shop/Deployment/web" name="app: app:1 for arm64"';
  t.equal(
    asJunit(checked),
    `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="archwright check" tests="5" failures="2" errors="1">
  <testsuite name="k8s/a b.yaml" tests="2" failures="1" errors="0" skipped="0" file="k8s/a b.yaml">
    <testcase ${web}/>
    <testcase classname="shop/Deployment/${escaped}" name="app: [x](https://evil) for arm64">
      <failure type="missing" message="k8s/a b.yaml:7: missing: ${escaped}"/>
    </testcase>
  </testsuite>
  <testsuite name="/elsewhere/c#d.yaml" tests="1" failures="0" errors="1" skipped="0" file="/elsewhere/c#d.yaml">
    <testcase ${web.replace('shop/', '')}>
      <error type="unauthorized" message="/elsewhere/c#d.yaml:3: unauthorized: so"/>
    </testcase>
  </testsuite>
  <testsuite name="standard input" tests="1" failures="0" errors="0" skipped="1" file="standard input">
    <testcase ${web}>
      <skipped message="standard input:3: allowed: so"/>
    </testcase>
  </testsuite>
  <testsuite name="../up.yaml" tests="1" failures="1" errors="0" skipped="0" file="../up.yaml">
    <testcase ${web}>
      <failure type="pinned" message="../up.yaml:3: pinned: so"/>
    </testcase>
  </testsuite>
</testsuites>
`,
  );
  const outcomes = asJunit(all).match(/<(?:failure|error) type="[^"]*"/gu);
  const words = { finding: 'failure', unknown: 'error', fine: '' };
  t.strictSame(
    outcomes,
    Object.entries(classes).flatMap(([verdict, of]) =>
      words[of] ? [`<${words[of]} type="${verdict}"`] : [],
    ),
  );
  t.end();
});

interface Sarif {
  readonly runs: readonly {
    readonly tool: { readonly driver: { readonly rules: readonly { readonly id: string }[] } };
    readonly results: readonly { readonly message: { readonly text: string } }[];
  }[];
}

t.test('SARIF output', (t) => {
  const log = JSON.parse(asSarif(checked, '/src/repository')) as Sarif;
  const [run] = log.runs;
  const { rules = [] } = run?.tool.driver ?? {};
  const levels = { finding: 'error', unknown: 'warning', fine: 'note' };
  const levelOf = (id: string): string => levels[classes[id as CheckVerdict]];
  const ids = rules.map(({ id }) => id);
  t.strictSame(
    ids.toSorted(),
    Object.keys(classes)
      .filter((id) => id !== 'ok')
      .sort(),
  );
  const wanted = ids.map((id) => ({
    id,
    shortDescription: { text: /^[A-Z].*\.$/u },
    defaultConfiguration: { level: levelOf(id) },
  }));
  const driver = { name: 'archwright check', version: programVersion.version, rules: wanted };
  like(t, log, {
    $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
    version: '2.1.0',
    runs: [{ tool: { driver }, columnKind: 'utf16CodeUnits' }],
  });
  const shown = (ruleId: CheckVerdict, uri: string, more: object = {}, workload = 'shop/Deployment/web') => ({
    ruleId,
    ruleIndex: ids.indexOf(ruleId),
    level: levelOf(ruleId),
    message: { text: `app:1 for arm64: ${ruleId}: so` },
    locations: [
      {
        physicalLocation: { artifactLocation: { uri }, region: { startLine: 3 } },
        logicalLocations: [{ fullyQualifiedName: `${workload}/app`, kind: 'resource' }],
      },
    ],
    partialFingerprints: { 'image/v1': `${workload}/app app:1 arm64` },
    ...more,
  });
  const [first, ...others] = run?.results ?? [];
  t.match(JSON.stringify(first), /"uri":"k8s\/a%20b\.yaml"\},"region":\{"startLine":7\}/u);
  const text = String.raw`\[x\](https://evil) for arm64: missing: `;
  const name = hostile.replaceAll(/[[\]\\]/gu, String.raw`\$&`).replace('{0}', '{{0}}');
  t.equal(first?.message.text, text + name, 'names are neither links nor placeholders');
  t.strictSame(others, [
    shown('unauthorized', 'file:///elsewhere/c%23d.yaml', {}, 'Deployment/web'),
    shown('allowed', 'stdin', { suppressions: [{ kind: 'external', justification: 'so' }] }),
    shown('pinned', 'file:///src/up.yaml'),
  ]);
  t.end();
});

const now = Date.parse('2026-11-22T20:00:00Z');

function judged(facts: ImageFacts | undefined, pod: Partial<CheckedPod> = {}) {
  const image = 'web:1';
  const whole: CheckedPod = {
    owner: { kind: 'Pod', namespace: '', name: 'web' },
    os: 'linux',
    choice: { nodeSelector: {}, terms: undefined },
    uses: [{ image, usedBy: ['web'], pullPolicy: 'IfNotPresent', volumeOnly: false }],
    places: [{ image, usedBy: 'web', file: 'a.yaml', line: 1 }],
    ...pod,
  };
  const [result] = checkPod(whole, ['amd64'], () => facts, new AllowList([], now), now);
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

t.test('a pod of many images takes no time that grows with their square', (t) => {
  let reads = 0;
  const places = Array.from({ length: 1000 }, (_, n) => ({
    image: `App${n}`,
    usedBy: 'a',
    file: 'f',
    line: 1,
  }));
  const uses = places.map(({ image }) => ({
    get image() {
      reads += 1;
      return image;
    },
    usedBy: ['a'],
    pullPolicy: 'Always' as const,
    volumeOnly: false,
  }));
  judged(undefined, { uses, places });
  t.ok(reads < 10_000, `${reads} reads`);
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
      'a pod that excludes the architecture',
      judged(factsOf(['linux/amd64']), {
        choice: { nodeSelector: {}, terms: [termOf(notIn(archLabel, 'amd64'))] },
      }),
      'pinned',
      'the pod excludes amd64 by its affinity',
    ],
  ];
  for (const [what, found, verdict, why] of cases) t.strictSame(found, [verdict, why], what);
  const [, long = ''] = judged(failed({ code: 'not-found', message: '\u001b'.repeat(5000) }));
  t.ok(long.length <= 600 && !long.includes('\u001b'), 'messages are bounded and printable');
  t.end();
});
