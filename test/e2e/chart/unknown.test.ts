/** Unknown values: the schema refuses them and names them, by both versions of Helm, also in `helm lint`. */
import t from 'tap';
import { chartSections } from '../../../scripts/docs/chart/chart.ts';
import { helms } from '../programs/helm.ts';
import { chart, kubeVersion, render, runHelm } from './helm.ts';
import { withValue } from './value-sets.ts';

const refused: Readonly<Record<string, object>> = {
  preferedArchitecture: { preferedArchitecture: 'arm64' },
  bindir: { kubeletConfig: { bindir: '/x' } },
  hostpaths: { agent: { hostpaths: ['/'] } },
  // Right names in the wrong place.
  replicas: { replicas: 3 },
  hostPaths: { webhook: { hostPaths: [] } },
  rule: { monitoring: { rule: { enabled: true } } },
  proxy: { agent: { pools: [{ name: 'gpu', config: { proxy: [] } }] } },
};

const accepted: readonly object[] = [
  // Values with a type that allows a table.
  { proxies: ['docker.io=mirror.example.com'], architectures: { arm64: { requireNodeLabels: { a: 'b' } } } },
  // Values of other charts, and the condition of a chart that has this one as a dependency.
  { global: { storageClass: 'fast', imageRegistry: 'mirror.example.com' } },
  { enabled: true },
];

for (const helm of helms) {
  t.test(`${helm} refuses unknown values`, async (t) => {
    for (const [name, values] of Object.entries(refused))
      t.throws(
        () => render(helm, values),
        new RegExp(`'${name}'.* not allowed|${name} is not allowed`),
        name,
      );
    for (const values of accepted) t.doesNotThrow(() => render(helm, values), JSON.stringify(values));
  });

  t.test(`${helm} lint refuses them too`, async (t) => {
    const args = ['lint', chart, '--kube-version', kubeVersion, '--set', 'webhook.replica=3'];
    const { code, out, err } = runHelm(helm, args);
    t.equal(code, 1);
    t.match(out + err, 'replica');
  });
}

t.test('a misspelled name is refused in every table', async (t) => {
  const keys = chartSections().flatMap(({ values }) => values.map(({ key }) => key));
  const tables = new Set(keys.map((key) => key.slice(0, key.lastIndexOf('.') + 1)));
  tables.delete('global.');
  t.ok(tables.size > 15);
  const values = [...tables].reduce<object>((all, table) => withValue(all, `${table}misspelled`, 1), {});
  let message = '';
  t.throws(() => {
    try {
      render('helm4', values);
    } catch (error) {
      message = (error as Error).message;
      throw error;
    }
  });
  t.equal(message.match(/'misspelled'/g)?.length, tables.size);
});
