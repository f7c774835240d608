/** Setups written by hand: each rule of the kubelet once, so that a difference is easy to read. */
import { dockerConfigSetups } from './written-docker-configs.ts';
import { pluginSetups } from './written-plugins.ts';
import { pullSecretSetup } from './written-pull-secrets.ts';
import { tokenSetups } from './written-tokens.ts';
import type { Setup } from './setup.ts';

export const writtenSetups: readonly Setup[] = [
  pullSecretSetup,
  ...dockerConfigSetups,
  ...tokenSetups,
  ...pluginSetups,
];
