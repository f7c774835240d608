/** The program's settings as values of the chart, except those that the chart sets itself. */
import { subcommand as clean } from '../../../cmd/clean.ts';
import { otherVariables } from '../../../src/policy/configuration/layer.ts';
import { settings } from '../../../src/policy/settings/all.ts';
import type { Setting, Settings, TomlValue } from '../../../src/policy/settings/setting.ts';
import { flagName, variableName, written } from '../../../src/policy/settings/setting.ts';
import { settingGroups } from '../settings.ts';
import { patternsOf } from './rules.ts';
import type { Section, Value } from './value.ts';

/** Set by the chart's templates, because they connect the parts. */
export const setByChart: ReadonlySet<string> = new Set([
  'agents',
  'agentTlsDir',
  'certificates',
  'credsDir',
  'credsFiles',
  'dockerConfigFile',
  'hostRoot',
  'kubeconfig',
  'kubeContext',
  'listen',
  'metricsListen',
  'name',
  'namespace',
  'stateDir',
  'tlsDir',
  'webhookConfiguration',
  'webhookPathSecret',
]);

/** Defaults of the chart that differ from the program's, in words. */
const chartDefaults: Readonly<Record<string, string>> = {
  allowLoopbackRegistries: '`false`',
  onUnknownImage: '`gate` where the controller runs',
};

export interface SettingValue extends Value {
  readonly setting: Setting<unknown>;
  /** The default in words, if it differs from the program's. */
  readonly chartDefault?: string;
}

/** Every setting that is a value of the chart. */
export function settingSections(): readonly (Section & { readonly values: readonly SettingValue[] })[] {
  return settingGroups.map(({ title, settings }) => ({
    title: `Settings: ${title}`,
    values: Object.entries(settings)
      .filter(([key]) => !setByChart.has(key))
      .map(([key, setting]) => valueOf(key, setting)),
  }));
}

function valueOf(key: string, setting: Setting<unknown>): SettingValue {
  const chartDefault = chartDefaults[key];
  return {
    key,
    help: setting.help,
    schema: setting.kind.schema,
    example: examples[key] ?? exampleOf(key, setting),
    setting,
    ...(chartDefault !== undefined && { chartDefault }),
  };
}

/** The templates' input for each setting, in `files/settings.json`. */
export function settingsFile(): string {
  const entries = settingSections()
    .flatMap(({ values }) => values)
    .map(({ key, setting }) => {
      const preset = written(setting, setting.default);
      const range = rangeOf(setting);
      const { restart } = setting;
      return [
        key,
        { restart, ...(preset !== undefined && { default: preset }), ...(range && { range }) },
      ] as const;
    });
  return lines(Object.fromEntries(entries));
}

/** Every flag and variable by name, in `files/flags.json`, for the check of `extraArgs` and `extraEnv`. */
export function flagsFile(): string {
  const known = Object.entries(settings as Settings);
  const flags = known.flatMap(([key, setting]) => {
    const names = [flagName(key), ...(setting.shortFlag === undefined ? [] : [setting.shortFlag])];
    return names.map((name) => [`--${name}`, takes(setting)] as const);
  });
  const own = Object.entries(clean.flags).map(([name, { placeholder }]) => {
    const isSwitch = placeholder === undefined;
    return [`--${flagName(name)}`, { parts: ['clean'], ...(isSwitch && { isSwitch }) }] as const;
  });
  const variables = known.map(([key, setting]) => [variableName(key), takes(setting)] as const);
  const others = Object.keys(otherVariables).map((name) => [name, {}] as const);
  const parts = ['webhook', 'controller', 'agent', 'clean'];
  const all: readonly (readonly [string, object])[] = [...flags, ...own, ...variables, ...others];
  return lines(Object.fromEntries<object>([['--config', { parts }], ...all]));
}

