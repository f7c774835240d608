/** Unknown values: both versions of Helm refuse them, and suggest the most similar one. */
import t from 'tap';
import { chartSections } from '../../../scripts/docs/chart/chart.ts';
import { suggestionFor } from '../../../src/names/suggestion.ts';
import { helms } from '../programs/helm.ts';
import { chart, kubeVersion, render, runHelm } from './helm.ts';

/** Lines of the chart's message, without Helm's text around them. */
function refusal(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    return (error as Error).message
      .split('\n')
      .flatMap((line) => /(\S+ is not a value of this chart.*)/.exec(line)?.[1] ?? []);
  }
  return [];
}

const cases: readonly (readonly [values: object, suggestions: readonly string[]])[] = [
  [{ preferedArchitecture: 'arm64' }, ['preferedArchitecture…; did you mean preferredArchitecture?']],
  [{ kubeletConfig: { bindir: '/x' } }, ['kubeletConfig.bindir…; did you mean kubeletConfig.binDir?']],
  [
    { agent: { prot: 3, hostpaths: ['/'] } },
    ['agent.hostpaths…; did you mean agent.hostPaths?', 'agent.prot…; did you mean agent.port?'],
  ],
  // Right names in the wrong place.
  [{ replicas: 3 }, ['replicas…; did you mean controller.replicas or webhook.replicas?']],
  [{ webhook: { hostPaths: [] } }, ['webhook.hostPaths…; did you mean agent.hostPaths?']],
  [{ monitoring: { rule: { enabled: true } } }, ['monitoring.rule…; did you mean monitoring.rules?']],
  [{ gibberish: 1 }, ['gibberish…']],
  // Values with a type that allows a table.
  [
    {
      proxies: ['docker.io=mirror.example.com'],
      architectures: { arm64: { requireNodeLabels: { a: 'b' } } },
    },
    [],
  ],
  [{ global: { storageClass: 'fast', imageRegistry: 'mirror.example.com' } }, []],
  // Set by a chart that has this one as a dependency.
  [{ enabled: true }, []],
];

for (const helm of helms) {
  t.test(`${helm} suggests the intended value`, async (t) => {
    for (const [values, suggestions] of cases) {
      const wanted = suggestions.map((line) => line.replace('…', ' is not a value of this chart'));
      t.same(
        refusal(() => render(helm, values)),
        wanted,
        JSON.stringify(values),
      );
    }
  });

  t.test(`${helm} lint refuses it too`, async (t) => {
    const args = ['lint', chart, '--kube-version', kubeVersion, '--set', 'webhook.replica=3'];
    const { code, out, err } = runHelm(helm, args);
    t.equal(code, 1);
    t.match(out + err, 'webhook.replica is not a value of this chart; did you mean webhook.replicas?');
  });
}

t.test('the chart suggests the same value as the program', async (t) => {
  const keys = chartSections().flatMap(({ values }) => values.map(({ key }) => key));
  const siblings = (path: string): readonly string[] => [
    ...new Set(
      keys.filter((key) => key.startsWith(path)).map((key) => key.slice(path.length).split('.')[0] ?? ''),
    ),
  ];
  // Comparing each with all of its siblings is slow in a template. `global` may have any values.
  const some = keys.filter((key) => !key.startsWith('global.')).filter((_, index) => index % 9 === 0);
  const values: Record<string, unknown> = {};
  const wanted: string[] = [];
  for (const [index, key] of some.entries()) {
    const steps = key.split('.');
    const name = steps.at(-1) ?? '';
    const path = key.slice(0, key.length - name.length);
    const wrong = misspelled(name, index);
    if (siblings(path).includes(wrong)) continue;
    let at = values;
    for (const step of steps.slice(0, -1)) at = (at[step] ??= {}) as Record<string, unknown>;
    at[wrong] = 1;
    const meant = suggestionFor(wrong, siblings(path).toSorted());
    t.type(meant, 'string', key);
    wanted.push(`${path}${wrong} is not a value of this chart; did you mean ${path}${meant ?? ''}?`);
  }
  t.ok(wanted.length > 15);
  t.same(refusal(() => render('helm4', values)).toSorted(), wanted.toSorted());
});

/** A letter missing, doubled, replaced, or swapped with the next. */
function misspelled(name: string, kind: number): string {
  const at = Math.floor(name.length / 2);
  const [before, letter, after] = [name.slice(0, at), name.charAt(at), name.slice(at + 1)];
  const next = after.charAt(0);
  const ways = [
    before + after,
    before + letter + letter + after,
    `${before}x${after}`,
    before + next + letter + after.slice(1),
  ];
  return ways[kind % ways.length] ?? name;
}
