/** Settings for the node of an agent: what is taken over from its kubelet and from its container runtime. */
import { choice, flag, listOf, matching, tableOf, text } from '../value-kinds/plain.ts';
import { settingsOf } from './setting.ts';

const node = settingsOf('agent', 'inspect', 'explain');

/** Names that a process can have, in the usual form (POSIX, Base Definitions 8.1). */
const variableName = matching(
  '^[A-Za-z_][A-Za-z0-9_]*$',
  '{} is not a valid variable name: letters, digits and underscores, not beginning with a digit',
);

export const kubeletSettings = {
  'kubeletConfig.config': node.atStart(text('path'), {
    help: "Configuration file of the credential provider plugins, below `hostRoot`: the kubelet's flag `--image-credential-provider-config`. Needs `kubeletConfig.binDir`. With `kubeletConfig.configDir`: the name of a file there.",
  }),
  'kubeletConfig.configDir': node.atStart(text('directory'), {
    help: 'Directory of such configuration files (since Kubernetes 1.34). All of its `.json`, `.yaml` and `.yml` files are combined.',
  }),
  'kubeletConfig.binDir': node.atStart(text('directory'), {
    help: "Directory of the plugins' programs, below `hostRoot`: `--image-credential-provider-bin-dir`.",
  }),
  serviceAccountTokens: settingsOf('agent', 'inspect', 'explain', 'webhook', 'controller').atStart(flag, {
    default: false,
    help: 'Requests service account tokens for plugins with `tokenAttributes`. Without it, these plugins are left out. Webhook and controller need it too: facts may then depend on the account of a pod. Needs far-reaching rights: docs/install/kubelet.md.',
  }),
  kubeletEnvironment: node.atStart(tableOf(variableName, text('value')), {
    default: {},
    help: "Environment of the plugins, such as `AWS_REGION`, added to that of the node's kubelet.",
  }),
};

export const absolutePathRule = matching(
  '^/',
  'must be an absolute path, which is taken below hostRoot, not {}',
);
const absolutePath = text('path', absolutePathRule);

/** `auto`: as the files of the node say. */
export const runtimeChoices = ['auto', 'containerd', 'cri-o'] as const;

export const runtimeSettings = {
  runtime: node.atStart(choice(runtimeChoices), {
    default: 'auto',
    help: 'Container runtime of the node, whose configuration applies. `auto`: CRI-O if the kubelet names its socket, or its socket or files exist; otherwise containerd.',
  }),
  containerdConfigPathCandidates: node.atStart(listOf(absolutePath), {
    help: "Candidates for containerd's `config.toml` below `hostRoot`, or for its directory. The first that exists applies. Default: the locations of distributions. Empty: containerd's configuration is ignored.",
  }),
  containerdVersion: node.atStart(
    text('version', matching('^v?[0-9]+\\.[0-9]+', 'must be a version of containerd such as 2.1.4, not {}')),
    {
      help: "Version of containerd, which determines the rules of its configuration. Default: the version that the node's program reports, or the newest if it cannot be run.",
    },
  ),
  mirrorCredentials: node.live(flag, {
    default: true,
    help: 'Sends the credentials of a registry to the mirrors in containerd’s configuration, as containerd does.',
  }),
};
