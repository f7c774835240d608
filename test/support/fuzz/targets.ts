/** Every target, in the order in which `npm run fuzz` takes them. */
import { clusterTargets } from './cluster.ts';
import { networkTargets } from './network.ts';
import { nodeFileTargets } from './node-files.ts';
import type { FuzzTarget } from './target.ts';

export const targets: readonly FuzzTarget[] = [...nodeFileTargets, ...networkTargets, ...clusterTargets];
