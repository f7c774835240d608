import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadConfiguration } from '../../../src/policy/configuration/configuration.ts';
import type { Part } from '../../../src/policy/settings/setting.ts';
import { isSetting, chartSections } from '../../../scripts/docs/chart/chart.ts';
import { deployFiles } from '../../../scripts/deploy/files.ts';
import { changes } from './value-sets.ts';
import { helms } from '../programs/helm.ts';
import { chart, kubeVersion, render, runHelm } from './helm.ts';
import { objectsOf } from './rendered.ts';

for (const helm of helms) {
  t.test(`${helm} lints, and renders the same bytes each time`, async (t) => {
    const { code, out, err } = runHelm(helm, ['lint', '--strict', chart, '--kube-version', kubeVersion]);
    t.equal(code, 0, out + err);
    t.equal(render(helm), render(helm));
  });
}

t.test('both versions of Helm render the same objects', async (t) => {
  const [three, four] = helms.map((helm) =>
    objectsOf(render(helm))
      .map((object) => JSON.stringify(object))
      .sort(),
  );
  t.strictSame(three, four);
});

/** Renders each set of values once, which takes a fifth of a second. */
const rendered = new Map<string, string>();
function renderedOnce(values: object): string {
  const key = JSON.stringify(values);
  const text = rendered.get(key) ?? render('helm4', values);
  rendered.set(key, text);
  return text;
}

t.test('each value has an effect', async (t) => {
  // t.not would print both texts.
  for (const { key, before, after } of changes()) t.ok(renderedOnce(before) !== renderedOnce(after), key);
});

t.test('each setting is rendered into archwright.toml, which the program accepts', async (t) => {
  const dir = t.testdir();
  const file = join(dir, 'archwright.toml');
  const settings = new Map(
    chartSections()
      .flatMap(({ values }) => values.filter(isSetting))
      .map((value) => [value.key, value]),
  );
  const parts: readonly Part[] = ['webhook', 'controller', 'agent', 'clean', 'probe'];
  for (const { key, after, example } of changes()) {
    const value = settings.get(key);
    if (!value) continue;
    const map = objectsOf(renderedOnce(after)).find(
      ({ kind, metadata }) => kind === 'ConfigMap' && metadata?.name === 'archwright',
    );
    writeFileSync(file, map?.data?.['archwright.toml'] ?? '');
    for (const part of parts) {
      const { configuration, problems } = await loadConfiguration({ file, env: {}, flags: {}, part });
      t.strictSame(problems, [], `${key} for ${part}`);
      const found =
        configuration === undefined ? undefined : (configuration as Readonly<Record<string, unknown>>)[key];
      const wanted = value.setting.kind.read(example, () => undefined);
      t.strictSame(found, wanted, key);
    }
  }
});

/** Values of a field in the DaemonSets of agents. @param pattern with the value as its group */
const inAgents = (values: object, pattern: RegExp): readonly string[] =>
  objectsOf(render('helm4', values))
    .filter(({ kind }) => kind === 'DaemonSet')
    .flatMap((object) => [...JSON.stringify(object).matchAll(pattern)].map(([, value = '']) => value));

t.test('agents need shared mounts only for directories in which nodes mount volumes', async (t) => {
  const propagationOf = (values: object) => inAgents(values, /"mountPropagation":"(\w+)"/g);
  const kubeletConfig = { config: '/etc/plugins.yaml', binDir: '/opt/plugins' };
  t.strictSame(propagationOf({}), Array(5).fill('None'));
  t.strictSame(propagationOf({ kubeletConfig }), ['HostToContainer'], 'all of /');
  t.strictSame(propagationOf({ kubeletConfig, agent: { mountPropagation: 'None' } }), ['None']);
  t.strictSame(
    propagationOf({ agent: { hostPaths: ['/etcetera', '/etc', '/opt/x', '/var/lib/kubelet', '/usr'] } }),
    ['HostToContainer', 'None', 'None', 'HostToContainer', 'None'],
  );
  const pools = [
    { name: 'a', mountPropagation: 'HostToContainer', hostPaths: ['/etc'] },
    { name: 'b', hostPaths: ['/etc'] },
  ];
  t.strictSame(propagationOf({ agent: { pools } }), ['HostToContainer', 'None']);
});

t.test('agents mount the directories of their container runtime', async (t) => {
  const pathsOf = (values: object) => inAgents(values, /"hostPath":\{"path":"([^"]+)"/g);
  const common = ['/etc/ssl/certs', '/etc/systemd/system'];
  const crio = ['/etc/crio', '/etc/containers'];
  const containerdConfigPathCandidates = ['/etc/k0s/containerd.toml'];
  t.strictSame(pathsOf({}), ['/etc/containerd', ...crio, ...common]);
  t.strictSame(pathsOf({ runtime: 'containerd' }), ['/etc/containerd', ...common]);
  t.strictSame(pathsOf({ runtime: 'cri-o' }), [...crio, '/etc/docker/certs.d', ...common]);
  t.strictSame(
    pathsOf({ containerdConfigPathCandidates }),
    ['/etc/k0s', ...common],
    'a distribution with containerd',
  );
});

