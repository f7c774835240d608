/**
 * The rules of Red Hat's chart verification (redhat-certification/chart-verifier, profile partner 1.3), for
 * charts in the console of OpenShift. Not here: `helm lint`, `helm install` and `helm test`, which run in
 * `test/e2e`, and a certification of the image, which only Red Hat can give.
 */
import { globSync, readFileSync } from 'node:fs';
import t from 'tap';
import { parse } from 'yaml';

const chart = 'charts/archwright';
const about = parse(readFileSync(`${chart}/Chart.yaml`, 'utf8')) as Readonly<Record<string, unknown>>;
const templates = globSync(`${chart}/templates/**/*.yaml`);

/** Kubernetes of each OpenShift that the verification knows (opdev/getocprange). */
const minors = { oldest: 13, newest: 34 };

t.test('the chart satisfies the rules of the verification', async (t) => {
  t.equal(about['apiVersion'], 'v2', 'is-helm-v3');
  const lengthOf = (file: string): number => readFileSync(`${chart}/${file}`, 'utf8').length;
  t.ok(lengthOf('README.md') > 0, 'has-readme');
  t.ok(lengthOf('templates/NOTES.txt') > 0, 'has-notes');
  t.ok(
    Object.keys(parse(readFileSync(`${chart}/values.yaml`, 'utf8')) as object).length > 0,
    'contains-values',
  );
  t.ok(lengthOf('values.schema.json') > 0, 'contains-values-schema');
  t.ok(
    templates.some((file) => file.startsWith(`${chart}/templates/tests/`)),
    'contains-test',
  );
  const [, first] = /^>=1\.(\d+)\.0-0$/.exec(String(about['kubeVersion'])) ?? [];
  t.ok(
    Number(first) >= minors.oldest && Number(first) <= minors.newest,
    'has-kubeversion: a range without ||, in which an OpenShift is',
  );
  t.strictSame(globSync(`${chart}/{crds,charts}/**`), [], 'not-contains-crds, nor by a subchart');
  const kinds = templates.flatMap((file) => readFileSync(file, 'utf8').match(/^kind:.*$/gm) ?? []);
  t.ok(kinds.length > 20);
  t.notOk(kinds.includes('kind: CSIDriver'), 'not-contain-csi-objects');
  const { 'charts.openshift.io/name': name } = about['annotations'] as Readonly<Record<string, string>>;
  t.ok(name, 'required-annotations-present');
});

t.test('one image with a registry has to be certified', async (t) => {
  const rendered = readFileSync('deploy/archwright.yaml', 'utf8');
  const images = [...rendered.matchAll(/\s+image:[ \t]+(\S.*)\s*$/gm)].map(([, image]) => image);
  t.strictSame([...new Set(images)], [`ghcr.io/archwright/archwright:${String(about['appVersion'])}`]);
});
