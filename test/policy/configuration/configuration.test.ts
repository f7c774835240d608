import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import {
  defaultConfiguration,
  loadConfiguration,
  maxConfigurationBytes,
} from '../../../src/policy/configuration/configuration.ts';
import {
  describeProblem,
  environmentLayer,
  fileLayer,
  flagLayer,
} from '../../../src/policy/configuration/layer.ts';
import { like } from '../../support/like.ts';
import { text } from '../../../src/policy/value-kinds/plain.ts';
import { settingsOf } from '../../../src/policy/settings/setting.ts';

/** The reported problems, with paths relative to the directory of the test. */
async function problemsOf(
  dir: string,
  file: string | undefined,
  env: Record<string, string> = {},
  flags: Record<string, string> = {},
): Promise<string[]> {
  const { problems } = await loadConfiguration({ file: file && join(dir, file), env, flags });
  return problems.map((problem) => describeProblem(problem).replaceAll(`${dir}/`, ''));
}

t.test('without settings the defaults apply', async (t) => {
  const loaded = await loadConfiguration({ env: { PATH: '/bin' }, flags: {} });
  t.strictSame(loaded.configuration, defaultConfiguration());
  if (loaded.configuration) t.strictSame(loaded.origins.listen, { kind: 'default', where: '' });
});

t.test('a removal goes on without settings that it does not use', async (t) => {
  const load = async (text: string, part: 'clean' | 'controller') => {
    const dir = t.testdir({ 'archwright.toml': text });
    const loaded = await loadConfiguration({ file: join(dir, 'archwright.toml'), env: {}, flags: {}, part });
    const { configuration, problems } = loaded;
    const ignored = configuration ? loaded.ignored.map(({ key }) => key) : undefined;
    return { taintKey: configuration?.taintKey, ignored, problems: problems.map(({ key }) => key) };
  };
  for (const [more, keys] of [
    ['later = 1\ninlineBudget = "soon"\n', ['later', 'inlineBudget']],
    ['proxies = ["a=b", "a=c"]\n', ['proxies[1]']],
  ] as const) {
    const broken = `taintKey = "own"\n${more}`;
    t.strictSame(await load(broken, 'clean'), { taintKey: 'own', ignored: keys, problems: [] });
    t.strictSame((await load(broken, 'controller')).problems, keys);
  }
  for (const [text, key] of [
    ['taintKey = 1', 'taintKey'],
    ['taintKey =', ''],
  ] as const)
    t.strictSame((await load(text, 'clean')).problems, [key]);
});

t.test('flags override the environment, the environment overrides the file', async (t) => {
  const dir = t.testdir({
    'archwright.toml':
      'listen = "127.0.0.1:1"\nmetricsListen = "127.0.0.1:1"\ninlineBudget = "1ms"\nagents = ["https://a"]\n',
  });
  const file = join(dir, 'archwright.toml');
  const loaded = await loadConfiguration({
    file,
    env: { ARCHWRIGHT_METRICS_LISTEN: '127.0.0.1:2', ARCHWRIGHT_INLINE_BUDGET: '2ms' },
    flags: { inlineBudget: '3ms' },
  });
  if (!loaded.configuration) throw new Error('there are problems');
  const { configuration, origins } = loaded;
  like(t, configuration, {
    listen: '127.0.0.1:1',
    metricsListen: '127.0.0.1:2',
    inlineBudget: 3,
    agents: ['https://a'],
  });
  t.strictSame(origins.listen, { kind: 'file', where: `${file}:1`, line: 1 });
  t.strictSame(origins.metricsListen, { kind: 'environment', where: 'ARCHWRIGHT_METRICS_LISTEN' });
  t.strictSame(origins.inlineBudget, { kind: 'flag', where: '--inline-budget' });
});

