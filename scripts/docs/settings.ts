/** The page `docs/reference/settings.md`, made from the descriptions of the settings. */
import { otherVariables } from '../../src/policy/configuration/layer.ts';
import { written, type Setting, type Settings } from '../../src/policy/settings/setting.ts';
import { certificateSettings, controllerSettings } from '../../src/policy/settings/controller.ts';
import { imageSettings } from '../../src/policy/settings/images.ts';
import { containerdSettings, kubeletSettings } from '../../src/policy/settings/node.ts';
import { placementSettings } from '../../src/policy/settings/placement.ts';
import { registrySettings } from '../../src/policy/settings/registries.ts';
import { servingSettings } from '../../src/policy/settings/serving.ts';
import { formatToml } from '../../src/policy/configuration/toml.ts';
import { code } from './markdown.ts';

/** Every setting, in groups. */
export const settingGroups: readonly { readonly title: string; readonly settings: Settings }[] = [
  { title: 'Placement', settings: placementSettings },
  { title: 'Image facts', settings: imageSettings },
  { title: 'Registries and credentials', settings: registrySettings },
  { title: 'Kubelet', settings: kubeletSettings },
  { title: 'containerd', settings: containerdSettings },
  { title: 'Processes', settings: servingSettings },
  { title: 'Controller', settings: controllerSettings },
  { title: 'Certificates and the webhook configuration', settings: certificateSettings },
];

const introduction = `# Settings

Set a value in a TOML file (\`--config\` or \`ARCHWRIGHT_CONFIG\` names it), in an environment variable or by a flag. A flag wins over the environment,
the environment over the file, the file over the default. All three set the same:

\`\`\`sh
archwright webhook --preferred-architecture arm64
ARCHWRIGHT_PREFERRED_ARCHITECTURE=arm64 archwright webhook
echo 'preferredArchitecture = "arm64"' > archwright.toml && archwright webhook --config archwright.toml
\`\`\`

In variables and flags:

- lists: separated by commas; a flag may be repeated.
- booleans: \`true\` or \`false\`; the flags \`--name\` and \`--no-name\`.
- tables: \`name=value,name=value\`, or inline TOML such as \`{ key = "arch", effect = "NoSchedule" }\` if their keys are fixed.
- durations: \`7d\`, \`1h30m\`, \`500ms\`. Sizes: whole numbers with \`Ki\`, \`Mi\`, \`Gi\`, or bytes.

All errors are reported at once, with file, line and key; a starting program then ends with exit code 2. A running program reads a changed file again;
if it is broken, the last good configuration stays in force. Settings marked *restart* take effect at the next start. \`archwright config check FILE\`
checks a file, \`archwright config print\` shows every value and its source.
`;

/** Makes the page. */
export function settingsPage(): string {
  return [
    introduction,
    ...settingGroups.map(group),
    '## Other variables\n',
    ...Object.entries(otherVariables).map(([name, help]) => `- ${code(name)}: ${help}`),
    '',
    'Variables that Kubernetes sets for Services whose names begin with `archwright` are ignored.\n',
  ].join('\n');
}

function group({ title, settings }: (typeof settingGroups)[number]): string {
  const users = Object.values(settings).map(({ parts }) => parts.join(', '));
  const usual = users.toSorted((a, b) => timesIn(users, b) - timesIn(users, a))[0] ?? '';
  const entries = Object.entries(settings).map(([key, setting]) => entry(key, setting, usual));
  return [`## ${title}\n`, `Used by ${usual}, unless stated otherwise.\n`, ...entries].join('\n');
}

function timesIn(list: readonly string[], text: string): number {
  return list.filter((each) => each === text).length;
}

function entry(key: string, setting: Setting<unknown>, usual: string): string {
  const preset = written(setting, setting.default);
  const users = setting.parts.join(', ');
  const facts = [
    setting.kind.name,
    ...(preset === undefined ? [] : [code(formatToml(preset))]),
    ...(users === usual ? [] : [`used by ${users}`]),
    ...(setting.restart ? ['restart'] : []),
    ...(setting.shortFlag === undefined ? [] : [code(`--${setting.shortFlag}`)]),
  ];
  return [
    `### ${code(key)}\n`,
    `${setting.help}\n`,
    `*${facts.join('; ')}*\n`,
  ].join('\n');
}
