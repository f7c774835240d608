/**
 * The agent compared with the library that CRI-O uses, with the same node, registries, images and credentials. A
 * difference is one of the rules in `rules.ts`, which `docs/internals/deviations.md` explains, or a failure.
 *
 *   E2E_SEED    other cases: any whole number; the same number gives the same cases (1)
 *   E2E_CASES   generated cases (500)
 *   E2E_ONLY    numbers of generated cases to run alone, such as `17,230`
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { byName } from '../../../src/names/values.ts';
import { createWorld } from '../node/world.ts';
import { crioLibraryProgram } from '../programs/crio.ts';
import { casesOfRun, seedOfRun } from '../random.ts';
import { generateCases } from './generate.ts';
import { createNode } from './node.ts';
import { differences, leftOut, ruleFor, rules, type Compared, type Difference } from './rules.ts';

const seed = seedOfRun(1);
const count = casesOfRun(500);
const only = process.env['E2E_ONLY']?.split(',').map(Number);
/** A test for each case would make the output unreadable. */
const casesPerLine = 50;

t.comment(`E2E_SEED=${seed}, ${count} generated cases`);

t.test('every intended difference is documented under its name', async (t) => {
  const path = join(import.meta.dirname, '../../../docs/internals/deviations.md');
  const section = readFileSync(path, 'utf8').split('\n## CRI-O\n')[1]?.split('\n## ')[0] ?? '';
  const named = [...section.matchAll(/^\| `([a-z0-9-]+)` \|/gm)].map(([, name = '']) => name);
  const known = [...leftOut, ...rules.map(({ name }) => name)];
  t.strictSame(named.toSorted(byName), known.toSorted(byName));
});

t.test('the agent pulls like CRI-O', async (t) => {
  const world = await createWorld();
  const node = createNode(crioLibraryProgram(), world);
  t.teardown(async () => {
    await node.close();
    await world.close();
  });
  const { places, privateCa, client } = world;
  const outcomes = new Map<string, number>();
  const explained = new Map<string, number>();
  const unexplained: { readonly about: Compared; readonly difference: Difference }[] = [];
  let before = 0;
  let number = 0;
  for (const generated of generateCases({ seed, count, places, certificates: { privateCa, client } })) {
    if (only === undefined || only.includes(number)) {
      const compared = await node.run(generated);
      increase(outcomes, compared.crio.outcome);
      for (const difference of differences(compared.crio, compared.agent)) {
        const rule = ruleFor(difference, compared);
        if (rule) increase(explained, rule.name);
        else unexplained.push({ about: compared, difference });
      }
    }
    number += 1;
    if (number % casesPerLine === 0 || number === count) {
      t.equal(unexplained.length - before, 0, `cases up to ${number - 1}: no unexplained difference`);
      before = unexplained.length;
    }
  }
  t.comment(`cases: ${counts(outcomes)}`);
  t.comment(`intended differences: ${counts(explained)}`);
  if (unexplained.length > 0) t.comment(report(unexplained));
});

function increase(map: Map<string, number>, key: string): void {
  map.set(key, (map.get(key) ?? 0) + 1);
}

function counts(map: ReadonlyMap<string, number>): string {
  return [...map].map(([key, number]) => `${key} ${number}`).join(', ');
}

/** Grouped, each group with its smallest example. */
function report(
  unexplained: readonly { readonly about: Compared; readonly difference: Difference }[],
): string {
  const groups = Map.groupBy(unexplained, ({ difference: { kind, crio, agent } }) =>
    kind === 'outcome' ? `outcome, CRI-O: ${crio}, agent: ${agent}` : kind,
  );
  return [...groups]
    .map(([group, members]) => {
      const [smallest] = members.map(example).sort((one, other) => one.length - other.length);
      return `${group}: ${members.length}\n${smallest}`;
    })
    .join('\n');
}

/** The case, the behavior of the hosts that got requests, and both sides. */
function example({
  about,
  difference,
}: {
  readonly about: Compared;
  readonly difference: Difference;
}): string {
  const { behaviors, ...one } = about.case;
  const requests = [...about.crio.requests, ...about.agent.requests];
  const hosts = new Set(requests.map(({ host }) => host.replace(/:443$/, '')));
  const { image, crio, agent, problems } = about;
  const withHosts = Object.fromEntries([...hosts].map((host) => [host, behaviors.get(host)]));
  return JSON.stringify(
    { difference, image, case: one, behaviors: withHosts, crio, agent, problems },
    shortened,
    2,
  );
}

function shortened(key: string, value: unknown): unknown {
  if (key === 'requests')
    return (
      value as {
        scheme: string;
        method: string;
        host: string;
        path: string;
        authorization: string;
        status: unknown;
      }[]
    ).map(
      ({ method, scheme, host, path, authorization, status }) =>
        `${method} ${scheme}://${host}${path} ${authorization} ${String(status)}`,
    );
  return typeof value === 'string' && value.includes('-----BEGIN') ? '(PEM)' : value;
}
