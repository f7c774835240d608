/** Values that the chart refuses, with a message that names them: unknown, invalid and contradictory ones. */
import t from 'tap';
import { chartSections } from '../../../scripts/docs/chart/chart.ts';
import { helms } from '../programs/helm.ts';
import { chart, kubeVersion, render, runHelm } from './helm.ts';
import { withValue } from './value-sets.ts';

type Rows = readonly (readonly [values: object, message: RegExp])[];

/** By the schema, which both versions of Helm check, or by a template. */
const ofBoth: Rows = [
  [
    { preferedArchitecture: 'arm64' },
    /'preferedArchitecture'.* not allowed|preferedArchitecture is not allowed/,
  ],
  [{ kubeletConfig: { bindir: '/x' } }, /'bindir'.* not allowed|bindir is not allowed/],
  // A right name in the wrong place.
  [{ webhook: { hostPaths: [] } }, /'hostPaths'.* not allowed|hostPaths is not allowed/],
  [
    { agent: { pools: [{ name: 'gpu', config: { proxy: [] } }] } },
    /'proxy'.* not allowed|proxy is not allowed/,
  ],
  [{ onUnknownImage: 'wait' }, /onUnknownImage/],
  [{ maxGateDuration: '5 minutes' }, /maxGateDuration/],
  [{ evictionsPerMinute: 0 }, /evictionsPerMinute/],
  [{ registryCredentials: { 'ghcr.io': { user: 'a' } } }, /registryCredentials/],
  // A file in a folder, which agents do not read.
  [{ registryCredentials: { 'ghcr.io/team': { existingSecret: 'a' } } }, /ghcr\.io\/team/],
  [{ agent: { pools: [{ nodeSelector: {} }] } }, /name/],
  [{ serviceAccountTokens: true }, /serviceAccountTokenAudiences/],
  [
    { serviceAccountTokens: true, agent: { serviceAccountTokenAudiences: ['k3s'] } },
    /serviceAccountTokenAudiences names k3s, an audience of API servers/,
  ],
  [{ webhook: { serviceAccount: { create: false } } }, /webhook\.serviceAccount\.name must name an account/],
];

const binDir = '/b';
const env = (name: string): object => ({ agent: { extraEnv: [{ name, value: 'x' }] } });
const flags = (...extraArgs: readonly string[]): object => ({ webhook: { extraArgs } });
const pool = (own: object): object => ({ agent: { pools: [{ name: 'a', ...own }] } });

const ofHelm4: Rows = [
  [{ preferredArchitecture: 'aarch64' }, /preferredArchitecture': value must be one of '386', 'amd64'/],
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
    { preferredArchitecture: 'arm64', preferredWeights: { amd64: 1 } },
    /preferredArchitecture and preferredWeights are both set/,
  ],
  [
    { proxies: ['docker.io=a.example', 'docker.io=b.example'] },
    /names two proxies for one registry: docker\.io/,
  ],
  [{ onUnknownImage: 'fallback' }, /onUnknownImage is fallback, so fallbackArchitecture must be set/],
  [{ kubeletConfig: { config: '/c' } }, /need kubeletConfig\.binDir/],
  [{ kubeletConfig: { binDir, configDir: '/d', config: '/c' } }, /set one of them/],
  [{ kubeletConfig: { binDir } }, /kubeletConfig\.binDir needs kubeletConfig\.config/],
  [{ kubeletConfig: { binDir, config: 'C:/x' } }, /kubeletConfig has a path that is not absolute: "C:\/x"/],
  [
    pool({ config: { kubeletConfig: { binDir: 'b', configDir: '/d' } } }),
    /agent\.pools\[0\]\.config\.kubeletConfig has a path that is not absolute: "b"/,
  ],
  [
    { kubeletConfig: { binDir, configDir: '/d', config: '../../passwd' } },
    /kubeletConfig\.config must be the name of a file in kubeletConfig\.configDir, not "\.\.\/\.\.\/passwd"/,
  ],
  [
    { containerdConfigPathCandidates: ['etc'] },
    /containerdConfigPathCandidates\/0': 'etc' does not match pattern/,
  ],
  [pool({ config: { cacheSize: '1Ki' } }), /agent\.pools\[0\]\.config\.cacheSize/],
  [{ requirePullableNodes: true, agent: { enabled: false } }, /requirePullableNodes needs agents/],
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
    pool({ readKubeletEnvironment: true, hostPaths: [{ path: '/etc' }] }),
    /agent\.pools\[a\]\.readKubeletEnvironment/,
  ],
  [{ agent: { hostNetwork: false, metricsAddress: 'loopback' } }, /requires agent.hostNetwork/],
  [{ agent: { mountPropagation: 'Bidirectional' } }, /mountPropagation/],
  [{ kubeletEnvironment: { A: 'a\0' } }, /NUL/],
  [{ webhook: { clientCa: '/etc/ca.crt' } }, /webhook\.clientCa must be certificates in PEM/],
  [flags('--log-level=debg'), /webhook\.extraArgs: --log-level takes .*`debug`.*"debg"/],
  [flags('--nope'), /--nope is not a flag of archwright webhook/],
  [flags('--drain-time'), /--drain-time needs a value/],
  [flags('--drain-time', '11m'), /--drain-time must be from 0s to 10m, not 11m/],
  [{ clean: { extraArgs: ['--restart-pod'] } }, /--restart-pod is not a flag of archwright clean/],
  [env('ARCHWRIGHT_LISTN'), /ARCHWRIGHT_LISTN is not a variable of archwright/],
  [pool({ extraArgs: ['--proxies=a'] }), /agent\.pools\[0\]\.extraArgs: --proxies takes/],
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

const accepted: readonly object[] = [
  // Values with a type that allows a table.
  { proxies: ['docker.io=mirror.example.com'], architectures: { arm64: { requireNodeLabels: { a: 'b' } } } },
  // Values of other charts, and the condition of a chart that has this one as a dependency.
  { global: { storageClass: 'fast', imageRegistry: 'mirror.example.com' } },
  { enabled: true },
  { registryCredentials: { 'localhost:5000': { user: 'a', secret: 'b' } } },
];

for (const helm of helms)
  t.test(`${helm} names the values that it refuses`, async (t) => {
    for (const [values, message] of helm === 'helm4' ? [...ofBoth, ...ofHelm4] : ofBoth)
      t.throws(() => render(helm, values), message, JSON.stringify(values));
    for (const values of accepted) t.doesNotThrow(() => render(helm, values), JSON.stringify(values));
    const args = ['lint', chart, '--kube-version', kubeVersion, '--set', 'webhook.replica=3'];
    const { code, out, err } = runHelm(helm, args);
    t.equal(code, 1);
    t.match(out + err, 'replica');
  });

t.test('a misspelled name is refused in every table', async (t) => {
  const keys = chartSections().flatMap(({ values }) => values.map(({ key }) => key));
  const tables = new Set(keys.map((key) => key.slice(0, key.lastIndexOf('.') + 1)));
  tables.delete('global.');
  t.ok(tables.size > 15);
  const values = [...tables].reduce<object>((all, table) => withValue(all, `${table}misspelled`, 1), {});
  let message = '';
  try {
    render('helm4', values);
  } catch (error) {
    message = (error as Error).message;
  }
  t.equal(message.match(/'misspelled'/g)?.length, tables.size);
});
