/**
 * The agent compared with the library that CRI-O uses, with the same node, registries, images and credentials. A
 * difference is one of the rules in `rules.ts`, which `docs/internals/deviations.md` explains, or a failure.
 *
 *   E2E_SEED    other cases: any whole number; the same number gives the same cases (1)
 *   E2E_CASES   generated cases (500)
 *   E2E_ONLY    numbers of generated cases to run alone, such as `17,230`
 *   E2E_RECORD  1: writes what CRI-O did into test/recorded
 */
import t from 'tap';
import { isRecording, record } from '../../recorded/recorded.ts';
import { isRecorded, recordedCase, type RecordedCase } from '../node/recorded-cases.ts';
import type { Observed } from './observed.ts';
import { createTally, documentedDifferences } from '../node/tally.ts';
import { createWorld } from '../node/world.ts';
import { crioLibraryProgram } from '../programs/crio.ts';
import { casesOfRun, seedOfRun } from '../random.ts';
import { generateCases } from './generate.ts';
import { createNode } from './node.ts';
import { differences, leftOut, ruleFor, rules, type Compared } from './rules.ts';

const seed = seedOfRun(1);
const count = casesOfRun(500);
const only = process.env['E2E_ONLY']?.split(',').map(Number);
/** A test for each case would make the output unreadable. */
const casesPerLine = 50;

t.comment(`E2E_SEED=${seed}, ${count} generated cases`);

t.test('every intended difference is documented under its name', async (t) => {
  t.strictSame(documentedDifferences('CRI-O'), new Set([...leftOut, ...rules.map(({ name }) => name)]));
});

t.test('the agent pulls like CRI-O', async (t) => {
  const world = await createWorld();
  const node = createNode(crioLibraryProgram(), world);
  t.teardown(async () => {
    await node.close();
    await world.close();
  });
  const { places, privateCa, client } = world;
  const tally = createTally<'crio', Compared>('crio');
  const recorded: RecordedCase<Observed>[] = [];
  let before = 0;
  let number = 0;
  for (const generated of generateCases({ seed, count, places, certificates: { privateCa, client } })) {
    if (only === undefined || only.includes(number)) {
      const compared = await node.run(generated, number);
      if (isRecorded(number))
        recorded.push(recordedCase({ number, version: '', about: generated }, compared.crio, world));
      tally.add(compared, differences(compared.crio, compared.agent), ruleFor);
    }
    number += 1;
    if (number % casesPerLine === 0 || number === count) {
      t.equal(tally.unexplained.length - before, 0, `cases up to ${number - 1}: no unexplained difference`);
      before = tally.unexplained.length;
    }
  }
  tally.report(t);
  if (isRecording) record('cri-o', recorded);
});