t.test('problems of all sources are reported together, with their positions', async (t) => {
  const dir = t.testdir({
    'a.toml': `listen = 8443
prefered = "arm64"
[architectures.arm64]
requireNodelabels = { a = "b" }
[[imageOverrides]]
match = "a"
architectures = []
[[imageOverrides]]
match = "b"
architectures = [
  "arm64",
  "arm 64",
]
[[imageOverrides]]
match = "c"
level = "3"
[[imageOverrides]]
match = "d"
[extra]
key = 1
`,
  });
  const problems = await problemsOf(
    dir,
    'a.toml',
    {
      ARCHWRIGHT_LISTN: 'x',
      ARCHWRIGHT_DRAIN_TIME: 'soon',
      ARCHWRIGHT_MAX_REQUESTS_PER_REGISTRY: 'x',
      HOME: '/',
    },
    { agents: 'https://a,b' },
  );
  t.strictSame(problems, [
    'a.toml:1: listen must be a string in quotes, not a number',
    'a.toml:2: prefered is not a known setting; did you mean preferredArchitecture?',
    'a.toml:4: architectures.arm64.requireNodelabels is not a known key; did you mean requireNodeLabels?',
    'a.toml:12: imageOverrides[1].architectures[1] "arm 64" cannot be an architecture: it is not a valid label value',
    'a.toml:16: imageOverrides[2].level must be one of v2, v3, v4, not "3"; did you mean v3?',
    'a.toml:17: imageOverrides[3] needs architectures, a list, which may be empty, or level, such as v3',
    'a.toml:19: extra is not a known setting',
    'ARCHWRIGHT_LISTN: is not a known variable; did you mean ARCHWRIGHT_LISTEN?',
    'ARCHWRIGHT_DRAIN_TIME: drainTime must be a duration such as 7d, 1h30m or 500ms, not "soon"',
    'ARCHWRIGHT_MAX_REQUESTS_PER_REGISTRY: maxRequestsPerRegistry must be a whole number, not "x"',
    '--agents: agents[1] must be https://HOST:PORT or endpointslices:NAMESPACE/SERVICE, not "b"',
  ]);
});

t.test('only settings about placement come from the configuration of the cluster', async (t) => {
  const text = 'listen = 1\n[[imageOverrides]]\nmatch = "a"\n[architectures."a b"]\n';
  const { problems } = await loadConfiguration({ cluster: { where: 'c', text }, env: {}, flags: {} });
  like(t, problems.map(describeProblem), [/^c:2: imageOverrides\[0\] needs/, /^c:4: architectures\./]);
});

t.test('an invalid value is reported even if a flag overrides it', async (t) => {
  const dir = t.testdir({ 'a.toml': 'listen = "nowhere"\n' });
  like(t, await problemsOf(dir, 'a.toml', {}, { listen: ':1' }), [/^a\.toml:1: listen must be an address/]);
});

t.test('unreadable and malformed files are reported', async (t) => {
  const dir = t.testdir({
    'syntax.toml': 'a = 1\n\nb = [\nc = 1\n',
  });
  writeFileSync(join(dir, 'large.toml'), '#'.repeat(maxConfigurationBytes + 1));
  writeFileSync(join(dir, 'full.toml'), '#'.repeat(maxConfigurationBytes));
  writeFileSync(join(dir, 'empty.toml'), '');
  writeFileSync(join(dir, 'bom.toml'), '\uFEFFlisten = ":1"\r\n');
  const cases: [string, RegExp[]][] = [
    ['syntax.toml', [/^syntax\.toml:4: "c" was not expected here$/]],
    ['missing.toml', [/^missing\.toml: there is no such file$/]],
    ['large.toml', [/^large\.toml: is larger than 1048576 bytes/]],
    ['full.toml', []],
    ['empty.toml', []],
    ['bom.toml', []],
  ];
  for (const [file, expected] of cases) {
    const problems = await problemsOf(dir, file);
    t.equal(problems.length, expected.length, file);
    like(t, problems, expected, file);
  }
});

t.test('variables of Services and of the build are accepted', async (t) => {
  const names =
    'SERVICE_HOST SERVICE_PORT SERVICE_PORT_HTTPS PORT PORT_443_TCP PORT_443_TCP_ADDR PORT_443_TCP_PROTO ' +
    'WEBHOOK_SERVICE_HOST WEBHOOK_PORT_9443_UDP_PORT VECTORS COMMIT E2E_CACHE CONFIG';
  const ours = names.split(' ').map((name) => [`ARCHWRIGHT_${name}`, 'x'] as const);
  const env = { ...Object.fromEntries(ours), ARCHWRIGHTISH: 'x', archwright_listen: 'x' };
  t.strictSame(await problemsOf('', undefined, env), []);
  like(t, await problemsOf('', undefined, { ARCHWRIGHT_PORTS: '1' }), [
    /^ARCHWRIGHT_PORTS: is not a known variable/,
  ]);
});

