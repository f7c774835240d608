/**
 * The programs start with everything that the chart renders; what they refuse, the chart refuses. With every
 * example and set of values of the other tests, and generated ones.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { createCa, issueTls } from '../../support/certificates.ts';
import { kubeconfigOf } from '../../support/kubeconfig.ts';
import { startKubeStore } from '../../support/kube-store.ts';
import { generatedValues } from './generated-values.ts';
import { render } from './helm.ts';
import { programsIn, readConfiguration, startProgram } from './programs.ts';
import { valueSets } from './value-sets.ts';
import { casesOfRun, seedOfRun } from '../random.ts';

const count = casesOfRun(200);
const seed = seedOfRun();

function exampleSets(): Readonly<Record<string, object>> {
  const files = [...globSync('examples/helm/*'), 'examples/kind/values.yaml'];
  return Object.fromEntries(files.map((file) => [file, parse(readFileSync(file, 'utf8')) as object]));
}

/** As the README of Noe's chart shows them. */
const noe = {
  kubeletConfig: { binDir: '/etc/eks/x', configDir: '/etc/eks/x', config: 'config.json' },
  containerdConfigPathCandidates: ['/etc/containerd'],
};

async function starts(t: Test, manifest: string, what: string): Promise<void> {
  const dir = t.testdir();
  for (const program of programsIn(manifest)) {
    const { code, printed } = await readConfiguration(program, dir);
    if (code !== 0) t.fail(`${what}: ${program.name}: ${printed}`);
  }
}

t.test('the programs accept the values of every example and other test', async (t) => {
  const sets = { noe, ...exampleSets(), ...valueSets() };
  t.ok(Object.keys(sets).length > 20);
  for (const [name, values] of Object.entries(sets)) {
    const manifest = render('helm4', values);
    t.ok(programsIn(manifest).length >= 3, name);
    await starts(t, manifest, name);
  }
});

t.test(
  `the programs accept ${count} generated sets of values, or the chart refuses them: E2E_SEED=${seed}`,
  async (t) => {
    let valid = 0;
    for (const { values, isValid } of generatedValues(count, seed)) {
      if (isValid) valid++;
      const what = JSON.stringify(values);
      try {
        const manifest = render('helm4', values);
        if (!isValid) t.fail(`rendered: ${what}`);
        await starts(t, manifest, what);
      } catch (error) {
        if (isValid) t.fail(`refused: ${what}: ${(error as Error).message}`);
      }
    }
    t.ok(valid > count / 4 && valid < count, `${valid} valid sets`);
  },
);

