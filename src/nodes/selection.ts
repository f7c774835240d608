/**
 * Which platform of an image a node's runtime pulls, and whether the node runs it. Unknown fields of the node
 * are tried with every possible value: an image is refused only if every try fails.
 */
import { formatPlatform, type FullPlatform } from '../names/platform.ts';
import { amd64Levels } from './amd64-level.ts';
import { canRun, type Machine } from './machine.ts';
import type { Amd64Level, NodeClass } from './node-class.ts';
import { ignoresFeatures, pullersOf, type Puller } from './pullers.ts';

/**
 * - `runs`: the node pulls the image and runs it, whatever the unknown fields are.
 * - `refused`: it does not, whatever they are.
 * - `depends`: on the fields in `dependsOn`.
 */
export interface Selection {
  readonly verdict: 'runs' | 'refused' | 'depends';
  /** Index of the platform that the runtime pulls, if it is certain. */
  readonly chosen?: number;
  /** Unknown fields that decide: `runtime`, `pull mode`, `CPU level`, `CPU variant`, `AArch32`, … */
  readonly dependsOn?: readonly string[];
  /** Why the image is refused, or what some nodes of the class lack. */
  readonly reason?: string;
}

/** Runtimes select only from an index. A single manifest is pulled as it is. */
export type ImageForm = 'index' | 'manifest';

/**
 * @param platforms in the order of the index; of a single manifest, the platform of its config
 * @param requiredLevel of amd64 that the program needs, beside what its variant says
 */
export function selectPlatform(
  platforms: readonly FullPlatform[],
  node: NodeClass,
  requiredLevel: Amd64Level = 1,
  form: ImageForm = 'index',
): Selection {
  if (platforms.length === 0) return { verdict: 'runs' };
  const fields = fieldsOf(node, platforms, requiredLevel);
  const tries = combinations(fields).map((found) => tryOut(platforms, found, requiredLevel, form));
  const [first] = tries;
  const chosen = tries.every((each) => each.chosen === first?.chosen) ? first?.chosen : undefined;
  const known = chosen === undefined ? {} : { chosen };
  if (tries.every(({ runs }) => runs)) return { verdict: 'runs', ...known };
  const reason = tries.find(({ runs }) => !runs)?.reason ?? '';
  if (!tries.some(({ runs }) => runs)) return { verdict: 'refused', ...known, reason };
  return { verdict: 'depends', ...known, dependsOn: deciding(fields, tries), reason };
}

interface Try {
  readonly chosen?: number;
  readonly runs: boolean;
  readonly reason?: string;
}

type Found = Machine & { readonly puller: Puller; readonly ignoresFeatures: boolean };

/** A field of the class with its possible values. */
interface Field {
  readonly name: string;
  readonly values: readonly Partial<Found>[];
}

/** containerd supports these on 32-bit CPUs, and one in AArch32. */
const armVariants = ['v5', 'v6', 'v7', 'v8'];

/** A field that no platform of the image depends on has one value: fewer tries. */
function fieldsOf(
  node: NodeClass,
  platforms: readonly FullPlatform[],
  requiredLevel: Amd64Level,
): readonly Field[] {
  const { os, architecture } = node;
  const pullers = pullersOf(node);
  const needsFeatures = platforms.some((each) => each.needsFeatures);
  const ignores = valuesOf(ignoresFeatures(node), [true, false], needsFeatures);
  const isContainerd = pullers.every(({ runtime }) => runtime === 'containerd');
  const hasVariants = platforms.some((each) => each.architecture === architecture && each.variant);
  const needsLevel = architecture === 'amd64' && (hasVariants || requiredLevel > 1);
  const mayBeNewer = architecture === 'arm64' && hasVariants;
  const hasArm = architecture === 'arm64' && platforms.some((each) => each.architecture === 'arm');
  const levels = valuesOf(node.amd64Level, amd64Levels, needsLevel);
  const aarch32s = valuesOf(node.aarch32, [false, true], hasArm);
  const versions = valuesOf(node.osVersion, [anyVersion, noVersion], os === 'windows');
  return [
    {
      name: isContainerd ? 'pull mode' : 'runtime',
      values: pullers.map((puller) => ({ puller })),
    },
    { name: 'runtime', values: ignores.map((each) => ({ ignoresFeatures: each })) },
    { name: 'CPU variant', values: variantsOf(node).map((armVariant) => ({ armVariant })) },
    {
      name: 'CPU variant',
      values: valuesOf(undefined, [false, true], mayBeNewer).map((newerCpu) => ({ newerCpu })),
    },
    { name: 'CPU level', values: levels.map((amd64Level) => ({ amd64Level })) },
    { name: 'AArch32', values: aarch32s.map((aarch32) => ({ aarch32 })) },
    { name: 'Windows version', values: versions.map((osVersion) => ({ os, architecture, osVersion })) },
  ];
}

/** @param all possible values, the usual one first @param matters whether the image depends on them */
function valuesOf<T>(known: T | undefined, all: readonly T[], matters: boolean): readonly T[] {
  if (known !== undefined) return [known];
  return matters ? all : all.slice(0, 1);
}

/** No image has this version of Windows. */
const noVersion = '0.0.1';
/** An unknown version fits every image. */
const anyVersion = '';

/** Every Linux kernel reports `CPU architecture: 8` on arm64, so containerd's variant is v8 there. */
function variantsOf({ architecture, armVariant }: NodeClass): readonly string[] {
  if (architecture !== 'arm' && architecture !== 'arm64') return [''];
  if (armVariant !== undefined) return [armVariant];
  return architecture === 'arm64' ? ['v8'] : armVariants;
}

function combinations(fields: readonly Field[]): Found[] {
  const start: Partial<Found>[] = [{}];
  return fields.reduce(
    (found, { values }) => found.flatMap((each) => values.map((value) => ({ ...each, ...value }))),
    start,
  ) as Found[];
}

function tryOut(
  platforms: readonly FullPlatform[],
  { puller, ignoresFeatures, ...machine }: Found,
  requiredLevel: Amd64Level,
  form: ImageForm,
): Try {
  const taken = ignoresFeatures ? platforms : platforms.filter(({ needsFeatures }) => !needsFeatures);
  const selected = form === 'manifest' ? platforms[0] : taken[puller.select(taken, machine) ?? -1];
  const chosen = selected && platforms.indexOf(selected);
  const platform = chosen === undefined ? undefined : platforms[chosen];
  if (chosen === undefined || platform === undefined) {
    const how = puller.pullMode === undefined ? '' : ` (${puller.pullMode} pull)`;
    return { runs: false, reason: `${puller.runtime}${how} finds no platform of the node in the index` };
  }
  const runs = canRun(platform, machine, requiredLevel);
  const needs = machine.amd64Level < requiredLevel ? `: the image needs x86-64-v${requiredLevel}` : '';
  return {
    chosen,
    runs,
    ...(!runs && { reason: `the node's CPU does not run ${formatPlatform(platform)}${needs}` }),
  };
}

/** The fields that change the outcome while all others stay the same. */
function deciding(fields: readonly Field[], tries: readonly Try[]): readonly string[] {
  const names = new Set<string>();
  let stride = tries.length;
  for (const { name, values } of fields) {
    const outer = stride;
    stride /= values.length;
    for (let index = 0; index < tries.length; index += 1) {
      const base = Math.floor(index / outer) * outer + (index % stride);
      if (tries[index]?.runs !== tries[base]?.runs) names.add(name);
    }
  }
  return [...names];
}
