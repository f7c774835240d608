/**
 * Settings, also against each other. The program reads exactly the values that schema and rule allow together.
 * The chart's schema says both (scripts/docs/chart/rules.ts, tested with Helm in test/e2e/chart/start.test.ts).
 */
import t from 'tap';
import { environmentLayer } from '../../../src/policy/configuration/layer.ts';
import {
  flagName,
  variableName,
  written,
  type Settings,
  type JsonSchema,
  type Rule,
  type Part,
} from '../../../src/policy/settings/setting.ts';
import { settings } from '../../../src/policy/settings/all.ts';
import { hintAboutUnknown } from '../../../src/policy/settings/removed.ts';
import { never } from '../report.ts';
import * as fc from 'fast-check';
import { chartSections, isSetting } from '../../../scripts/docs/chart/chart.ts';
import { parseBytes, parseDuration } from '../../../src/names/quantity.ts';
import { brokenBy } from '../../../src/policy/value-kinds/plain.ts';
import { sized } from '../../support/exhaustive.ts';
import { valuesOf } from '../../support/setting-values.ts';
import {
  defaultConfiguration,
  type Configuration,
  inconsistencies,
} from '../../../src/policy/configuration/configuration.ts';

const all = Object.entries(settings as Settings);

t.test('variables and flags are derived from the key', async (t) => {
  const cases: [string, string, string][] = [
    ['listen', 'ARCHWRIGHT_LISTEN', 'listen'],
    ['schedulableArchitectures', 'ARCHWRIGHT_SCHEDULABLE_ARCHITECTURES', 'schedulable-architectures'],
    ['ifNotPresentCacheTime', 'ARCHWRIGHT_IF_NOT_PRESENT_CACHE_TIME', 'if-not-present-cache-time'],
    ['kubeletConfig.binDir', 'ARCHWRIGHT_KUBELET_CONFIG_BIN_DIR', 'kubelet-config-bin-dir'],
  ];
  for (const [key, variable, flag] of cases) {
    t.equal(variableName(key), variable);
    t.equal(flagName(key), flag);
  }
});

t.test('no two settings share a name', async (t) => {
  const flags = all.flatMap(([key, { shortFlag }]) => [
    flagName(key),
    ...(shortFlag === undefined ? [] : [shortFlag]),
  ]);
  t.equal(new Set([...flags, 'config', 'help', 'version']).size, flags.length + 3);
  t.equal(new Set(all.map(([key]) => variableName(key))).size, all.length);
});

t.test('every default can be written and read back', async (t) => {
  const { rollouts, execFormatErrorMonitor, execFormatErrorTracing } = defaultConfiguration();
  t.strictSame([rollouts, execFormatErrorMonitor, execFormatErrorTracing], [true, true, false]);
  for (const [key, setting] of all) {
    const toml = written(setting, setting.default);
    if (toml !== undefined) t.strictSame(setting.kind.read(toml, never), setting.default, key);
    else t.equal(setting.default, undefined, key);
  }
});

