/** Settings of what the agent takes over from the kubelet of its node. */
import { flag, tableOf, text } from '../kinds/plain.ts';
import { optional, setting } from './setting.ts';

const parts = ['agent', 'inspect', 'explain'] as const;

export const kubeletSettings = {
  'kubeletConfig.config': optional(text('path'), {
    help:
      "Configuration of the kubelet's credential provider plugins, a file below `hostRoot`; what the kubelet's flag " +
      '`--image-credential-provider-config` says. Needs `kubeletConfig.binDir`.',
    parts,
    restart: true,
  }),
  'kubeletConfig.configDir': optional(text('directory'), {
    help:
      'The same where it is a directory, which the kubelet can do since Kubernetes 1.34: all its `.json`, `.yaml` and ' +
      '`.yml` files together.',
    parts,
    restart: true,
  }),
  'kubeletConfig.binDir': optional(text('directory'), {
    help:
      "Directory of the plugins' programs below `hostRoot`; what the kubelet's flag " +
      '`--image-credential-provider-bin-dir` says.',
    parts,
    restart: true,
  }),
  serviceAccountTokens: setting(flag, {
    default: false,
    help:
      'Whether to ask the cluster for tokens of service accounts, for credential provider plugins with `tokenAttributes`; such ' +
      'plugins are left out otherwise. Needs rights that are worth a thought: see docs/install/kubelet.md.',
    parts,
    restart: true,
  }),
  kubeletEnvironment: setting(tableOf(checkVariable, text('value')), {
    default: {},
    help:
      "Variables for credential provider plugins, such as `HTTPS_PROXY` or `AWS_REGION`, added to those of the node's " +
      'kubelet, or where these cannot be read to `HOME` and `PATH`. Plugins get none of the variables of archwright itself.',
    parts,
    restart: true,
  }),
};

/** What a process can have, in the form that everybody writes (POSIX, Base Definitions 8.1). */
function checkVariable(name: string): string | undefined {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)
    ? undefined
    : 'is no name of a variable: letters, digits and underscores, not beginning with a digit';
}
