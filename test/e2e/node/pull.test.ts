/**
 * The agent compared with a real containerd, with the same node, registries, images and credentials. A
 * difference is one of the rules in `rules.ts`, which `docs/internals/deviations.md` explains, or a failure.
 *
 *   E2E_SEED         other cases: any whole number; the same number gives the same cases (1)
 *   E2E_CASES        generated cases for each version of containerd (500)
 *   E2E_CONTAINERD   versions to compare, such as `1.7,2.4`; all by default
 *   E2E_ONLY         numbers of generated cases to run alone, such as `17,230`
 *   E2E_RECORD       1: writes what containerd did into test/recorded
 */
import t, { type Test } from 'tap';
import { differences, leftOut, ruleFor, rules, type Compared } from './rules.ts';
import { containerdProgram, containerdVersions, type ContainerdVersion } from '../programs/containerd.ts';
import { certificateFiles } from './generate-hosts.ts';
import { generateCases } from './generate.ts';
import { createNode } from './nodes.ts';
import { isRecording, record } from '../../recorded/recorded.ts';
import type { Observed } from './observed.ts';
import { isRecorded, recordedCase, type RecordedCase } from './recorded-cases.ts';
import { createTally, documentedDifferences } from './tally.ts';
import { createWorld, type World } from './world.ts';
import { casesOfRun, seedOfRun } from '../random.ts';

const seed = seedOfRun(1);
const count = casesOfRun(500);
const only = process.env['E2E_ONLY']?.split(',').map(Number);
const versions = (process.env['E2E_CONTAINERD']?.split(',') ??
  Object.keys(containerdVersions)) as ContainerdVersion[];

const recorded: RecordedCase<Observed>[] = [];

t.comment(`E2E_SEED=${seed}, ${count} generated cases for each of containerd ${versions.join(', ')}`);

t.test('every intended difference is documented under its name', async (t) => {
  t.strictSame(documentedDifferences('containerd'), new Set([...leftOut, ...rules.map(({ name }) => name)]));
});

if (process.getuid?.() !== 0) {
  t.fail('containerd needs root for its mounts and files');
} else {
  const world = await createWorld();
  t.teardown(() => world.close());
  for (const minor of versions) {
    await t.test(`the agent pulls like containerd ${minor}`, (t) => comparedWith(t, minor, world));
  }
  if (isRecording) record('containerd', recorded);
}

async function comparedWith(t: Test, minor: ContainerdVersion, world: World): Promise<void> {
  const program = containerdProgram(minor);
  const certificates = certificateFiles(world);
  const node = createNode(program, world, certificates);
  t.teardown(() => node.close());
  const tally = createTally<'containerd', Compared>('containerd');
  // One line for the cases that share a configuration keeps the output readable.
  const cases = [...generateCases({ seed, count, minor, places: world.places, certificates })];
  const numbered = cases.map((generated, number) => ({ generated, number }));
  const chosen = numbered.filter(({ number }) => only === undefined || only.includes(number));
  for (const group of Map.groupBy(chosen, ({ generated }) => generated.configuration).values()) {
    const before = tally.unexplained.length;
    for (const { generated, number } of group) {
      const compared = await node.run(generated, number);
      const one = { number, version: program.version, about: generated };
      if (isRecorded(number)) recorded.push(recordedCase(one, compared.containerd, world));
      tally.add(compared, differences(compared.containerd, compared.agent), ruleFor);
    }
    const numbers = `${group[0]?.number} to ${group.at(-1)?.number}`;
    t.equal(tally.unexplained.length - before, 0, `generated cases ${numbers}: no unexplained difference`);
  }
  t.comment(`containerd ${program.version}`);
  tally.report(t);
  if (only === undefined)
    for (const outcome of ['found', 'denied']) t.ok(tally.outcomes.has(outcome), outcome);
}
