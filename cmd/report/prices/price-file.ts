/**
 * `--prices FILE`: prices of node types, in TOML:
 *
 *   currency = "USD"                # default; ISO 4217
 *   hours-per-month = 730           # default: 365 × 24 / 12
 *
 *   [[node]]
 *   instance-type = "m7g.large"     # the label node.kubernetes.io/instance-type
 *   region = "eu-central-1"         # the label topology.kubernetes.io/region; default: every region
 *   on-demand = 0.0978              # for an hour
 *   spot = 0.0391
 *   architecture = "arm64"          # these three if the cluster has no node of the type
 *   vcpu = 2
 *   memory = "8Gi"
 */
import { decodeUtf8, FileError, readBounded } from '../../../src/files/read.ts';
import { unknownArchitecture } from '../../../src/names/architecture.ts';
import { parseQuantity } from '../../../src/names/quantity.ts';
import { UsageError } from '../../program/exit.ts';
import { readTomlTables, type TomlTable, type WrongTable } from '../../program/toml-file.ts';

export type CapacityType = 'on-demand' | 'spot';

export interface PriceEntry {
  readonly instanceType: string;
  /** `undefined`: every region. */
  readonly region: string | undefined;
  /** For an hour. */
  readonly prices: Readonly<Partial<Record<CapacityType, number>>>;
  readonly size: NodeSize | undefined;
}

export interface NodeSize {
  readonly architecture: string;
  readonly vcpu: number;
  /** In bytes. */
  readonly memory: number;
}

export interface PriceList {
  readonly currency: string;
  readonly hoursPerMonth: number;
  readonly entries: readonly PriceEntry[];
}

/** Without a file. 365 × 24 / 12 hours. */
export const noPriceList: PriceList = { currency: 'USD', hoursPerMonth: 730, entries: [] };

const form = {
  settings: ['currency', 'hours-per-month'],
  list: 'node',
  // A large cloud has about 1,000 instance types and 40 regions; a file lists those in use.
  maxTables: 5000,
  fields: ['instance-type', 'region', 'on-demand', 'spot', 'architecture', 'vcpu', 'memory'],
};
const maxTextLength = 128;
/** Above any price and size of a node, far below where sums lose cents. */
const maxNumber = 1e6;
/** Below any node. Prices are divided by both, and a quotient must stay a number. */
const leastSize = { vcpu: 0.01, memory: 2 ** 20 };

/** 5,000 entries of the size of the example. */
const maxBytes = 1024 * 1024;

/** @param path `undefined`: no file @throws UsageError with file and line */
export async function readPrices(path: string | undefined): Promise<PriceList> {
  if (path === undefined) return noPriceList;
  try {
    return parsePrices(decodeUtf8(await readBounded(path, { maxBytes }), path), path);
  } catch (error) {
    if (error instanceof FileError) throw new UsageError(`--prices: ${error.message}`);
    throw error;
  }
}

/** @throws UsageError with file and line */
export function parsePrices(text: string, file: string): PriceList {
  const { document, tables } = readTomlTables(text, file, form, entryOf);
  const { currency = noPriceList.currency, 'hours-per-month': hoursPerMonth = noPriceList.hoursPerMonth } =
    document;
  if (typeof currency !== 'string' || !/^[A-Z]{3}$/.test(currency))
    throw new UsageError(`${file}: currency must be a code such as "USD"`);
  if (!isPositive(hoursPerMonth) || hoursPerMonth > 744)
    throw new UsageError(`${file}: hours-per-month must be a number up to 744`);
  return { currency, hoursPerMonth, entries: withoutRepetition(tables, file) };
}

function withoutRepetition(entries: readonly PriceEntry[], file: string): readonly PriceEntry[] {
  const seen = new Set<string>();
  for (const { instanceType, region } of entries) {
    const key = JSON.stringify([instanceType, region]);
    const where = region === undefined ? '' : ` in ${region}`;
    if (seen.has(key)) throw new UsageError(`${file}: ${instanceType}${where} has two prices`);
    seen.add(key);
  }
  return entries;
}

function entryOf(entry: TomlTable, wrong: WrongTable): PriceEntry {
  const { 'instance-type': instanceType, region, 'on-demand': onDemand, spot } = entry;
  if (!isName(instanceType)) throw wrong('instance-type must be a string');
  if (region !== undefined && !isName(region)) throw wrong('region must be a string');
  if (onDemand === undefined && spot === undefined) throw wrong('on-demand or spot must be set');
  for (const [name, price] of Object.entries({ 'on-demand': onDemand, spot }))
    if (price !== undefined && !isPositive(price))
      throw wrong(`${name} must be a price for an hour, such as 0.12`);
  return {
    instanceType,
    region,
    prices: {
      ...(isPositive(onDemand) && { 'on-demand': onDemand }),
      ...(isPositive(spot) && { spot }),
    },
    size: sizeOf(entry, wrong),
  };
}

function sizeOf({ architecture, vcpu, memory }: TomlTable, wrong: WrongTable): NodeSize | undefined {
  if (architecture === undefined && vcpu === undefined && memory === undefined) return undefined;
  if (!isName(architecture))
    throw wrong('architecture, vcpu and memory belong together: architecture must be a string');
  const mistake = unknownArchitecture(architecture);
  if (mistake !== undefined) throw wrong(mistake);
  if (!isPositive(vcpu) || vcpu < leastSize.vcpu)
    throw wrong('architecture, vcpu and memory belong together: vcpu must be a number from 0.01');
  const bytes = typeof memory === 'string' ? parseQuantity(memory) : undefined;
  if (bytes === undefined || bytes < leastSize.memory)
    throw wrong('architecture, vcpu and memory belong together: memory must be a quantity such as "8Gi"');
  return { architecture, vcpu, memory: bytes };
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= maxTextLength;
}

function isPositive(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value <= maxNumber;
}
