/** The demo is a test of the whole program only as far as it notices what is wrong. */
import t from 'tap';
import type { Answer } from '../../../examples/demo/admit.ts';
import { problemsOf } from '../../../examples/demo/check.ts';
import { readExamples, type Example } from '../../../examples/demo/examples.ts';
import { expected } from '../../../examples/demo/expected.ts';
import { podIn, type Knowledge } from '../../../examples/demo/knowledge.ts';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { decide } from '../../../src/placement/decide.ts';
import type { Operation } from '../../../src/placement/decision.ts';
import { patchPod } from '../../../src/placement/patch/patch.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { policyFor } from '../../../src/policy/effective/effective.ts';
import jsonPatch from 'fast-json-patch';

const all = await readExamples();

/** An example, and a sound answer to it, where every image has these architectures. */
function sound(file: string, architectures: readonly string[]) {
  const example = all.find((each) => each.file === file);
  if (!example) throw new Error(`no example ${file}`);
  const { pod, basePath } = podIn(example.request);
  const facts = (image: string): ImageFacts => ({
    image,
    digest: `sha256:${'a'.repeat(64)}`,
    platforms: architectures.map((architecture) => ({ os: 'linux', architecture })),
    source: 'memory',
    credentialSource: 'anonymous',
    endpoint: 'public.example',
    freshUntil: '2030-01-01T00:00:00.000Z',
    stale: false,
  });
  const policy = policyFor(defaultConfiguration());
  const decision = decide({ pod, namespace: 'shop', namespaceLabels: {}, policy, facts });
  const operations = patchPod(pod, decision, { basePath });
  return { example, answer: answerWith(example, operations), knowledge: { decision, operations } };
}

function answerWith({ request }: Example, operations: readonly Operation[], more: object = {}): Answer {
  const object = structuredClone(request.object) as object;
  return {
    response: { uid: request.uid, allowed: true, ...more },
    operations,
    patched: jsonPatch.applyPatch(object, structuredClone([...operations])).newDocument,
  };
}

const three = ['amd64', 'arm64', 's390x'];

t.test('every example has its expectation, and no other', async (t) => {
  t.same(Object.keys(expected).sort(), all.map(({ file }) => file).sort());
});

t.test('what is as expected', async (t) => {
  for (const [file, architectures] of [
    ['own-affinity.yaml', three],
    ['preferred-weights.yaml', three],
    ['own-node-selector.yaml', three],
    ['single-architecture.yaml', ['amd64']],
    ['daemonset.yaml', ['amd64', 'arm64']],
  ] as const) {
    const { example, answer, knowledge } = sound(file, architectures);
    t.same(problemsOf(example, answer, knowledge), [], file);
  }
});

t.test('what is not', async (t) => {
  const { example, answer, knowledge } = sound('own-affinity.yaml', three);
  const weights = sound('preferred-weights.yaml', three);
  const without = (pattern: RegExp): Answer =>
    answerWith(
      example,
      answer.operations.filter(({ path }) => !pattern.test(path)),
    );
  const adding = (operation: Operation): Answer => answerWith(example, [...answer.operations, operation]);
  const cases: [string, Example, Answer, Knowledge, RegExp][] = [
    ['refused', example, { ...answer, response: { uid: '', allowed: false } }, knowledge, /^allowed: false/],
    [
      'a warning too many',
      example,
      { ...answer, response: { uid: '', allowed: true, warnings: ['x'] } },
      knowledge,
      /^number of warnings: 1 instead of 0/,
    ],
    ['another patch', example, answer, { ...knowledge, operations: [] }, /^patch beside what follows/],
    ['a term without it', example, without(/nodeSelectorTerms\/1/), knowledge, /^architectures of term 2/],
    ['a toleration lacks', example, without(/^\/spec\/tolerations/), knowledge, /^tolerated architectures/],
    [
      'a third term',
      example,
      adding({
        op: 'add',
        path: '/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/-',
        value: {},
      }),
      knowledge,
      /^required terms: 3 instead of 2/,
    ],
    [
      'a toleration before its own',
      example,
      adding({ op: 'add', path: '/spec/tolerations/0', value: { operator: 'Exists' } }),
      knowledge,
      /^tolerations of its own/,
    ],
    [
      'its preference is gone',
      example,
      adding({
        op: 'replace',
        path: '/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution',
        value: [],
      }),
      knowledge,
      /^preferences of its own/,
    ],
    [
      'a gate',
      example,
      adding({ op: 'add', path: '/spec/schedulingGates', value: [{ name: 'arch.example/scheduling-gate' }] }),
      knowledge,
      /^scheduling gates/,
    ],
    [
      'pinned',
      example,
      adding({ op: 'add', path: '/spec/nodeSelector', value: { disk: 'ssd' } }),
      knowledge,
      /^nodeSelector/,
    ],
    [
      'another weight',
      weights.example,
      answerWith(weights.example, [
        ...weights.answer.operations,
        {
          op: 'replace',
          path: '/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight',
          value: 1,
        },
      ]),
      weights.knowledge,
      /^preferred architectures/,
    ],
    ['an example nobody knows', { ...example, file: 'new.yaml' }, answer, knowledge, /does not say what/],
  ];
  for (const [name, given, found, known, problem] of cases) {
    const problems = problemsOf(given, found, known);
    t.ok(
      problems.some((text) => problem.test(text)),
      `${name}: ${problems.join('; ')}`,
    );
  }

  const fewer = sound('own-affinity.yaml', ['amd64']);
  t.ok(problemsOf(fewer.example, fewer.answer, fewer.knowledge).length > 0, 'other architectures');
  const unconstrained = sound('single-architecture.yaml', ['arm64']);
  t.ok(problemsOf(unconstrained.example, unconstrained.answer, unconstrained.knowledge).length > 0);
});

t.test('facts that were asked for just now were not in memory', async (t) => {
  const { example, answer, knowledge } = sound('single-architecture.yaml', ['amd64']);
  const images = knowledge.decision.images.map((verdict) => ({
    ...verdict,
    facts: verdict.facts && { ...verdict.facts, source: 'registry' as const },
  }));
  const decision = { ...knowledge.decision, images };
  t.match(problemsOf(example, answer, { ...knowledge, decision }), [/^source of the facts of/]);
});