t.test(
  'the credentials of each registry are in a file of its name, and in a key that Secrets allow',
  async (t) => {
    const registries = ['ghcr.io', 'localhost:5000', '*.example.com', '[fd00::1]:5000'];
    const files = ['*.example.com.toml', '[fd00::1]_5000_.toml', 'ghcr.io.toml', 'localhost_5000_.toml'];
    const keys = files.map((file) => file.replaceAll(/[*[\]:]/g, '_'));
    const valuesWith = (credential: object) => {
      return { registryCredentials: Object.fromEntries(registries.map((each) => [each, credential])) };
    };
    const objects = objectsOf(render('helm4', valuesWith({ user: 'a', secret: 'b' })));
    const data = objects.find(({ metadata }) => metadata?.name === 'archwright-creds')?.data ?? {};
    t.strictSame(Object.keys(data).sort(), keys.toSorted());
    for (const credential of [{ user: 'a', secret: 'b' }, { existingSecret: 's' }])
      t.strictSame(
        inAgents(valuesWith(credential), /"key":"([^"]+\.toml","path":"[^"]+\.toml)"/g),
        files.map((file, index) => `${keys[index]}","path":"${file}`),
      );
  },
);

t.test('agents that trace get host paths, and no other right', async (t) => {
  const linesOf = (values: object): readonly string[] =>
    render('helm4', values)
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => !/^(?:#|checksum\/)/.test(line));
  const [without, tracing] = [linesOf({}), linesOf({ execFormatErrorTracing: true })];
  const added = tracing.filter((line) => !without.includes(line));
  t.strictSame(
    added.filter((line) => /name: |path: |Path: /.test(line)),
    [
      '- name: tracing',
      '- { name: run, mountPath: /run/archwright }',
      '- { name: kernel, mountPath: /host/sys/kernel, readOnly: true }',
      '- { name: tracing, mountPath: /run/archwright/tracing }',
      '- { name: proc, mountPath: /host/proc, readOnly: true }',
      '- name: tracing',
      'hostPath: { path: /run/archwright/tracing }',
      '- name: run',
      'hostPath: { path: /run/archwright, type: DirectoryOrCreate }',
      '- name: kernel',
      'hostPath: { path: /sys/kernel, type: Directory }',
      '- name: proc',
      'hostPath: { path: /proc, type: Directory }',
    ],
  );
  t.notMatch(added.join('\n'), /securityContext|privilege|capabilities|runAs|host[A-Z]\w+: true/i);
  const pools = [{ name: 'a', config: { execFormatErrorTracing: true } }, { name: 'b' }];
  t.equal(linesOf({ agent: { pools } }).filter((line) => line === '- name: kernel').length, 1);
});

t.test('the chart has no objects and fields that the controller manages', async (t) => {
  const objects = objectsOf(render('helm4'));
  const webhooks = objects.filter(({ kind }) => kind === 'MutatingWebhookConfiguration');
  const names = webhooks.map(({ metadata }) => metadata?.name);
  t.strictSame(names, ['archwright', 'archwright-once-per-cluster']);
  for (const { metadata, ...rest } of webhooks)
    t.notOk('webhooks' in rest, `${metadata?.name}: the controller writes the webhooks`);
  const secrets = objects.filter(({ kind }) => kind === 'Secret');
  t.strictSame(secrets, [], 'the controller makes the certificates');
  const scaled = objectsOf(
    render('helm4', { webhook: { autoscaling: { enabled: true } }, controller: { replicas: null } }),
  );
  for (const { kind, spec } of scaled) if (kind === 'Deployment') t.notOk('replicas' in (spec as object));
});

t.test('templates look nothing up and generate nothing', async (t) => {
  const forbidden =
    /\b(?:lookup|randAlphaNum|randAlpha|randNumeric|randAscii|randBytes|genCA|genSelfSignedCert|genSignedCert|genPrivateKey|uuidv4|now|htpasswd|derivePassword)\b\s/;
  for (const file of globSync('charts/archwright/templates/**/*.{yaml,tpl}')) {
    t.notMatch(
      readFileSync(file, 'utf8').replaceAll(/\{\{-?\s*\/\*[\s\S]*?\*\/-?\s*\}\}|^\s*#.*$/gm, ''),
      new RegExp(String.raw`\{\{[^}]*${forbidden.source}`),
      file,
    );
  }
});

t.test('the plain manifests equal the rendered chart', async (t) => {
  for (const [path, make] of Object.entries(deployFiles)) {
    t.equal(
      readFileSync(path, 'utf8'),
      make((values, args) => render('helm4', values, args)),
      `${path}: run npm run deploy`,
    );
  }
});
