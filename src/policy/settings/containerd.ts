/** Settings of the node's containerd: where its configuration is, and what is taken from it. */
import { flag, listOf, text } from '../value-kinds/plain.ts';
import { optional, setting } from './setting.ts';

const parts = ['agent', 'inspect', 'explain'] as const;

const absolutePath = text('path', (value) =>
  value.startsWith('/') ? undefined : 'must be an absolute path, which is taken below hostRoot',
);

export const containerdSettings = {
  containerdConfigPathCandidates: optional(listOf(absolutePath), {
    help:
      'Containerd configuration files below `hostRoot`; the first existing one applies. Default: the ' +
      "locations that distributions use, those with their own containerd first. Empty: containerd's " +
      'configuration is ignored.',
    parts,
    restart: true,
  }),
  containerdVersion: optional(
    text('version', (value) =>
      /^v?\d+\.\d+/.test(value) ? undefined : 'must be a version of containerd such as 2.1.4',
    ),
    {
      help:
        'Version of containerd, which determines the rules for its configuration. Default: the version ' +
        "of the node's containerd program; the newest if it cannot be run.",
      parts,
      restart: true,
    },
  ),
  mirrorCredentials: setting(flag, {
    default: true,
    help:
      "Sends the credentials of a registry to its mirrors in containerd's configuration, as containerd " +
      'does.',
    parts,
  }),
};
