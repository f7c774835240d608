/** Settings of the node's containerd: where its configuration is, and what is taken from it. */
import { flag, listOf, text } from '../kinds/plain.ts';
import { optional, setting } from './setting.ts';

const parts = ['agent', 'inspect', 'explain'] as const;

const absolutePath = text('path', (value) =>
  value.startsWith('/') ? undefined : 'must be an absolute path, which is taken below hostRoot',
);

export const containerdSettings = {
  containerdConfigPathCandidates: optional(listOf(absolutePath), {
    help:
      'Configurations of containerd of which the first that exists below `hostRoot` counts. Not set: where ' +
      'distributions keep it, those with a containerd of their own first. Empty: containerd is left out, and ' +
      'registries are asked as if it had no configuration.',
    parts,
    restart: true,
  }),
  containerdVersion: optional(
    text('version', (value) =>
      /^v?\d+\.\d+/.test(value) ? undefined : 'must be a version of containerd such as 2.1.4',
    ),
    {
      help:
        'Version of containerd, whose rules for its configuration differ. Not set: the program of the node is asked; ' +
        'where it cannot be, the newest.',
      parts,
      restart: true,
    },
  ),
  mirrorCredentials: setting(flag, {
    default: true,
    help:
      "Whether the mirrors in containerd's configuration get the credentials of the registry that they mirror, as they do " +
      'from containerd.',
    parts,
  }),
};
