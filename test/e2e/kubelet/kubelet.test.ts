/**
 * A real kubelet with a real containerd against the agent on the same node: plugin runs, the order of
 * credentials, and the outcome. First hand-written setups, then generated ones.
 *
 *   E2E_SEED    seed of the generated cases. Default: random; it is printed.
 *   E2E_CASES   number of generated cases. Default: 150.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { runInBox } from '../box/box.ts';
import { kubeletPrograms } from '../box/programs.ts';
import type { Difference } from './compare.ts';
import type { CaseReport } from './run.ts';
import { seedOfRun, casesOfRun } from '../random.ts';

const project = fileURLToPath(new URL('../../..', import.meta.url));
const seed = seedOfRun();
const cases = casesOfRun(150);

/** About four minutes on two cores; a loaded machine needs more. */
const timeoutMs = 15 * 60_000;

void t.test('an agent and a kubelet on one node behave alike', { timeout: timeoutMs + 60_000 }, async (t) => {
  t.comment(`E2E_SEED=${seed} E2E_CASES=${cases}`);
  const reports: CaseReport[] = [];
  await runInBox(t, kubeletPrograms(), {
    entry: new URL('inside.ts', import.meta.url),
    env: { E2E_SEED: String(seed), E2E_CASES: String(cases) },
    timeoutMs,
    onLine: (line) => reports.push(JSON.parse(line) as CaseReport),
  });
  for (const { setup, name, differences, example } of reports) {
    const unexplained = differences.filter(({ deviation }) => deviation === undefined);
    t.strictSame(unexplained, [], `${setup}: ${name}`, {
      ...(example && { example: JSON.stringify(example) }),
    });
  }

  const pods = reports.map(({ happened }) => happened);
  const sum = (of: (happened: CaseReport['happened']) => number): number =>
    pods.reduce((total, happened) => total + of(happened), 0);
  t.comment(
    `${reports.length} cases: ${sum(({ pulled }) => pulled)} images pulled, ${sum(({ refused }) => refused)} refused, ` +
      `${sum(({ runs }) => runs)} runs of plugins, several users for ${sum(({ severalUsers }) => severalUsers)} images`,
  );
  t.ok(sum(({ pulled }) => pulled) > 50, 'images were pulled');
  t.ok(sum(({ refused }) => refused) > 20, 'images were refused');
  t.ok(sum(({ runs }) => runs) > 50, 'plugins were run');
  t.ok(sum(({ severalUsers }) => severalUsers) > 10, 'users were tried one after the other');
  deviations(t, reports);
});

/** Each deviation in the report is documented. Shows the shortest example of each. */
function deviations(t: Test, reports: readonly CaseReport[]): void {
  const documented = readFileSync(resolve(project, 'docs', 'internals', 'deviations.md'), 'utf8');
  const met = reports.flatMap(({ setup, name, differences }) =>
    differences
      .filter(({ deviation }) => deviation !== undefined)
      .map((difference) => ({ label: `${setup}: ${name} ${difference.image}`, ...difference })),
  );
  const size = ({ kubelet, agent }: Difference): number => kubelet.length + agent.length;
  for (const [name, list] of Map.groupBy(met, ({ deviation = '' }) => deviation)) {
    t.match(documented, `\`${name}\``, `docs/internals/deviations.md has ${name}`);
    const [{ label, what, kubelet, agent }] = list.sort((a, b) => size(a) - size(b)) as [
      (typeof met)[number],
    ];
    t.comment(`${name}: ${list.length} × ; ${label}: ${what}: kubelet ${kubelet}; agent ${agent}`);
  }
}
