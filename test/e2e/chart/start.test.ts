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

t.test('the programs start with odd characters, flags and variables', async (t) => {
  // TOML and YAML must escape them.
  const kubeletEnvironment = { A: '\u007f\u0085\u2028"\\<>' };
  const extraArgs = '--log-level=debug --drain-time 1m --no-tolerate-architecture-taint --proxies=a=b,c=d';
  const extraEnv = [
    { name: 'ARCHWRIGHT_LOG_LEVEL', value: 'debug' },
    { name: 'ARCHWRIGHT_API_PORT', value: 'tcp://1:2' },
  ];
  const webhook = { extraArgs: extraArgs.split(' '), extraEnv };
  await starts(t, render('helm4', { kubeletEnvironment, webhook }), 'both');
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
    t.strictSame(changed.toSorted(), parts.toSorted(), JSON.stringify(right));
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
