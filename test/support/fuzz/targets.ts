/** Every target of `npm run fuzz`. */
import { certificateTargets } from './certificates.ts';
import { clusterTargets } from './cluster.ts';
import { documentTargets } from './documents.ts';
import { httpTargets } from './http.ts';
import { kubernetesTargets } from './kubernetes.ts';
import { machineFileTargets } from './machine-files.ts';
import { networkTargets } from './network.ts';
import { nodeFileTargets } from './node-files.ts';
import { objectTargets } from './objects.ts';
import type { FuzzTarget } from './target.ts';
import { processTargets } from './processes.ts';
import { textTargets } from './texts.ts';

export const parserTargets: readonly FuzzTarget[] = [
  ...nodeFileTargets,
  ...machineFileTargets,
  ...networkTargets,
  ...clusterTargets,
  ...kubernetesTargets,
  ...objectTargets,
  ...documentTargets,
  ...textTargets,
  ...certificateTargets,
  ...httpTargets,
];

export const targets: readonly FuzzTarget[] = [...processTargets, ...parserTargets];
