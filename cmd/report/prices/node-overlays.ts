/**
 * Karpenter's NodeOverlays (`karpenter.sh/v1alpha1`), which set or adjust prices of nodes. The overlay with
 * the highest weight wins, then the first by name.
 * @see karpenter pkg/apis/v1alpha1/nodeoverlay.go; `AdjustedPrice` in pkg/cloudprovider/types.go
 */
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { isCode } from '../../../src/kube/api/errors.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { objectsOf } from '../../../src/kube/api/pages.ts';
import { clusterPath } from '../../../src/kube/api/paths.ts';
import { isRecord } from '../../../src/names/values.ts';

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

export interface NodeOverlay {
  readonly name: string;
  readonly weight: number;
  readonly requirements: readonly Requirement[];
  /** A price for an hour. */
  readonly price: string | undefined;
  /** `+0.5`, `-10%` */
  readonly adjustment: string | undefined;
}

const nodeOverlays = clusterPath('karpenter.sh/v1alpha1', 'nodeoverlays');

/**
 * @returns those with a price, in the order in which they win; none without the custom resource
 * @throws KubeError
 */
export async function listNodeOverlays(
  client: KubeClient,
  signal: AbortSignal,
): Promise<readonly NodeOverlay[] | 'forbidden'> {
  const found: NodeOverlay[] = [];
  try {
    for await (const each of objectsOf<KubeObject>(client, nodeOverlays(), { signal })) {
      const overlay = nodeOverlayOf(each);
      if (overlay !== undefined) found.push(overlay);
    }
  } catch (error) {
    if (isCode(error, 'not-found')) return [];
    if (isCode(error, 'forbidden')) return 'forbidden';
    throw error;
  }
  return found.sort((a, b) => b.weight - a.weight || (a.name < b.name ? -1 : 1));
}

function nodeOverlayOf({ metadata, ...object }: KubeObject): NodeOverlay | undefined {
  const { spec } = object as { readonly spec?: unknown };
  if (!isRecord(spec)) return undefined;
  const { weight, requirements = [], price, priceAdjustment } = spec;
  if (typeof price !== 'string' && typeof priceAdjustment !== 'string') return undefined;
  return {
    name: metadata?.name ?? '',
    weight: typeof weight === 'number' ? weight : 0,
    requirements: (Array.isArray(requirements) ? requirements : [requirements]).map(requirementOf),
    price: typeof price === 'string' ? price : undefined,
    adjustment: typeof priceAdjustment === 'string' ? priceAdjustment : undefined,
  };
}

/** What cannot be read matches no node. */
function requirementOf(requirement: unknown): Requirement {
  const { key, operator, values }: Readonly<Record<string, unknown>> = isRecord(requirement)
    ? requirement
    : {};
  return {
    key: typeof key === 'string' ? key : '',
    operator: typeof operator === 'string' ? operator : '',
    values: Array.isArray(values) ? values.filter((each) => typeof each === 'string') : [],
  };
}

/**
 * The price of a node for an hour.
 * @param base its price without overlays; an adjustment needs one
 */
export function overlaidPrice(
  overlays: readonly NodeOverlay[],
  labels: Readonly<Record<string, string>>,
  base: number | undefined,
): number | undefined {
  const overlay = overlays.find(({ requirements }) => requirements.every((each) => matches(each, labels)));
  if (overlay === undefined) return undefined;
  const { price, adjustment } = overlay;
  if (price !== undefined) return /^\d+(?:\.\d+)?$/.test(price) ? Number(price) : undefined;
  const [, change, percent] = /^([+-]\d+(?:\.\d+)?)(%?)$/.exec(adjustment ?? '') ?? [];
  if (change === undefined || base === undefined) return undefined;
  return Math.max(percent === '%' ? base * (1 + Number(change) / 100) : base + Number(change), 0);
}

function matches({ key, operator, values }: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  if (operator === 'In') return value !== undefined && values.includes(value);
  if (operator === 'NotIn') return value === undefined || !values.includes(value);
  if (operator === 'Exists') return value !== undefined;
  if (operator === 'DoesNotExist') return value === undefined;
  return value !== undefined && comparison(operator, Number(value), Number(values[0]));
}

function comparison(operator: string, value: number, limit: number): boolean {
  if (operator === 'Gt') return value > limit;
  if (operator === 'Lt') return value < limit;
  if (operator === 'Gte') return value >= limit;
  return operator === 'Lte' && value <= limit;
}
