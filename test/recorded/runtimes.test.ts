/**
 * The agent in the recorded cases of containerd and of CRI-O's library: registries in the same order, with the same
 * requests and credentials, and the same outcome, apart from the intended differences of docs/internals/deviations.md.
 */
import t from 'tap';
import { certificateFiles } from '../e2e/node/generate-hosts.ts';
import * as containerd from '../e2e/node/generate.ts';
import { createAgentSide } from '../e2e/node/nodes.ts';
import type { Observed } from '../e2e/node/observed.ts';
import { hashOfCase, observedThen, type RecordedCase } from '../e2e/node/recorded-cases.ts';
import { differences, ruleFor } from '../e2e/node/rules.ts';
import { createWorld } from '../e2e/node/world.ts';
import * as crio from '../e2e/crio/generate.ts';
import { createAgentSide as createAgentOfCrio } from '../e2e/crio/node.ts';
import type { Observed as ObservedOfCrio } from '../e2e/crio/observed.ts';
import * as rulesOfCrio from '../e2e/crio/rules.ts';
import type { ContainerdVersion } from '../e2e/programs/containerd.ts';
import { recordedBy } from './recorded.ts';

/** The generated cases are those of this seed. */
const seed = 1;
const world = await createWorld();
t.teardown(() => world.close());

const isOther = 'The generated cases are no longer those that were recorded. Record again';

const countFor = (recorded: readonly RecordedCase<unknown>[]): number =>
  Math.max(...recorded.map(({ number }) => number)) + 1;

/** The generated case of a recorded verdict. */
function caseOf<Case extends object>(cases: readonly Case[], one: RecordedCase<unknown>): Case {
  const found = cases[one.number];
  if (found === undefined || hashOfCase(found, world) !== one.hash)
    throw new Error(`${isOther}: E2E_RECORD=1 E2E_CASES=60 npm run e2e:node, E2E_CASES=100 npm run e2e:crio`);
  return found;
}

t.test('like containerd', async (t) => {
  const lines = recordedBy('containerd') as readonly RecordedCase<Observed>[];
  const certificates = certificateFiles(world);
  for (const [version, recorded] of Map.groupBy(lines, (line) => line.version)) {
    const node = createAgentSide(version, world, certificates);
    t.teardown(() => node.close());
    const minor = /^\d+\.\d+/.exec(version)?.[0] as ContainerdVersion;
    const { places } = world;
    const count = countFor(recorded);
    const cases = [...containerd.generateCases({ seed, count, minor, places, certificates })];
    for (const one of recorded) {
      const about = caseOf(cases, one);
      node.write(about);
      const compared = {
        case: about,
        containerd: observedThen(one, world),
        agent: await node.inspect(about, one.number),
      };
      const found = differences(compared.containerd, compared.agent);
      const wrong = found.filter((difference) => ruleFor(difference, compared) === undefined);
      t.strictSame(wrong, [], `containerd ${version}, case ${one.number}`);
    }
  }
});

t.test('like CRI-O', async (t) => {
  const recorded = recordedBy('cri-o') as readonly RecordedCase<ObservedOfCrio>[];
  const node = createAgentOfCrio(world);
  t.teardown(() => node.close());
  const { places, privateCa, client } = world;
  const certificates = { privateCa, client };
  const count = countFor(recorded);
  const cases = [...crio.generateCases({ seed, count, places, certificates })];
  for (const one of recorded) {
    const about = caseOf(cases, one);
    const { image } = node.arrange(about, one.number);
    const observed = await node.inspect(about, one.number);
    const compared = { case: about, image, crio: observedThen(one, world), ...observed };
    const found = rulesOfCrio.differences(compared.crio, compared.agent);
    const wrong = found.filter((difference) => rulesOfCrio.ruleFor(difference, compared) === undefined);
    t.strictSame(wrong, [], `case ${one.number}`);
  }
});
