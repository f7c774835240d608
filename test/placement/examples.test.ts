/** The decision on each example matches its opening comment, and the table in its folder. */
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'tap';
import { parseAllDocuments } from 'yaml';
import type { Pod, PodTemplate } from '../../src/kube/api/objects.ts';
import { decide } from '../../src/placement/decide.ts';
import type { Outcome, PlacementDecision } from '../../src/placement/decision.ts';
import { patchPod } from '../../src/placement/patch/patch.ts';
import { applied, failed, inputOf, type Known } from '../support/placement-input.ts';

const folder = new URL('../../examples/pods/', import.meta.url);
const known: Known = {
  'public.example/shop/web:1': 'amd64 arm64 s390x',
  'public.example/shop/sidecar:1': 'amd64 arm64',
  'public.example/shop/init:1': 'amd64 arm64',
  'public.example/shop/nested:1': 'amd64 arm64',
  'public.example/shop/signed:1': 'amd64 arm64 unknown/unknown',
  'public.example/legacy/billing:1': 'amd64',
  'public.example/arm/only:1': 'arm64',
  'public.example/models/words:1': '',
  'private.example/team/app:1': 'amd64 arm64',
  'nginx:1': 'amd64 arm64',
  'public.example/shop/web:no-such-tag': failed('not-found'),
  'silent.example/shop/web:1': failed('timeout'),
};

const expected: Readonly<
  Record<string, readonly [outcome: Outcome, required: string | undefined, warnings?: number]>
> = {
  'artifact-volume.yaml': ['placed', 'amd64 arm64 s390x'],
  'attestations.yaml': ['placed', 'amd64 arm64'],
  'daemonset.yaml': ['placed', 'amd64 arm64'],
  'deployment-no-common.yaml': ['unconstrained', undefined, 1],
  'disabled.yaml': ['skipped', undefined],
  'mirrored.yaml': ['placed', 'amd64 arm64'],
  'no-common-architecture.yaml': ['denied', ''],
  'own-affinity.yaml': ['placed', 'amd64 arm64 s390x'],
  'own-node-selector.yaml': ['own-constraint', undefined],
  'preferred-label-unmet.yaml': ['placed', 'amd64', 1],
  'preferred-label.yaml': ['placed', 'amd64 arm64 s390x'],
  'preferred-weights.yaml': ['placed', 'amd64 arm64 s390x'],
  'private-with-secret.yaml': ['placed', 'amd64 arm64'],
  'private-without-secret.yaml': ['placed', 'amd64 arm64'],
  'pull-always.yaml': ['placed', 'amd64 arm64 s390x'],
  'sidecars.yaml': ['placed', 'amd64 arm64'],
  'single-architecture-arm.yaml': ['placed', 'arm64'],
  'single-architecture.yaml': ['placed', 'amd64'],
  'unknown-image.yaml': ['gated', 'amd64 arm64', 2],
};

interface Workload {
  readonly kind: string;
  readonly spec: { readonly template: PodTemplate };
}

function decided(file: string): PlacementDecision {
  const documents = parseAllDocuments(readFileSync(new URL(file, folder), 'utf8'));
  const object = documents
    .map((document) => document.toJS() as Pod | Workload)
    .findLast(({ kind }) => kind !== 'Secret');
  if (object === undefined) throw new Error(`${file} has no pod`);
  const workload = object.kind === 'Pod' ? undefined : (object as Workload);
  const pod = (workload?.spec.template ?? object) as Pod;
  const template = workload && (workload.kind === 'DaemonSet' ? 'DaemonSet' : 'workload');
  const decision = decide(inputOf(pod, known, {}, template ? { template } : {}));
  applied(object, patchPod(pod, decision, workload ? '/spec/template' : ''));
  return decision;
}

for (const [file, [outcome, required, warnings = 0]] of Object.entries(expected)) {
  test(`example ${file}`, async (t) => {
    const decision = decided(file);
    t.equal(decision.outcome, outcome);
    t.equal(decision.required?.join(' '), required);
    t.equal(decision.warnings.length, warnings);
  });
}

test('every example has a test, a comment with its expected result, and a row in the table', async (t) => {
  const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
  t.strictSame(files.sort(), Object.keys(expected).sort());
  const table = readFileSync(new URL('README.md', folder), 'utf8');
  for (const file of files) {
    t.match(readFileSync(new URL(file, folder), 'utf8'), /^# [^\n]+\n(?:# [^\n]+\n)*# Expected: /u, file);
    t.ok(table.includes(`\`${file}\``), file);
  }
});
