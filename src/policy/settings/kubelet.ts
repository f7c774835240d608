/** Settings of what the agent takes over from the kubelet of its node. */
import { flag, tableOf, text } from '../value-kinds/plain.ts';
import { optional, setting } from './setting.ts';

const parts = ['agent', 'inspect', 'explain'] as const;

export const kubeletSettings = {
  'kubeletConfig.config': optional(text('path'), {
    help:
      "Configuration file of the kubelet's credential provider plugins, below `hostRoot`: the value of " +
      "the kubelet's flag `--image-credential-provider-config`. Needs `kubeletConfig.binDir`.",
    parts,
    restart: true,
  }),
  'kubeletConfig.configDir': optional(text('directory'), {
    help:
      'The same as a directory (Kubernetes 1.34 and later): all of its `.json`, `.yaml` and `.yml` files ' +
      'are combined.',
    parts,
    restart: true,
  }),
  'kubeletConfig.binDir': optional(text('directory'), {
    help:
      "Directory of the plugins' programs, below `hostRoot`: the value of the kubelet's flag " +
      '`--image-credential-provider-bin-dir`.',
    parts,
    restart: true,
  }),
  serviceAccountTokens: setting(flag, {
    default: false,
    help:
      'Requests service account tokens from the cluster for credential provider plugins with ' +
      '`tokenAttributes`. Without it such plugins are ignored. It needs far-reaching rights: see ' +
      'docs/install/kubelet.md.',
    parts,
    restart: true,
  }),
  kubeletEnvironment: setting(tableOf(checkVariable, text('value')), {
    default: {},
    help:
      'Environment variables for credential provider plugins, such as `HTTPS_PROXY` or `AWS_REGION`. ' +
      "They are added to those of the node's kubelet, or to `HOME` and `PATH` if these cannot be read. " +
      "Plugins get none of archwright's own variables.",
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
