import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { parseToml } from '../../../src/policy/configuration/toml.ts';
import { run } from '../run.ts';
import { files } from '../world.ts';

const example = (name: string): string => join(import.meta.dirname, '../../../examples/migrate', name);

const noeValues = {
  schedulableArchitectures: ['amd64', 'arm64'],
  dockerConfigPathCandidates: ['/var/lib/kubelet/config.json'],
  containerdConfigPathCandidates: ['/etc/containerd/config.toml'],
  kubeletConfig: {
    binDir: '/etc/eks/image-credential-provider',
    config: '/etc/eks/image-credential-provider/config.json',
  },
  proxies: ['docker.io=docker-proxy.company.corp'],
  matchNodeLabels: ['accelerator.node.kubernetes.io/gpu'],
  compat: { labels: true },
};

t.test('the configuration of each program becomes values', async (t) => {
  const cases: [file: string, values: unknown, notes: RegExp[]][] = [
    ['noe-values.yaml', noeValues, [/from Noe/, /image is left out/, /arch\.noe\.adevinta\.com\/preferred/]],
    [
      'noe-deployment.yaml',
      {
        preferredArchitecture: 'arm64',
        schedulableArchitectures: ['amd64', 'arm64'],
        proxies: ['docker.io=docker-proxy.company.corp'],
        privateRegistries: ['registry.company.corp'],
        compat: { labels: true },
      },
      [/leader-elect is left out/],
    ],
    [
      'tolerable.toml',
      {
        schedulableArchitectures: ['amd64', 'arm64'],
        tolerations: [{ effect: 'NoSchedule', operator: 'Equal', key: 'kubernetes.io/arch' }],
      },
      [
        /from tolerable/,
        /registry_credential_path .*\/creds.*registryCredentials/,
        /ssl_key_path is left out/,
      ],
    ],
    [
      'archaware-controller.yaml',
      { taintArchitectures: ['*'], taintKey: 'supported-arch' },
      [/from archaware-controller/],
    ],
  ];
  for (const [file, values, notes] of cases) {
    const { code, out, err } = await run(['config', 'convert', example(file)]);
    t.equal(code, 0, file);
    t.same(parse(out), values, file);
    for (const note of notes) t.match(err, note, file);
  }
});

t.test('TOML output is a valid configuration with the same values', async (t) => {
  for (const file of [
    'noe-values.yaml',
    'noe-deployment.yaml',
    'tolerable.toml',
    'archaware-controller.yaml',
  ]) {
    const { code, out } = await run(['config', 'convert', '-o', 'toml', example(file)]);
    t.equal(code, 0, file);
    const yaml = await run(['config', 'convert', example(file)]);
    t.same({ ...parseToml(out) }, parse(yaml.out), file);
    const { 'archwright.toml': written } = files(t, { 'archwright.toml': out });
    const checked = await run(['config', 'check', written]);
    t.equal(checked.err, '', file);
    t.equal(checked.code, 0, file);
  }
});

t.test("the multiarch-tuning-operator's custom resources become ours", async (t) => {
  const { code, out, err } = await run(['config', 'convert', example('multiarch-tuning-operator.yaml')]);
  t.equal(code, 0);
  const written = parseAllDocuments(out).map((document) => document.toJS() as unknown);
  const given = parseAllDocuments(readFileSync(example('multiarch-tuning-operator.yaml'), 'utf8')).map(
    (document) => document.toJS() as { kind: string; metadata: object; spec: object },
  );
  const apiVersion = 'arch.example/v1alpha1';
  const wanted = given.map(({ kind, metadata, spec }) => ({ apiVersion, kind, metadata, spec }));
  t.same(written, wanted);
  t.match(err, /exclude-pod-placement/);
});

t.test('fields without a counterpart are named; fields of the API server are dropped', async (t) => {
  const object = JSON.stringify({
    apiVersion: 'multiarch.openshift.io/v1alpha1',
    kind: 'ClusterPodPlacementConfig',
    metadata: { name: 'cluster', uid: 'u', resourceVersion: '7', managedFields: [] },
    spec: { globalPullSecret: 'x', plugins: { nodeAffinityScoring: { enabled: false }, teleport: {} } },
    status: { conditions: [] },
  });
  const { 'c.json': file } = files(t, { 'c.json': object });
  const { out, err } = await run(['config', 'convert', file]);
  t.same(parse(out), {
    apiVersion: 'arch.example/v1alpha1',
    kind: 'ClusterPodPlacementConfig',
    metadata: { name: 'cluster' },
    spec: { plugins: { nodeAffinityScoring: { enabled: false } } },
  });
  t.match(err, /spec\.globalPullSecret has no counterpart/);
  t.match(err, /spec\.plugins\.teleport has no counterpart/);
});

t.test('several configurations are merged; beside values, a message names custom resources', async (t) => {
  const both = [example('tolerable.toml'), example('multiarch-tuning-operator.yaml')];
  const { out, err } = await run(['config', 'convert', ...both]);
  t.match(parse(out), { schedulableArchitectures: ['amd64', 'arm64'] });
  t.match(err, /2 custom resources are printed by --output resources/);
  const resources = await run(['config', 'convert', ...both, '-o', 'resources']);
  t.equal(parseAllDocuments(resources.out).length, 2);
});

t.test('values of an unexpected shape are passed on or dropped', async (t) => {
  const cases: [text: string, values: unknown][] = [
    ['kubeletConfig: 5\n', { kubeletConfig: {}, compat: { labels: true } }],
    [
      'kubeletConfig: { binDir: /b, configDir: /c }\n',
      { kubeletConfig: { binDir: '/b', configDir: '/c' }, compat: { labels: true } },
    ],
    [
      'kubeletConfig: { config: /c/x.json, configDir: /c }\n',
      { kubeletConfig: { config: '/c/x.json' }, compat: { labels: true } },
    ],
    [
      'containerdConfigPathCandidates: [/a/, /b/config.toml, 7]\n',
      { containerdConfigPathCandidates: ['/a/config.toml', '/b/config.toml'], compat: { labels: true } },
    ],
  ];
  for (const [text, values] of cases) {
    const { 'v.yaml': file } = files(t, { 'v.yaml': text });
    const { code, out } = await run(['config', 'convert', file]);
    t.equal(code, 0, text);
    t.same(parse(out), values, text);
  }
});

t.test('it reads standard input', async (t) => {
  const toml = await run(['config', 'convert', '-'], {
    stdin: readFileSync(example('tolerable.toml'), 'utf8'),
  });
  t.match(parse(toml.out), { schedulableArchitectures: ['amd64', 'arm64'] });
  const yaml = await run(['config', 'convert', '-'], {
    stdin: readFileSync(example('noe-values.yaml'), 'utf8'),
  });
  t.same(parse(yaml.out), noeValues);
});