t.test('contradictory values are refused', async (t) => {
  const binDir = '/b';
  const cases: [object, RegExp][] = [
    [{ preferredArchitecture: 'aarch64' }, /preferredArchitecture': value must be one of '386', 'amd64'/],
    [{ preferredArchitecture: 'amd46' }, /preferredArchitecture': value must be one of '386', 'amd64'/],
    [{ taintArchitectures: ['arm46'] }, /taintArchitectures\/0': value must be one of/],
    [{ architectures: { s309x: {} } }, /architectures'.*s309x/s],
    [
      { preferredArchitecture: 'arm64', schedulableArchitectures: ['amd64'] },
      /names arm64, which is not one of schedulableArchitectures \(amd64\)/,
    ],
    [
      { preferredWeights: { s390x: 1 }, schedulableArchitectures: ['amd64'] },
      /names s390x, which is not one of schedulableArchitectures/,
    ],
    [
      { fallbackArchitecture: 'arm64', schedulableArchitectures: ['amd64'] },
      /names arm64, which is not one of schedulableArchitectures/,
    ],
    [
      { preferredArchitecture: 'arm64', preferredWeights: { amd64: 1 } },
      /preferredArchitecture and preferredWeights are both set/,
    ],
    [
      { proxies: ['docker.io=a.example', 'docker.io=b.example'] },
      /names two proxies for one registry: docker\.io/,
    ],
    [{ kubeletConfig: { config: '/c' } }, /need kubeletConfig\.binDir/],
    [{ onUnknownImage: 'fallback' }, /onUnknownImage is fallback, so fallbackArchitecture must be set/],
    [{ kubeletConfig: { binDir, configDir: '/d', config: '/c' } }, /set one of them/],
    [{ kubeletConfig: { binDir } }, /kubeletConfig\.binDir needs kubeletConfig\.config/],
    [
      { kubeletConfig: { binDir, config: 'config.json' } },
      /kubeletConfig has a path that is not absolute: "config\.json"/,
    ],
    [
      { agent: { pools: [{ name: 'a', config: { kubeletConfig: { binDir: 'b', configDir: '/d' } } }] } },
      /agent\.pools\[0\]\.config\.kubeletConfig has a path that is not absolute: "b"/,
    ],
    [
      { containerdConfigPathCandidates: ['etc'] },
      /containerdConfigPathCandidates\/0': 'etc' does not match pattern/,
    ],
    [
      { agent: { pools: [{ name: 'a', config: { cacheSize: '1Ki' } }] } },
      /agent\.pools\[0\]\.config\.cacheSize/,
    ],
    [{ requirePullableNodes: true, agent: { enabled: false } }, /requirePullableNodes needs agents/],
    [
      { kubeletConfig: { binDir, configDir: '/d', config: '../../passwd' } },
      /kubeletConfig\.config must be the name of a file in kubeletConfig\.configDir, not "\.\.\/\.\.\/passwd"/,
    ],
    [{ kubeletConfig: { binDir, configDir: '/d', config: 'C:/x' } }, /must be the name of a file/],
    [{ kubeletConfig: { binDir, config: 'C:/x' } }, /kubeletConfig has a path that is not absolute/],
    [{ namespaceOverride: 'kube-system' }, /archwright cannot run in the namespace kube-system/],
    [{ controller: { enabled: false } }, /certificates: builtin needs the controller/],
    [
      { controller: { enabled: false }, certificates: 'external', report: { enabled: true } },
      /report\.enabled needs the controller/,
    ],
    [
      { agent: { readKubeletEnvironment: true, hostPaths: ['/etc'] } },
      /agent\.readKubeletEnvironment needs the whole host file system/,
    ],
    [
      { agent: { pools: [{ name: 'a', readKubeletEnvironment: true, hostPaths: [{ path: '/etc' }] }] } },
      /agent\.pools\[a\]\.readKubeletEnvironment/,
    ],
    [{ kubeletEnvironment: { A: 'a\0' } }, /NUL/],
    [{ webhook: { clientCa: '/etc/ca.crt' } }, /webhook\.clientCa must be certificates in PEM/],
  ];
  for (const [values, message] of cases) {
    t.throws(() => render('helm4', values), message, JSON.stringify(values));
  }
  const odd = { kubeletEnvironment: { A: '\u007f\u0085\u2028"\\<>' } };
  await starts(t, render('helm4', odd), 'characters that TOML and YAML must escape');
});

t.test('a corrected value that a pod needs at its start gives new pods, without the back-off', async (t) => {
  const pem = (text: string): string => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
  const changes: [wrong: object, right: object, parts: readonly string[]][] = [
    [{ cacheSize: '1Mi' }, { cacheSize: '2Mi' }, ['webhook', 'controller', 'agent']],
    [{ webhook: { clientCa: pem('a') } }, { webhook: { clientCa: pem('b') } }, ['webhook']],
    [{ logLevel: 'debug' }, { logLevel: 'info' }, []],
  ];
  for (const [wrong, right, parts] of changes) {
    const [before, after] = [checksumsOf(wrong), checksumsOf(right)];
    const changed = Object.keys(before).filter((part) => before[part] !== after[part]);
    t.same(changed.toSorted(), parts.toSorted(), JSON.stringify(right));
  }
});

/** What makes new pods, by part. */
function checksumsOf(values: object): Readonly<Record<string, string>> {
  const checksum = /^ {8}checksum\/restart: (\S+)$/m;
  return Object.fromEntries(
    render('helm4', values)
      .split('\n---\n')
      .flatMap((document) => {
        const part = /^ {2}name: \S*-(webhook|controller|agent)$/m.exec(document)?.[1];
        const found = checksum.exec(document)?.[1];
        return part === undefined || found === undefined ? [] : [[part, found] as const];
      }),
  );
}

t.test('wrong flags, variables and ports are refused', async (t) => {
  const cases: [object, RegExp][] = [
    [
      { webhook: { extraArgs: ['--log-level=debg'] } },
      /webhook\.extraArgs: --log-level takes .*`debug`.*"debg"/,
    ],
    [{ webhook: { extraArgs: ['--nope'] } }, /--nope is not a flag of archwright webhook/],
    [{ webhook: { extraArgs: ['--drain-time'] } }, /--drain-time needs a value/],
    [{ webhook: { extraArgs: ['--drain-time', '11m'] } }, /--drain-time must be from 0s to 10m, not 11m/],
    [{ clean: { extraArgs: ['--restart-pod'] } }, /--restart-pod is not a flag of archwright clean/],
    [
      { agent: { extraEnv: [{ name: 'ARCHWRIGHT_LISTN', value: 'x' }] } },
      /ARCHWRIGHT_LISTN is not a variable of archwright/,
    ],
    [
      { agent: { pools: [{ name: 'a', extraArgs: ['--proxies=a'] }] } },
      /agent\.pools\[0\]\.extraArgs: --proxies takes/,
    ],
    [{ agent: { port: 9444 } }, /agent\.port and agent\.metricsPort are equal/],
    [{ startupCheck: { timeout: 'soon' } }, /timeout/],
    [
      { image: { registry: 'https://registry.example.com' } },
      /would be https:\/\/registry\.example\.com\/\S+; a registry has no scheme/,
    ],
    [
      { global: { imageRegistry: 'registry.example.com/' } },
      /a registry has no scheme and no slash at its end/,
    ],
  ];
  for (const [values, message] of cases)
    t.throws(() => render('helm4', values), message, JSON.stringify(values));
  const fine = [
    '--log-level=debug',
    '--drain-time',
    '1m',
    '--no-tolerate-architecture-taint',
    '--proxies=a=b,c=d',
  ];
  const env = [
    { name: 'ARCHWRIGHT_LOG_LEVEL', value: 'debug' },
    { name: 'ARCHWRIGHT_API_PORT', value: 'tcp://1:2' },
  ];
  await starts(t, render('helm4', { webhook: { extraArgs: fine, extraEnv: env } }), 'flags');
});

t.test('the real programs start with the rendered flags and files', async (t) => {
  const dir = t.testdir();
  const ca = await createCa();
  const names = { cn: 'archwright', dns: ['archwright-agent'], server: true, client: true };
  for (const name of ['tls', 'authority']) await issueTls(ca, join(dir, 'etc/archwright', name), names);
  mkdirSync(join(dir, 'var/lib/archwright'), { recursive: true });
  const store = await startKubeStore({ isPlain: true });
  t.teardown(() => store.close());
  const { cert, key } = await ca.issue(names);
  const texts = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert, current: 'T'.repeat(43) };
  const encoded = Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]);
  const secret = { apiVersion: 'v1', kind: 'Secret', data: Object.fromEntries(encoded) as object };
  for (const name of ['webhook-tls', 'webhook-client-tls', 'controller-client-tls', 'webhook-path'])
    store.put(`/api/v1/namespaces/archwright/secrets/archwright-${name}`, secret);
  const kubeconfig = join(dir, 'kubeconfig');
  writeFileSync(
    kubeconfig,
    kubeconfigOf({ server: store.access.server, 'insecure-skip-tls-verify': true }, {}, 'archwright'),
  );
  for (const values of [noe, {}]) {
    // Certificates of the cluster would have to be signed.
    const manifest = render('helm4', { ...values, certificates: 'external' });
    const programs = programsIn(manifest).filter(({ name }) => /(?:webhook|controller|agent)$/.test(name));
    t.equal(programs.length, 3);
    for (const program of programs) {
      const { serves, log } = await startProgram(program, dir, {
        ARCHWRIGHT_KUBECONFIG: kubeconfig,
        ARCHWRIGHT_HOST_ROOT: dir,
      });
      t.ok(serves, `${program.name}: ${serves ? '' : log}`);
    }
  }
});
