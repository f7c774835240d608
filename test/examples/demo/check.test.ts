/** The demo checks its own results, so that it tests the whole program. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import type { Answer } from '../../../examples/demo/admit.ts';
import { problemsOf } from '../../../examples/demo/check.ts';
import { readExamples, type Example } from '../../../examples/demo/examples.ts';
import { expected } from '../../../examples/demo/expected.ts';
import { podIn, type Knowledge } from '../../../examples/demo/knowledge.ts';
import { decide } from '../../../src/placement/decide.ts';
import type { Operation } from '../../../src/placement/decision.ts';
import { patchPod } from '../../../src/placement/patch/patch.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { policyFor } from '../../../src/policy/effective/policies.ts';
import jsonPatch from 'fast-json-patch';
import { facts } from '../../support/facts.ts';
import { examples } from './run.ts';

const all = await readExamples();

/** An example, and a correct response, with these architectures for every image. */
function sound(file: string, architectures: readonly string[]) {
  const example = all.find((each) => each.file === file);
  if (!example) throw new Error(`no example ${file}`);
  const { pod, basePath } = podIn(example.request);
  const policy = policyFor(defaultConfiguration());
  const decision = decide({
    pod,
    namespace: 'shop',
    namespaceLabels: {},
    policy,
    facts: () => facts(architectures.join(' ')),
  });
  const operations = patchPod(pod, decision, basePath);
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

t.test('every example has one expectation, also in its comment, and a row in the table', async (t) => {
  t.strictSame(Object.keys(expected).sort(), examples.toSorted());
  const table = readFileSync('examples/pods/README.md', 'utf8');
  for (const file of examples) {
    t.match(readFileSync(`examples/pods/${file}`, 'utf8'), /^# [^\n]+\n(?:# [^\n]+\n)*# Expected: /u, file);
    t.ok(table.includes(`\`${file}\``), file);
  }
});

t.test('each unexpected result is a problem', async (t) => {
  const { example, answer, knowledge } = sound('own-affinity.yaml', three);
  const weights = sound('preferred-weights.yaml', three);
  const without = (pattern: RegExp): Answer =>
    answerWith(
      example,
      answer.operations.filter(({ path }) => !pattern.test(path)),
    );
  const nodeAffinity = '/spec/affinity/nodeAffinity';
  const terms = `${nodeAffinity}/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms`;
  const preferences = `${nodeAffinity}/preferredDuringSchedulingIgnoredDuringExecution`;
  const added = (path: string, value: unknown): Answer =>
    answerWith(example, [...answer.operations, { op: 'add', path, value }]);
  const another: Operation = { op: 'replace', path: `${preferences}/0/weight`, value: 1 };
  const warned = { uid: '', allowed: true, warnings: ['x'] };
  const cases: [string, Answer, RegExp, Knowledge?, Example?][] = [
    ['refused', { ...answer, response: { uid: '', allowed: false } }, /^allowed: false/],
    ['a warning too many', { ...answer, response: warned }, /^number of warnings: 1 instead of 0/],
    ['another patch', answer, /^patch beside what follows/, { ...knowledge, operations: [] }],
    ['a term without it', added(`${terms}/1/matchExpressions`, []), /^architectures of term 2/],
    ['a toleration lacks', without(/^\/spec\/tolerations/), /^tolerated architectures/],
    ['a third term', added(`${terms}/-`, {}), /^required terms: 3 instead of 2/],
    ['a toleration', added('/spec/tolerations/0', { operator: 'Exists' }), /^tolerations of its own/],
    ['a preference', added(`${preferences}/0`, { weight: 1, preference: {} }), /^preferences of its own/],
    [
      'a gate',
      added('/spec/schedulingGates', [{ name: 'arch.example/scheduling-gate' }]),
      /^scheduling gates/,
    ],
    ['pinned', added('/spec/nodeSelector', { disk: 'ssd' }), /^nodeSelector/],
    [
      'another weight',
      answerWith(weights.example, [...weights.answer.operations, another]),
      /^preferred architectures/,
      weights.knowledge,
      weights.example,
    ],
    ['an unknown example', answer, /does not say what/, knowledge, { ...example, file: 'new.yaml' }],
  ];
  const fresh = knowledge.decision.images.map((verdict) => ({
    ...verdict,
    facts: verdict.facts && { ...verdict.facts, source: 'registry' as const },
  }));
  const notInMemory = { ...knowledge, decision: { ...knowledge.decision, images: fresh } };
  cases.push(['fresh facts', answer, /^source of the facts of/, notInMemory]);
  for (const [name, found, problem, known = knowledge, given = example] of cases) {
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
