/** The page `docs/reference/settings.md`, made from the descriptions of the settings. */
import { otherVariables } from '../../src/policy/configuration/layer.ts';
import { flagName, variableName, written, type Setting, type Settings } from '../../src/policy/settings/setting.ts';
import { containerdSettings } from '../../src/policy/settings/containerd.ts';
import { certificateSettings, controllerSettings } from '../../src/policy/settings/controller.ts';
import { imageSettings } from '../../src/policy/settings/images.ts';
import { kubeletSettings } from '../../src/policy/settings/kubelet.ts';
import { placementSettings } from '../../src/policy/settings/placement.ts';
import { registrySettings } from '../../src/policy/settings/registries.ts';
import { servingSettings } from '../../src/policy/settings/serving.ts';
import { formatToml } from '../../src/policy/configuration/toml.ts';
import { code, table } from './markdown.ts';

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

Every setting can be written in a TOML file, in the environment, and as a flag. A flag wins over the environment, the
environment over the file, and each of them over the default. The file is named by \`--config\` or \`ARCHWRIGHT_CONFIG\`.

\`\`\`toml
schedulableArchitectures = ["amd64", "arm64"]
preferredArchitecture = "arm64"
proxies = ["docker.io=docker-proxy.example.com"]
\`\`\`

\`\`\`sh
ARCHWRIGHT_SCHEDULABLE_ARCHITECTURES=amd64,arm64 archwright webhook --preferred-architecture arm64
\`\`\`

In a variable or flag a list is separated by commas (a flag may also be repeated), a table of plain values is written
\`name=value,name=value\`, and what is made of tables with fixed keys is an inline TOML value such as
\`{ key = "arch", effect = "NoSchedule" }\`. A setting that is true or false has the flags \`--name\` and \`--no-name\`.

Durations are whole numbers with the units \`d\`, \`h\`, \`m\`, \`s\` and \`ms\`, largest first: \`7d\`, \`1h30m\`, \`500ms\`. Sizes are
whole numbers with \`Ki\`, \`Mi\`, \`Gi\`, or without a unit for bytes.

What is wrong is reported all at once, with file, line and key; an unknown key or variable is an error that names the
nearest known one. At start the program then ends with exit code 2. \`archwright config check FILE\` finds out beforehand,
and \`archwright config print\` shows every value and where it comes from.

A running program reads the file again when it changes. A broken file is logged, and the last good configuration stays in
force. Settings marked *restart* take effect when the program starts again; a change to them is logged too.
`;

/** Makes the page. */
export function settingsPage(): string {
  return [
    introduction,
    ...settingGroups.map(({ title, settings }) => `## ${title}\n\n${Object.entries(settings).map(entry).join('\n')}`),
    '## Other variables\n',
    table(
      ['Variable', 'Meaning'],
      Object.entries(otherVariables).map(([name, help]) => [code(name), help]),
    ),
    '',
    'Variables that Kubernetes sets for Services whose names begin with `archwright` are ignored.\n',
  ].join('\n');
}

function entry([key, setting]: [string, Setting<unknown>]): string {
  const preset = written(setting, setting.default);
  const flags = [flagName(key), ...(setting.shortFlag === undefined ? [] : [setting.shortFlag])];
  const facts = [
    setting.kind.name,
    preset === undefined ? 'not set by default' : `default ${code(formatToml(preset))}`,
    `used by ${setting.parts.join(', ')}`,
    ...(setting.restart ? ['*restart*'] : []),
  ];
  return [
    `### ${code(key)}\n`,
    `${setting.help}\n`,
    `- ${facts.join('; ')}`,
    `- ${code(variableName(key))}, ${flags.map((flag) => code(`--${flag}`)).join(', ')}\n`,
  ].join('\n');
}
