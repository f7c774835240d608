/** archaware-controller: it has no configuration; that it runs says everything. */
import type { Origin } from './converted.ts';
import { usesImage } from './deployment.ts';

export const archawareController: Origin = {
  name: 'archaware-controller',
  recognizes: (document) => usesImage(document, /archaware-controller(?::|@|$)/),
  convert: () => ({
    values: { taintArchitectures: ['*'], taintKey: 'supported-arch' },
    resources: [],
    notes: [
      {
        key: 'supported-arch',
        text: 'stays the key of the taint of each node, so that nodes and pods go on as they are; remove both values for none',
      },
    ],
  }),
};
