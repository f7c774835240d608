import t from 'tap';
import { conditionsOf, type Finding, type ResourceStatus } from '../../../src/controller/write/conditions.ts';
import { applyStatus } from '../../../src/controller/write/own-objects.ts';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import {
  validateClusterConfig,
  validatePodConfigs,
} from '../../../src/controller/features/resources/resources.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { clusterConfig, podConfig } from '../../policy/resources/objects.ts';
import { like } from '../../support/like.ts';

const now = Date.parse('2026-11-21T10:00:00.750Z');
const available: Finding = { type: 'Available', status: 'True', reason: 'InForce', message: '' };
const degraded: Finding = { type: 'Degraded', status: 'False', reason: 'AsWritten', message: '' };

const objectWith = (generation: number, status?: object): KubeObject & { status?: object } => ({
  metadata: { name: 'x', generation },
  ...(status && { status }),
});

/** Whether the status of an object is written. */
async function isWritten(object: KubeObject, status: ResourceStatus): Promise<boolean> {
  let written = false;
  const patch = () => Promise.resolve(void (written = true));
  const leader = { client: { patch } as unknown as KubeClient, signal: neverAborted };
  await applyStatus(leader, { kind: 'X', path: '/x', object }, status);
  return written;
}

t.test('the first status has the generation and every condition', async (t) => {
  const condition = { ...available, observedGeneration: 3, lastTransitionTime: '2026-11-21T10:00:00Z' };
  t.strictSame(conditionsOf(objectWith(3), [available], now), {
    observedGeneration: 3,
    conditions: [condition],
  });
  t.strictSame(conditionsOf({}, [], now), { conditions: [] });
});

t.test('a status is written only if it changes; lastTransitionTime follows the condition', async (t) => {
  const present = conditionsOf(objectWith(3), [available, degraded], now);
  const later = now + 60_000;
  const object = objectWith(3, present);
  t.equal(await isWritten(object, conditionsOf(object, [available, degraded], later)), false);
  const foreign = { type: 'Seen', status: 'True', reason: 'X', message: '', lastTransitionTime: 'x' };
  const shared = objectWith(3, { ...present, conditions: [foreign, ...present.conditions.toReversed()] });
  t.equal(await isWritten(shared, conditionsOf(shared, [available, degraded], later)), false, "others' stay");
  t.equal(await isWritten(object, conditionsOf(object, [available], later)), false);
  const more = { message: 'x', ...conditionsOf(object, [available, degraded], later) };
  t.equal(await isWritten(object, more), true, 'another field');
  const less = objectWith(3, { ...present, message: 'x' });
  t.equal(await isWritten(less, present), true, 'a field less');

  const older = '2026-11-21T10:00:00Z';
  const changes: [about: string, findings: Finding[], generation: number, time: string][] = [
    ['another message', [{ ...available, message: 'x' }, degraded], 3, older],
    ['another reason', [{ ...available, reason: 'X' }, degraded], 3, older],
    ['another generation', [available, degraded], 4, older],
    ['another status', [{ ...available, status: 'False' }, degraded], 3, '2026-11-21T10:01:00Z'],
  ];
  for (const [about, findings, generation, time] of changes) {
    const changed = objectWith(generation, present);
    const wanted = conditionsOf(changed, findings, later);
    t.equal(await isWritten(changed, wanted), true, about);
    t.equal(wanted.conditions[0]?.lastTransitionTime, time, about);
    t.equal(wanted.conditions[1]?.lastTransitionTime, older, `${about}: the other condition`);
  }
  const long = { ...available, message: 'x'.repeat(9999) };
  t.equal(conditionsOf({}, [long], now).conditions[0]?.message.length, 2048);
});

function find(findings: readonly Finding[] | undefined, type: Finding['type']): string {
  const found = findings?.find((finding) => finding.type === type);
  return found ? `${found.status} ${found.reason}` : 'none';
}

