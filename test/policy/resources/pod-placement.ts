/** A PodPlacementConfig with the fields that decide the order among several. */
import type { Selector } from '../../../src/policy/resources/schemas.ts';
import type { PodPlacement } from '../../../src/policy/resources/placement.ts';

export function placement(name: string, priority: number, createdAt: number, app?: string): PodPlacement {
  const selector: Selector = app === undefined ? [] : [{ key: 'app', operator: 'In', values: [app] }];
  return {
    namespace: 'shop',
    name,
    createdAt,
    priority,
    selector,
    weights: undefined,
    fallbackArchitecture: undefined,
    onUnknownImage: undefined,
    onNoCommonArchitecture: undefined,
    constraints: undefined,
  };
}