t.test('every setting has a help text and a part', async (t) => {
  for (const [key, { help, parts, default: preset }] of all) {
    t.match(help, /^[A-Z"`].*\.$/s, key);
    t.ok(parts.length > 0, key);
    if (preset === undefined) t.ok(help.length > 20, `${key} explains what happens if it is not set`);
  }
});

t.test('every setting can be set by its variable, even if a Service can set the same name', async (t) => {
  for (const [key] of all) {
    const { values, problems } = environmentLayer(settings, { [variableName(key)]: '\0' });
    t.equal(values.size, 0, key);
    t.equal(problems[0]?.where, variableName(key), key);
  }
});

t.test('a setting is never called removed while it exists', async (t) => {
  for (const key of Object.keys(settings)) t.notMatch(hintAboutUnknown(key, []), 'it was removed', key);
});

const ofChart = chartSections().flatMap(({ values }) => values.filter(isSetting));

for (const { key, schema, setting } of ofChart) {
  t.test(`schema and rule of ${key} allow what the program reads`, async (t) => {
    const wrong: unknown[] = [];
    fc.assert(
      fc.property(valuesOf(schema), (value) => {
        const reports: string[] = [];
        const isRead = setting.kind.read(value, (message) => reports.push(message)) !== undefined;
        const isAllowed = allows(schema, value) && keeps(setting.kind.rule, value);
        if (isRead !== isAllowed) wrong.push([value, isRead, ...reports]);
      }),
      { numRuns: sized(200, 5000) },
    );
    t.strictSame(wrong, []);
  });
}

/** Supports the keywords that schemas of settings use. */
function allows(schema: JsonSchema, value: unknown): boolean {
  return Object.entries(schema).every(([keyword, operand]) => {
    const schemas = operand as readonly JsonSchema[];
    switch (keyword) {
      case 'anyOf':
        return schemas.some((each) => allows(each, value));
      case 'allOf':
        return schemas.every((each) => allows(each, value));
      case 'not':
        return !allows(operand as JsonSchema, value);
      case 'const':
        return value === operand;
      case 'enum':
        return (operand as readonly unknown[]).includes(value);
      case 'type':
        return [operand].flat().some((type) => typeOf(value) === type);
      case 'minimum':
        return typeof value !== 'number' || value >= Number(operand);
      case 'maximum':
        return typeof value !== 'number' || value <= Number(operand);
      case 'minLength':
        return typeof value !== 'string' || value.length >= Number(operand);
      case 'pattern':
        return typeof value !== 'string' || new RegExp(operand as string).test(value);
      case 'items':
        return !Array.isArray(value) || value.every((item) => allows(operand as JsonSchema, item));
      case 'uniqueItems':
        return (
          !Array.isArray(value) || new Set(value.map((item) => JSON.stringify(item))).size === value.length
        );
      case 'required':
        return (operand as readonly string[]).every((name) => Object.hasOwn(value as object, name));
      case 'properties':
        return entries(value).every(([name, inner]) => {
          const properties = operand as Readonly<Record<string, JsonSchema>>;
          return !Object.hasOwn(properties, name) || allows(properties[name] ?? {}, inner);
        });
      case 'additionalProperties':
        if (operand === false)
          return entries(value).every(([name]) =>
            Object.hasOwn((schema['properties'] ?? {}) as object, name),
          );
        return entries(value).every(([, inner]) => allows(operand as JsonSchema, inner));
      default:
        throw new TypeError(`${keyword} is not known here`);
    }
  });
}

function keeps(rule: Rule | undefined, value: unknown): boolean {
  if (rule === undefined) return true;
  if ('match' in rule) return typeof value !== 'string' || brokenBy(rule, value) === undefined;
  if ('unit' in rule) {
    const amount = rule.unit === 'duration' ? parseDuration(String(value)) : parseBytes(String(value));
    return amount === undefined ? !isNumeric(value) : amount >= rule.min && amount <= rule.max;
  }
  if ('items' in rule) return [value].flat().every((item) => keeps(rule.items, item));
  if ('fields' in rule) return entries(value).every(([name, inner]) => keeps(rule.fields[name], inner));
  return entries(value).every(([name, inner]) => keeps(rule.keys, name) && keeps(rule.values, inner));
}

/** Too large for the program; the template checks the range itself. */
function isNumeric(value: unknown): boolean {
  return /^\d/.test(String(value));
}

function entries(value: unknown): [string, unknown][] {
  return typeOf(value) === 'object' ? Object.entries(value as object) : [];
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

const plugins = (config?: string, configDir?: string, binDir?: string): Partial<Configuration> => ({
  'kubeletConfig.config': config,
  'kubeletConfig.configDir': configDir,
  'kubeletConfig.binDir': binDir,
});

t.test('contradictory settings are found, for the part that uses them', async (t) => {
  const two = { schedulableArchitectures: ['amd64', 'arm64'] };
  /** Keys with problems, separated by blanks. */
  const cases: Record<string, [values: Partial<Configuration>, expected: string, part?: Part]> = {
    nothing: [{}, '', 'webhook'],
    preferred: [{ ...two, preferredArchitecture: 'arm64' }, ''],
    'preferred elsewhere': [{ ...two, preferredArchitecture: 's390x' }, 'preferredArchitecture'],
    'preferred, any schedulable': [{ preferredArchitecture: 's390x' }, ''],
    weights: [{ ...two, preferredWeights: { arm64: 1, amd64: 2 } }, ''],
    'weights elsewhere': [
      { ...two, preferredWeights: { arm64: 1, arm: 2, s390x: 3 } },
      'preferredWeights.arm preferredWeights.s390x',
    ],
    fallback: [{ ...two, fallbackArchitecture: 'amd64' }, ''],
    'fallback elsewhere': [{ ...two, fallbackArchitecture: 'arm' }, 'fallbackArchitecture'],
    'two preferences': [
      { preferredArchitecture: 'arm64', preferredWeights: { arm64: 1 } },
      'preferredArchitecture',
    ],
    'plugins by file and by directory': [plugins('/a', '/b', '/c'), 'kubeletConfig.config'],
    'plugins by a file in a directory': [plugins('a.json', '/b', '/c'), ''],
    'plugins by a file outside of the directory': [
      plugins('../../passwd', '/b', '/c'),
      'kubeletConfig.config',
    ],
    'plugins by a path of Windows': [plugins('C:/x', '/b', '/c'), 'kubeletConfig.config'],
    'plugins without programs': [plugins('/a'), 'kubeletConfig.config'],
    'plugins by directory, without programs': [plugins(undefined, '/a'), 'kubeletConfig.configDir'],
    'programs without plugins': [plugins(undefined, undefined, '/a'), 'kubeletConfig.binDir'],
    plugins: [plugins('/a', undefined, '/c'), ''],
    'plugins by directory': [plugins(undefined, '/a', '/c'), ''],
    'plugins by relative paths': [
      plugins('a.json', undefined, 'c'),
      'kubeletConfig.config kubeletConfig.binDir',
      'agent',
    ],
    'plugins by a relative directory': [plugins('a.json', 'b', '/c'), 'kubeletConfig.configDir', 'agent'],
    "plugins by a person's relative paths": [plugins('a.json', undefined, 'c'), '', 'inspect'],
    'fallback without an architecture': [{ onUnknownImage: 'fallback' }, 'onUnknownImage'],
    'fallback with an architecture': [{ onUnknownImage: 'fallback', fallbackArchitecture: 'arm64' }, ''],
    'gate, set explicitly': [{ onUnknownImage: 'gate' }, '', 'webhook'],
    'two proxies of one registry': [
      { proxies: ['a', 'b', 'a'].map((registry) => ({ registry, endpoint: 'm' })) },
      'proxies.2',
    ],
    'agents by URL and by name': [{ agents: ['https://a', 'endpointslices:b/c'] }, 'agents'],
    'agents by two names': [{ agents: ['endpointslices:a/b', 'endpointslices:b/c'] }, 'agents'],
    'agents by name': [{ agents: ['endpointslices:b/c'] }, ''],
    'agents by URLs': [{ agents: ['https://a', 'https://b'] }, ''],
    'pullable nodes without agents': [{ requirePullableNodes: true }, 'requirePullableNodes', 'webhook'],
    'pullable nodes without agents, explain': [{ requirePullableNodes: true }, '', 'explain'],
    'pullable nodes with agents': [{ requirePullableNodes: true, agents: ['https://a'] }, '', 'webhook'],
  };
  for (const [name, [values, expected, part]] of Object.entries(cases)) {
    const found = inconsistencies({ ...defaultConfiguration(), ...values }, part);
    const keys = found.map(({ key, path = [] }) => [key, ...path].join('.'));
    t.equal(keys.join(' '), expected, name);
    for (const { message } of found) t.ok(message.length > 10, message);
  }
});