t.test('findings about the cluster object', async (t) => {
  const cases: [about: string, spec: object, schedulable: string[], available: string, degraded: string][] = [
    ['in force', { fallbackArchitecture: 'arm64' }, [], 'True InForce', 'False AsWritten'],
    ['all schedulable', { fallbackArchitecture: 'arm64' }, ['arm64'], 'True InForce', 'False AsWritten'],
    ['one not', { preferredArchitecture: 's390x' }, ['arm64'], 'True InForce', 'True ArchitecturesLeftOut'],
    ['mistaken', { fallbackArchitecture: 'arm46' }, [], 'True InForce', 'True UnknownArchitecture'],
    ['known', { fallbackArchitecture: 'arm46' }, ['arm46'], 'True InForce', 'False AsWritten'],
    ['invalid', { logVerbosity: 'x' }, [], 'False Invalid', 'True Invalid'],
  ];
  for (const [about, spec, schedulable, isAvailable, isDegraded] of cases) {
    const findings = validateClusterConfig(clusterConfig(spec), schedulable);
    t.equal(find(findings, 'Available'), isAvailable, about);
    t.equal(find(findings, 'Degraded'), isDegraded, about);
    t.equal(find(findings, 'Conflict'), 'none');
  }
  const messages = (spec: object, schedulable: string[] = []) =>
    validateClusterConfig(clusterConfig(spec), schedulable).map(({ message }) => message);
  const invalid = { logVerbosity: 'x', fallbackArchitecture: 1 };
  t.match(messages(invalid)[0], /^Resource ignored: spec\.logVerbosity must be/, 'the first problem');
  const left = messages({ preferredArchitecture: 's390x' }, ['arm64', 'amd64']);
  t.match(left[1], /^s390x: .* arm64, amd64$/);
  const mistaken = { preferredArchitecture: 'arm46' };
  t.equal(messages(mistaken)[1], 'unknown architecture arm46; did you mean arm64?');
  const both = /^arm46: left out, .*; unknown architecture arm46; did you mean arm64\?$/;
  like(t, messages(mistaken, ['arm64'])[1], both);
});

t.test('findings about the objects of a namespace', async (t) => {
  const made = (name: string, spec: object, second: number): KubeObject => ({
    ...podConfig(spec, name),
    metadata: { name, namespace: 'shop', creationTimestamp: `2026-11-21T10:00:0${second}Z` },
  });
  const validate = async (objects: KubeObject[], schedulable: string[] = []) => {
    const found = await validatePodConfigs(objects, schedulable, () => undefined);
    return {
      of: (name: string, type: Finding['type']) => find(found.get(name), type),
      message: (name: string, type: Finding['type']) =>
        found.get(name)?.find((each) => each.type === type)?.message,
    };
  };
  const { of, message } = await validate([
    made('younger', { priority: 4 }, 2),
    made('older', { priority: 4 }, 1),
    made('broken', { priority: 400 }, 0),
  ]);
  t.equal(of('younger', 'Conflict'), 'True SamePriority');
  t.match(message('younger', 'Conflict'), /^older has the same priority 4/);
  t.equal(of('broken', 'Conflict'), 'False None', 'an ignored object conflicts with no other');
  t.equal(of('broken', 'Available'), 'False Invalid');
  t.equal(of('younger', 'Available'), 'True InForce');

  const some = made('some', { architectures: ['s390x', 'amd64'] }, 1);
  const all = made('all', { architectures: ['amd64'], priority: 1 }, 1);
  const bounded = await validate([some, all], ['amd64', 'arm64']);
  t.equal(bounded.of('some', 'Degraded'), 'True ArchitecturesLeftOut');
  t.match(bounded.message('some', 'Degraded'), /^s390x: left out/);
  t.equal(bounded.of('all', 'Degraded'), 'False AsWritten');

  const labels = (app: string): object => ({ labelSelector: { matchLabels: { app } } });
  const cases: readonly (readonly [about: string, specs: readonly object[], winners: readonly string[]])[] = [
    ['the same selector', [labels('web'), labels('web'), labels('web')], ['', 'n0', 'n0']],
    ['other selectors', [labels('web'), labels('api')], ['', '']],
    ['all pods first', [{}, labels('web'), labels('web')], ['', 'n0', 'n1']],
    ['all pods later', [labels('web'), labels('api'), {}, {}], ['', '', 'n0', 'n0']],
    ['each priority separately', [{}, { priority: 1 }, { priority: 1, ...labels('web') }], ['', '', 'n1']],
  ];
  for (const [about, specs, winners] of cases) {
    const conflicts = await validate(specs.map((spec, index) => made(`n${index}`, spec, index)));
    for (const [index, winner] of winners.entries()) {
      const found = conflicts.message(`n${index}`, 'Conflict') ?? '';
      t.equal(/^n\d(?= has)/.exec(found)?.[0] ?? '', winner, about);
    }
  }
});
