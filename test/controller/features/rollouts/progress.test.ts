/** The next state of a rollout, from its state and from observations. */
import t from 'tap';
import {
  progressOf,
  retryAt,
  type Observed,
  type Progress,
} from '../../../../src/controller/features/rollouts/progress.ts';
import { readRollout, type Rollout } from '../../../../src/policy/resources/rollout.ts';
import { rollout } from '../../../policy/resources/objects.ts';

const start = Date.parse('2026-11-01T00:00:00Z');
const minute = 60_000;

function read(spec: object = {}): Rollout {
  const found = readRollout(rollout({ architecture: 'arm64', pause: '10m', ...spec })).value;
  if (!found) throw new Error('not valid');
  return found;
}

const usual: Observed = {
  now: start,
  hasNodes: true,
  blocked: undefined,
  left: undefined,
  held: 'web: 0 of 1 pods moved',
  verdict: undefined,
};
const unhealthy = { reason: 'Unhealthy', message: 'three are bad' } as const;

/** Makes several observations, one after the other. */
function after(looks: readonly (Partial<Observed> & { readonly spec?: object })[]): readonly Progress[] {
  let before: Progress | undefined;
  return looks.map(({ spec, ...look }) => (before = progressOf(read(spec), before, { ...usual, ...look })));
}

const brief = ({ phase, newPods, step, attempt }: Progress): string =>
  [phase, newPods ?? '-', step, attempt].join(' ');

const rows: Readonly<Record<string, readonly (readonly [Parameters<typeof after>[0][number], string])[]>> = {
  'a step follows a pause after the share is reached': [
    [{}, 'Progressing Choose 0 1'],
    [{ now: start + 60 * minute }, 'Progressing Choose 0 1'],
    [{ now: start + 61 * minute, held: undefined }, 'Progressing Choose 0 1'],
    [{ now: start + 70 * minute, held: undefined }, 'Progressing Choose 0 1'],
    [{ now: start + 71 * minute }, 'Progressing Choose 0 1'],
    // Unready pods delay the step, but do not restart the pause.
    [{ now: start + 72 * minute, held: undefined }, 'Progressing Choose 1 1'],
    [{ now: start + 90 * minute, held: undefined }, 'Progressing Choose 1 1'],
    [{ now: start + 100 * minute, held: undefined }, 'Progressing Choose 2 1'],
    [{ now: start + 101 * minute, held: undefined }, 'Progressing Choose 2 1'],
    [{ now: start + 111 * minute }, 'Progressing Choose 2 1'],
    [{ now: start + 112 * minute, held: undefined }, 'Complete Target 2 1'],
    [{ now: start + 113 * minute, verdict: unhealthy }, 'Complete Target 2 1'],
  ],
  'the last step may be less than all': [
    [{ spec: { steps: ['20%'], pause: '0s' }, held: undefined }, 'Complete Choose 0 1'],
  ],
  'a rollback is immediate, and is not followed by an attempt without a reason': [
    [{}, 'Progressing Choose 0 1'],
    [{ verdict: unhealthy }, 'RolledBack Other 0 1'],
    [{ now: start + 1e9, held: undefined }, 'RolledBack Other 0 1'],
  ],
  'a new attempt after retryAfter': [
    [{}, 'Progressing Choose 0 1'],
    [{ verdict: unhealthy }, 'RolledBack Other 0 1'],
    [{ spec: { retryAfter: '1h' }, now: start + 59 * minute }, 'RolledBack Other 0 1'],
    [{ spec: { retryAfter: '1h' }, now: start + 60 * minute }, 'Progressing Choose 0 2'],
  ],
  'a new attempt when a person resumes': [
    [{}, 'Progressing Choose 0 1'],
    [{ now: start + minute, verdict: unhealthy }, 'RolledBack Other 0 1'],
    [{ spec: { resumedAt: '2026-11-01T00:00:30Z' }, now: start + minute }, 'RolledBack Other 0 1'],
    [{ spec: { resumedAt: '2026-11-01T00:01:30Z' }, now: start + 2 * minute }, 'Progressing Choose 0 2'],
  ],
  'a paused rollout stays at its step, and still rolls back': [
    [{ spec: { paused: true }, held: undefined }, 'Paused Choose 0 1'],
    [{ spec: { paused: true }, held: undefined, now: start + 1e9 }, 'Paused Choose 0 1'],
    [{ held: undefined, now: start + 1e9 }, 'Progressing Choose 1 1'],
    [{ spec: { paused: true }, verdict: unhealthy }, 'RolledBack Other 1 1'],
  ],
  'aborted, then resumed': [
    [{}, 'Progressing Choose 0 1'],
    [{ spec: { aborted: true } }, 'Aborted Other 0 1'],
    [{ spec: { aborted: true }, now: start + 1e9 }, 'Aborted Other 0 1'],
    [{ now: start + 1e9 }, 'Progressing Choose 0 2'],
  ],
  'without a node of the architecture no pod is affected': [
    [{ hasNodes: false }, 'Waiting - 0 1'],
    [{}, 'Progressing Choose 0 1'],
    [{ hasNodes: false, held: undefined }, 'Waiting - 0 1'],
  ],
  'without a workload that can be moved it waits': [
    [{ blocked: 'it has no pods so far', held: undefined }, 'Waiting Choose 0 1'],
    [{ held: undefined }, 'Progressing Choose 0 1'],
  ],
  'removed steps': [
    [{ spec: { pause: '0s' }, held: undefined }, 'Progressing Choose 1 1'],
    [{ spec: { pause: '0s' }, held: undefined }, 'Progressing Choose 2 1'],
    [{ spec: { steps: ['5%'] } }, 'Progressing Choose 0 1'],
  ],
};

for (const [about, looks] of Object.entries(rows))
  t.test(about, (t) => {
    const [inputs, wanted] = [looks.map(([look]) => look), looks.map(([, text]) => text)];
    t.strictSame(after(inputs).map(brief), wanted);
    t.end();
  });

t.test('`retryAfter` sets the time of the next attempt', (t) => {
  const [, back] = after([{}, { verdict: unhealthy }]);
  t.equal(back && retryAt(read({ retryAfter: '1h' }), back), start + 60 * minute);
  t.equal(back && retryAt(read(), back), undefined);
  t.match(back?.message, 'rolled back: three are bad');
  t.end();
});