/** The format of a flag's or variable's text. Tables are not checked. */
function takes(setting: Setting<unknown>): object {
  const { schema, rule, isSwitch = false, name } = setting.kind;
  const parts = setting.parts.filter((part) => part !== 'explain');
  if (isSwitch) return { parts, isSwitch, name, patterns: ['^(?:true|false)$'] };
  if (schema['type'] === 'object' || schema['anyOf'] !== undefined) return { parts };
  const isList = schema['type'] === 'array';
  const item = isList ? patternsOf({}, rule && 'items' in rule ? rule.items : undefined) : undefined;
  const range = rangeOf(setting);
  const patterns = item ?? patternsOf(schema, rule);
  return { parts, name, patterns, ...(isList && { isList }), ...(range && { range }) };
}

/** Durations in milliseconds, sizes in bytes: no schema compares them. Numbers, in texts. */
function rangeOf({ kind: { schema, rule, name } }: Setting<unknown>): object | undefined {
  if (rule && 'unit' in rule) return { unit: rule.unit, min: rule.min, max: rule.max, says: rule.says };
  const { type, minimum, maximum } = schema;
  if (type !== 'integer') return undefined;
  return { unit: 'number', min: minimum, max: maximum, says: `must be a ${name}, not {}` };
}

/** JSON with one line for each entry. */
function lines(content: Readonly<Record<string, unknown>>): string {
  const entries = Object.entries(content).map(
    ([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`,
  );
  return `{\n${entries.join(',\n')}\n}\n`;
}

/** Valid values that no rule generates. */
const examples: Readonly<Record<string, TomlValue>> = {
  agentNodes: 2,
  allowLoopbackRegistries: true,
  allowedRegistries: ['docker.io/library/*', 'registry.example.com/**'],
  deniedRegistries: ['quay.io/untrusted/**'],
  architectures: { arm64: { taintsToTolerate: [{ key: 'arch', value: 'arm64', effect: 'NoSchedule' }] } },
  cacheSize: '128Mi',
  caFiles: ['/etc/archwright/extra-ca/ca.crt'],
  containerdConfigPathCandidates: ['/etc/containerd/config.toml'],
  containerdVersion: '2.1.4',
  dockerConfigPathCandidates: ['/var/lib/kubelet/config.json'],
  excludedNamespaces: ['kube-system', 'kube-node-lease'],
  fallbackArchitecture: 'amd64',
  imageOverrides: [{ match: 'registry.example.com/team/*', architectures: ['amd64'], level: 'v3' }],
  insecureRegistries: ['registry.local:5000'],
  'kubeletConfig.binDir': '/etc/eks/image-credential-provider',
  'kubeletConfig.config': '/etc/eks/image-credential-provider/config.json',
  'kubeletConfig.configDir': '/etc/kubernetes/credential-providers',
  kubeletEnvironment: { AWS_REGION: 'eu-west-1' },
  matchNodeLabels: ['example.com/pool'],
  preferredArchitecture: 'arm64',
  preferredWeights: { arm64: 80, amd64: 20 },
  privateRegistries: ['*.corp.example.com'],
  onUnknownImage: 'allow',
  proxies: ['docker.io=docker-proxy.example.com'],
  pullSecretNodes: 'pool=system',
  schedulableArchitectures: ['amd64', 'arm64'],
  taintArchitectures: ['arm64'],
  taintKey: 'example.com/architecture',
  tolerations: [{ key: 'arch', effect: 'NoSchedule' }],
};

/** A value other than the default, by the setting's kind. */
function exampleOf(key: string, setting: Setting<unknown>): TomlValue {
  const preset = written(setting, setting.default);
  const { enum: words, maximum } = setting.kind.schema;
  if (typeof preset === 'boolean') return !preset;
  if (isList(words)) return words.find((word) => word !== preset) ?? '';
  if (typeof preset === 'number') return preset < Number(maximum) ? preset + 1 : preset - 1;
  if (setting.kind.name === 'duration') return typeof preset === 'string' ? neighbor(preset) : '90s';
  throw new TypeError(`${key} needs an example`);
}

function isList(value: TomlValue | undefined): value is readonly TomlValue[] {
  return Array.isArray(value);
}

/** The duration one unit longer, which the bounds of every setting allow. */
function neighbor(duration: string): string {
  const match = /^(\d+)([a-z]+)$/.exec(duration);
  return match ? `${Number(match[1]) + 1}${match[2]}` : '90s';
}
