/** The field `node` of an agent's `/v1/info`. Absent fields are not known. */
import { isRecord } from '../names/values.ts';
import { amd64Levels } from './amd64-level.ts';
import type { NodeClass } from './node-class.ts';

export type NodeReport = Pick<
  NodeClass,
  'runtime' | 'pullMode' | 'armVariant' | 'amd64Level' | 'aarch32' | 'pageSize'
>;

/** Runtimes whose configuration agents read. */
export const runtimeNames = ['containerd', 'cri-o'] as const;
export type RuntimeName = (typeof runtimeNames)[number];

const runtimeName = /^[a-z0-9][a-z0-9.-]{0,30}$/u;
const runtimeVersion = /^[A-Za-z0-9][A-Za-z0-9._+~-]{0,62}$/u;
const armVariant = /^v[5-9](?:\.\d)?$/u;
/** Linux has pages of 4 KiB to 64 KiB (arm64, ppc64le); the CPUs of its other ports go up to 16 MiB. */
const pageSizes = [4096, 8192, 16_384, 65_536, 262_144];

/** The name and version of a container runtime; `undefined` if they cannot be. */
export function runtimeOf(name: unknown, version: unknown): NodeClass['runtime'] {
  const isValid =
    typeof name === 'string' &&
    typeof version === 'string' &&
    runtimeName.test(name) &&
    runtimeVersion.test(version);
  return isValid ? { name, version } : undefined;
}

/** Whether the runtime finds the registry of a short name (`nginx`) by its own configuration. */
export function resolvesShortNames({ runtime }: NodeReport): boolean {
  return runtime?.name === 'cri-o';
}

/** Reads a report. Implausible fields are dropped. */
export function readNodeReport(value: unknown): NodeReport | undefined {
  if (!isRecord(value)) return undefined;
  const given = isRecord(value['runtime']) ? value['runtime'] : {};
  const runtime = runtimeOf(given['name'], given['version']);
  const pullMode = (['local', 'transfer'] as const).find((mode) => value['pullMode'] === mode);
  const variant = value['armVariant'];
  const amd64Level = amd64Levels.find((level) => value['amd64Level'] === level);
  const aarch32 = value['aarch32'];
  const pageSize = pageSizes.find((size) => value['pageSize'] === size);
  return {
    ...(runtime && { runtime }),
    ...(pullMode && { pullMode }),
    ...(typeof variant === 'string' && armVariant.test(variant) && { armVariant: variant }),
    ...(amd64Level && { amd64Level }),
    ...(typeof aarch32 === 'boolean' && { aarch32 }),
    ...(pageSize && { pageSize }),
  };
}