t.test('contradictory settings are reported with their positions', async (t) => {
  const dir = t.testdir({
    'a.toml': 'schedulableArchitectures = ["amd64"]\n[preferredWeights]\namd64 = 1\narm64 = 2\n',
  });
  t.strictSame(await problemsOf(dir, 'a.toml', { ARCHWRIGHT_FALLBACK_ARCHITECTURE: 's390x' }), [
    'ARCHWRIGHT_FALLBACK_ARCHITECTURE: fallbackArchitecture names s390x, which is not one of schedulableArchitectures (amd64)',
    'a.toml:4: preferredWeights.arm64 names arm64, which is not one of schedulableArchitectures (amd64)',
  ]);
  like(
    t,
    await problemsOf('', undefined, {}, { onUnknownImage: 'fallback', fallbackArchitecture: '' }),
    [/^--fallback-architecture: fallbackArchitecture/],
    'none is about a value that could not be read',
  );
});

t.test('the examples are valid', async (t) => {
  const dir = fileURLToPath(new URL('../../../examples/config', import.meta.url));
  const files = readdirSync(dir);
  t.ok(files.length >= 4);
  for (const file of files) t.strictSame(await problemsOf(dir, file), [], file);
});

const setting = settingsOf('agent').live(text('text'), { help: 'A setting.' });
const table = { plain: setting, 'group.one': setting, 'group.deep.two': setting };

t.test('a dot in a key is a table in the file', async (t) => {
  for (const toml of [
    'group.one = "1"\ngroup.deep.two = "2"\n',
    '[group]\none = "1"\n[group.deep]\ntwo = "2"\n',
    'group = { one = "1", deep = { two = "2" } }\n',
  ]) {
    const { values, problems } = fileLayer(table, 'f', toml);
    t.strictSame(problems, [], toml);
    t.strictSame(
      [...values].map(([key, { value }]) => [key, value]),
      [
        ['group.one', '1'],
        ['group.deep.two', '2'],
      ],
      toml,
    );
  }
  const { values } = fileLayer(table, 'f', '[group]\none = "1"\n[group.deep]\ntwo = "2"\n');
  t.equal(values.get('group.deep.two')?.place().where, 'f:4');
});

t.test('a dot in a key separates words in variables and flags', async (t) => {
  t.equal(
    environmentLayer(table, { ARCHWRIGHT_GROUP_DEEP_TWO: 'x' }).values.get('group.deep.two')?.value,
    'x',
  );
  t.equal(flagLayer(table, { 'group.one': 'x' }).values.get('group.one')?.place().where, '--group-one');
});

t.test('unknown keys and misplaced tables are reported', async (t) => {
  const wasRemoved =
    'it was removed: Fail stays Fail; set failurePolicy to Ignore if pods must be created while no webhook answers';
  const cases: [string, string][] = [
    ['group = 1', 'f:1: group must be a table'],
    ['\ngroup.one.more = 1', 'f:2: group.one must be a string in quotes, not a table'],
    ['[group]\nonne = "1"', 'f:2: group.onne is not a known setting; did you mean group.one?'],
    ['[group.elsewhere]\ntwo = "2"', 'f:1: group.elsewhere is not a known setting'],
    ['[[group]]\none = "1"', 'f:1: group must be a table'],
    ['"__proto__" = 1', 'f:1: __proto__ is not a known setting'],
    ['toString = 1', 'f:1: toString is not a known setting'],
    ['webhookAbsenceTime = "0s"', `f:1: webhookAbsenceTime is not a known setting; ${wasRemoved}`],
  ];
  for (const [toml, expected] of cases) {
    t.strictSame(fileLayer(table, 'f', toml).problems.map(describeProblem), [expected], toml);
  }
  const { problems } = environmentLayer(table, { ARCHWRIGHT_WEBHOOK_ABSENCE_TIME: '0s' });
  like(t, problems, [{ message: `is not a known variable; ${wasRemoved}` }]);
});
