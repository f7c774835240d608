import { existsSync } from 'node:fs';
import t from 'tap';
import { brokenRule } from './rooms.ts';
import { importsOf, reachedFrom, root, sources } from './sources.ts';
import { like } from '../support/like.ts';

/** Maximum length of a file. */
const maxLines = 300;

const all = sources();

t.test('rooms import only the rooms that they may import', async (t) => {
  t.ok(all.length > 10, 'there are sources');
  const broken = all.flatMap(({ path, imports }) =>
    imports.flatMap((found) => {
      const rule = brokenRule(path, found);
      return rule === undefined ? [] : [`${path} imports ${found.target}: ${rule}`];
    }),
  );
  t.strictSame(broken, []);
});

t.test('no imports form a circle, types included', async (t) => {
  const found = new Map(all.map(({ path, imports }) => [path, imports.map(({ target }) => target)]));
  t.strictSame(circles(found), []);
  const some = { a: ['b', 'node:fs'], b: ['c', 'd'], c: ['b'], d: [], e: ['e'] };
  t.strictSame(circles(new Map(Object.entries(some))), [['b', 'c'], ['e']], 'circles are found');
});

/** Import circles, as groups of files. Imports outside the map are ignored. */
function circles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const reach = new Map(
    [...imports.keys()].map((path) => [path, reachedFrom(imports, imports.get(path) ?? [])]),
  );
  const inCircle = [...imports.keys()].filter((path) => reach.get(path)?.has(path));
  const groups = inCircle.map((path) =>
    inCircle.filter(
      (other) => other === path || (reach.get(path)?.has(other) && reach.get(other)?.has(path)),
    ),
  );
  return [...new Map(groups.map((group) => [group.join(' '), group])).values()];
}

t.test('every imported file exists', async (t) => {
  const missing = all.flatMap(({ path, imports }) =>
    imports
      .filter(({ target }) => target.includes('/') && /\.[jt]s$/.test(target))
      .filter(({ target }) => !existsSync(`${root}${target}`) && !existsSync(`${root}node_modules/${target}`))
      .map(({ target }) => `${path}: ${target}`),
  );
  t.strictSame(missing, []);
});

t.test(`no file is longer than ${maxLines} lines`, async (t) => {
  t.strictSame(
    all.filter(({ lines }) => lines > maxLines),
    [],
  );
});

t.test('the rules find forbidden imports', async (t) => {
  const cases: [string, string, boolean, RegExp | undefined][] = [
    ['src/webhook/mutate.ts', 'src/fleet/fleet.ts', false, undefined],
    ['src/webhook/mutate.ts', 'src/controller/gates.ts', false, /webhook may import/],
    ['src/controller/features/gates/a.ts', 'src/controller/features/taints/b.ts', true, /each other/],
    ['src/controller/write/a.ts', 'src/controller/features/taints/b.ts', true, /only their list/],
    ['src/fleet/fleet.ts', 'src/webhook/mutate.ts', false, /fleet may import images, policy/],
    ['src/credentials/keyring/keyring.ts', 'src/registry/client.ts', false, /credentials may import none/],
    ['src/placement/decide.ts', 'src/policy/effective/policy.ts', true, undefined],
    ['src/placement/decide.ts', 'src/policy/effective/policy.ts', false, /only types/],
    ['src/kube/api/client.ts', 'src/images/facts/facts.ts', true, /kube may import names, telemetry, async/],
    ['src/names/labels.ts', 'src/telemetry/log.ts', false, /names may import nothing/],
    ['src/placement/decide.ts', 'src/names/labels.ts', false, undefined],
    ['src/surprise/x.ts', 'src/images/facts/facts.ts', false, /not a room of the layout/],
    ['cmd/agent.ts', 'test/support/certificates.ts', false, /nothing from outside/],
    ['cmd/agent.ts', 'koa', false, undefined],
  ];
  for (const [from, target, typeOnly, rule] of cases) {
    const broken = brokenRule(from, { target, typeOnly });
    if (rule) like(t, broken, rule, `${from} → ${target}`);
    else t.equal(broken, undefined, `${from} → ${target}`);
  }
});

t.test('imports are found in a source text', async (t) => {
  const text = `import { a } from './a.ts';
import type { B } from '../other/b.ts';
import { type C, type D } from './c.ts';
import { type E, f } from './e.ts';
import {
  g,
  h,
} from "./g.ts";
import './side.ts';
export { i } from './i.ts';
export type { J } from './j.ts';
export const from = 'x';
const later = () => import('./later.ts');
`;
  t.strictSame(importsOf('src/room/file.ts', text), [
    { target: 'src/room/a.ts', typeOnly: false },
    { target: 'src/other/b.ts', typeOnly: true },
    { target: 'src/room/c.ts', typeOnly: true },
    { target: 'src/room/e.ts', typeOnly: false },
    { target: 'src/room/g.ts', typeOnly: false },
    { target: 'src/room/side.ts', typeOnly: false },
    { target: 'src/room/i.ts', typeOnly: false },
    { target: 'src/room/j.ts', typeOnly: true },
    { target: 'src/room/later.ts', typeOnly: false },
  ]);
});
