import { test } from 'tap';
import type { NodeSelectorTerm, PodSpec } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import { operatingSystemOf } from '../../../src/placement/pod/operating-system.ts';
import { runningPodWarnings } from '../../../src/placement/running-pod.ts';
import { facts, factsFrom, inputOf, isIn, podOf, requiring, termOf } from '../../support/placement-input.ts';

const label = 'kubernetes.io/os';
const beta = 'beta.kubernetes.io/os';

const required = (...terms: NodeSelectorTerm[]): Partial<PodSpec> => requiring(...terms);

function term(operator: string, ...values: readonly string[]): NodeSelectorTerm {
  return termOf({ key: label, operator, values });
}

const windows = { nodeSelector: { [label]: 'windows' } };

const cases: readonly (readonly [name: string, spec: Partial<PodSpec>, os: string])[] = [
  ['not set', {}, 'linux'],
  ['spec.os', { os: { name: 'windows' } }, 'windows'],
  ['spec.os without a name', { os: { name: '' } }, 'linux'],
  ['the nodeSelector', windows, 'windows'],
  ['the nodeSelector by the old label', { nodeSelector: { [beta]: 'windows' } }, 'windows'],
  ['both labels', { nodeSelector: { [beta]: 'linux', [label]: 'windows' } }, 'windows'],
  ['an empty value in the nodeSelector', { nodeSelector: { [label]: '' } }, 'linux'],
  ['other labels in the nodeSelector', { nodeSelector: { pool: 'windows' } }, 'linux'],
  ['spec.os beside a nodeSelector', { os: { name: 'linux' }, ...windows }, 'linux'],
  ['the only required term', required(term('In', 'windows')), 'windows'],
  ['the old label in a required term', required(termOf(isIn(beta, 'windows'))), 'windows'],
  ['every required term', required(term('In', 'windows'), term('In', 'windows')), 'windows'],
  ['every term that can match', required({}, term('In', 'windows')), 'windows'],
  ['one of two required terms', required(term('In', 'windows'), { matchExpressions: [] }), 'windows'],
  [
    'one of two terms that can match',
    required(term('In', 'windows'), termOf({ key: 'pool', operator: 'Exists' })),
    'linux',
  ],
  ['different terms', required(term('In', 'windows'), term('In', 'linux')), 'linux'],
  ['a term with two systems', required(term('In', 'windows', 'linux')), 'linux'],
  ['a term that excludes one', required(term('NotIn', 'linux')), 'linux'],
  ['no term at all', required(), 'linux'],
  ['the nodeSelector beside a term', { ...windows, ...required(term('In', 'linux')) }, 'windows'],
];

for (const [name, spec, os] of cases) {
  test(`the operating system of a pod: ${name}`, async (t) => {
    t.equal(operatingSystemOf(podOf(['a'], spec).spec), os);
    t.equal(decide(inputOf(podOf(['a'], spec), { a: `${os}/amd64` })).os, os);
  });
}

test('an override applies to pods of every operating system', async (t) => {
  const override = facts('linux/arm64 windows/arm64', { source: 'override' });
  for (const os of ['linux', 'windows', 'freebsd', 'darwin']) {
    const decision = decide(inputOf(podOf(['a'], { nodeSelector: { [label]: os } }), { a: override }));
    t.strictSame(decision.required, ['arm64'], os);
  }
  const anything = facts('', { source: 'override' });
  t.equal(decide(inputOf(podOf(['a'], windows), { a: anything })).outcome, 'unconstrained');
});

test('a debugging container in a pod for Windows gets no false warning', async (t) => {
  const known = factsFrom({ debug: 'linux/arm64 windows/amd64' });
  const pod = podOf([], { ...windows, nodeName: 'n1', ephemeralContainers: [{ name: 'd', image: 'debug' }] });
  const warningsOn = (nodeArchitecture: string): number =>
    runningPodWarnings({ pod, oldPod: undefined, nodeArchitecture, facts: known }).length;
  t.equal(warningsOn('amd64'), 0);
  t.equal(warningsOn('arm64'), 1);
});
