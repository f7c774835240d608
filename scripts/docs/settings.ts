/** The page `docs/reference/settings.md`, made from the descriptions of the settings. */
import { otherVariables } from '../../src/policy/configuration/layer.ts';
import { written, type Setting, type Settings } from '../../src/policy/settings/setting.ts';
import { certificateSettings, controllerSettings } from '../../src/policy/settings/controller.ts';
import {
  imageSettings,
  kubeletSettings,
  registrySettings,
  runtimeSettings,
} from '../../src/policy/settings/images.ts';
import { placementSettings } from '../../src/policy/settings/placement.ts';
import { servingSettings } from '../../src/policy/settings/serving.ts';
import { formatToml } from '../../src/policy/configuration/toml.ts';
import { code } from './markdown.ts';

/** Every setting, in groups. */
export const settingGroups: readonly { readonly title: string; readonly settings: Settings }[] = [
  { title: 'Placement', settings: placementSettings },
  { title: 'Image facts', settings: imageSettings },
  { title: 'Registries and credentials', settings: registrySettings },
  { title: 'Kubelet', settings: kubeletSettings },
  { title: 'Container runtime', settings: runtimeSettings },
  { title: 'Processes', settings: servingSettings },
  { title: 'Controller', settings: controllerSettings },
  { title: 'Certificates and the webhook configuration', settings: certificateSettings },
];

const introduction = `# Settings

Set a value in a TOML file (\`--config\` or \`ARCHWRIGHT_CONFIG\` names it), in an environment variable or by a flag; the last of these wins:

\`\`\`sh
echo 'preferredArchitecture = "arm64"' > archwright.toml && archwright webhook --config archwright.toml
ARCHWRIGHT_PREFERRED_ARCHITECTURE=arm64 archwright webhook
archwright webhook --preferred-architecture arm64
\`\`\`

With the chart, set the same keys in its [values](../../charts/archwright/README.md#settings).

Values in variables and flags:

- lists: separated by commas; a flag may be repeated
- booleans: \`true\` or \`false\`; flags: \`--name\`, \`--no-name\`
- tables: \`name=value,name=value\`, or, for fixed keys, inline TOML such as \`{ key = "arch", effect = "NoSchedule" }\`
- durations: \`7d\`, \`1h30m\`, \`500ms\`
- sizes: bytes, or whole numbers with \`Ki\`, \`Mi\`, \`Gi\`
- ports: 0 is any free port

A running program reads a changed file again. If the file is broken, it keeps the last good one; a starting program ends with exit code 2.
\`archwright config check FILE\` lists all errors with line and key (exit code 1), and contradictions once there is no other. \`archwright config print\` shows every value and its source.

Each setting has its type and default. \\* takes effect only at the next start. \`[…]\` is a list, \`{…}\` a table; both are empty by default. Secrets,
ConfigMaps and the Lease are in archwright's own namespace.
`;

export function settingsPage(): string {
  return [
    introduction,
    ...settingGroups.map(group),
    '## Other variables\n',
    ...Object.entries(otherVariables).map(([name, help]) => `- ${code(name)}: ${help}`),
    '',
    'Variables that Kubernetes sets for Services named `archwright…` are ignored.\n',
  ].join('\n');
}

function group({ title, settings }: (typeof settingGroups)[number]): string {
  return [`## ${title}\n`, ...Object.entries(settings).map(([key, setting]) => entry(key, setting)), ''].join(
    '\n',
  );
}

/** Kinds that a default shows. */
const evident = new Set([
  'boolean',
  'duration',
  'size',
  'name',
  'address and port',
  'directory',
  'label key',
]);

function entry(key: string, setting: Setting<unknown>): string {
  const preset = written(setting, setting.default);
  const { name } = setting.kind;
  const facts = [
    ...(preset !== undefined && evident.has(name) ? [] : [shortName(name)]),
    ...(preset === undefined || isEmpty(preset) ? [] : [code(formatToml(preset))]),
    ...(setting.shortFlag === undefined ? [] : [code(`--${setting.shortFlag}`)]),
  ];
  return `- ${code(key)}${setting.restart ? String.raw`\*` : ''} (${facts.join('; ')}): ${setting.help}`;
}

/** `[x]` for a list of x, `{x}` for a table. */
function shortName(name: string): string {
  return name
    .replaceAll('`, `', '|')
    .replace(/\bnumber, (?=\d)/, '')
    .replace(/^list of (.+)$/, '[$1]')
    .replace(/^table of (.+)$/, '{$1}');
}

function isEmpty(preset: unknown): boolean {
  return typeof preset === 'object' && preset !== null && Object.keys(preset).length === 0;
}
