/** The program's settings as values of the chart, except those that the chart sets itself. */
import { otherVariables, serviceVariable } from '../../../src/policy/configuration/layer.ts';
import { settings } from '../../../src/policy/settings/all.ts';
import type { Setting, Settings, TomlValue } from '../../../src/policy/settings/setting.ts';
import { flagName, variableName, written } from '../../../src/policy/settings/setting.ts';
import { settingGroups } from '../settings.ts';
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
  'nodeName',
  'stateDir',
  'tlsDir',
  'webhookConfiguration',
  'webhookPathSecret',
  'webhooksFile',
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
      const { restart, parts, kind } = setting;
      const preset = written(setting, setting.default);
      return [
        key,
        {
          restart,
          parts,
          ...(kind.rule && { rule: kind.rule }),
          ...(preset !== undefined && { default: preset }),
        },
      ];
    });
  return `${JSON.stringify(Object.fromEntries(entries), undefined, 2)}\n`;
}

/** Every flag and variable by name, in `files/flags.json`, for the check of `extraArgs` and `extraEnv`. */
export function flagsFile(): string {
  const all = Object.entries(settings as Settings);
  const flags = all.flatMap(([key, setting]) => {
    const names = [flagName(key), ...(setting.shortFlag === undefined ? [] : [setting.shortFlag])];
    return names.map((name) => [name, { parts: setting.parts, ...takes(setting) }] as const);
  });
  const variables = all.map(([key, setting]) => [variableName(key), takes(setting)] as const);
  const others = Object.keys(otherVariables).map((name) => [name, {}] as const);
  const content = {
    flags: Object.fromEntries(flags),
    variables: Object.fromEntries([...variables, ...others]),
    serviceVariable: serviceVariable.source,
  };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}

/** The format of a flag's or variable's text. Tables are not checked. */
function takes({ kind: { schema, rule, isSwitch = false } }: Setting<unknown>): object {
  const { enum: words, type, pattern, minimum, maximum } = schema;
  if (isSwitch) return { isSwitch };
  if (type === 'array') return { isList: true, ...(rule && 'items' in rule && { rule: rule.items }) };
  if (type === 'object' || schema['anyOf'] !== undefined) return {};
  const range = type === 'integer' ? { range: [minimum ?? 0, maximum ?? 0] } : {};
  return {
    ...(words !== undefined && { words }),
    ...(pattern !== undefined && { pattern }),
    ...range,
    ...(rule && { rule }),
  };
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
