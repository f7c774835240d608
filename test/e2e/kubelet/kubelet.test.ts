/**
 * A real kubelet with a real containerd against the agent on the same node: plugin runs, the order of credentials,
 * and the outcome. Setups written by hand, then generated ones.
 *
 *   E2E_SEED    seed of the generated cases. Default: random; it is printed.
 *   E2E_CASES   number of generated cases. Default: 150.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { boxProblem, foldersOf, runBox } from '../box/box.ts';
import type { Difference } from './compare.ts';
import type { CaseReport } from './report.ts';
import { seedOfRun } from '../random.ts';
import { findPrograms } from './programs.ts';

const project = fileURLToPath(new URL('../../..', import.meta.url));
const seed = seedOfRun();
const cases = Number(process.env['E2E_CASES'] ?? 150);

/** Some four minutes on two cores; a loaded machine gets more. */
const timeoutMs = 15 * 60_000;

void t.test('a kubelet and an agent on one node', { timeout: timeoutMs + 60_000 }, async (t) => {
  const problem = boxProblem();
  if (problem !== undefined) {
    t.fail(`the comparison with a real kubelet cannot run here: ${problem}`);
    return;
  }
  const programs = findPrograms();
  t.comment(`E2E_SEED=${seed} E2E_CASES=${cases}`);
  const reports: CaseReport[] = [];
  const end = await runBox({
    entry: new URL('inside.ts', import.meta.url),
    folders: foldersOf(programs),
    env: { PROGRAMS: JSON.stringify(programs), E2E_SEED: String(seed), E2E_CASES: String(cases) },
    timeoutMs,
    onLine: (line) => reports.push(JSON.parse(line) as CaseReport),
  });

  t.equal(end.timedOut, false, 'the box ends in time');
  t.equal(end.code, 0, `the box ends well${end.code === 0 ? '' : `: ${end.stderr}`}`);
  for (const { setup, name, differences, example } of reports) {
    const unexplained = differences.filter(({ deviation }) => deviation === undefined);
    t.same(unexplained, [], `${setup}: ${name}`, { ...(example && { example: JSON.stringify(example) }) });
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
function deviations(
  t: { comment(text: string): void; match(text: string, part: string, name: string): void },
  reports: readonly CaseReport[],
): void {
  const documented = readFileSync(resolve(project, 'docs', 'internals', 'deviations.md'), 'utf8');
  const met = new Map<string, { readonly label: string; readonly difference: Difference }[]>();
  for (const { setup, name, differences } of reports) {
    for (const difference of differences) {
      if (difference.deviation === undefined) continue;
      const list = met.get(difference.deviation) ?? [];
      met.set(difference.deviation, [
        ...list,
        { label: `${setup}: ${name} ${difference.image}`, difference },
      ]);
    }
  }
  for (const [name, list] of met) {
    const size = ({ difference }: (typeof list)[number]): number =>
      difference.kubelet.length + difference.agent.length;
    const [shortest] = list.sort((a, b) => size(a) - size(b));
    t.match(documented, `\`${name}\``, `docs/internals/deviations.md has ${name}`);
    if (shortest === undefined) continue;
    const { label, difference } = shortest;
    t.comment(
      `${name}: ${list.length} × ; ${label}: ${difference.what}: kubelet ${difference.kubelet}; agent ${difference.agent}`,
    );
  }
}
