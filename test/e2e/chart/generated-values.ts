/** Generated chart values, valid and invalid (settings, pools, flags, variables), and their validation. */
import * as fc from 'fast-check';
import { chartSections, isSetting } from '../../../scripts/docs/chart/chart.ts';
import {
  defaultConfiguration,
  type Configuration,
  inconsistencies,
} from '../../../src/policy/configuration/configuration.ts';
import type { Part, Rule } from '../../../src/policy/settings/setting.ts';
import { valuesOf } from '../../support/setting-values.ts';
import { withValue } from './value-sets.ts';

export interface GeneratedValues {
  readonly values: object;
  /** Whether the programs would start with them. */
  readonly isValid: boolean;
}

type Flat = Readonly<Record<string, unknown>>;

const settings = chartSections().flatMap(({ values }) => values.filter(isSetting));
/** Settings that can contradict each other are drawn more often. */
const related = settings.filter(({ key }) =>
  /^(?:kubeletConfig|proxies|preferred|fallback|schedulable|onUnknown|requirePullable)/.test(key),
);
const someArchitectures = fc.constantFrom('amd64', 'arm64');

interface Drawn {
  readonly key: string;
  readonly value: unknown;
  readonly isValid: boolean;
}

/** A value of one setting, usually valid. */
function drawn(from: typeof settings): fc.Arbitrary<Drawn> {
  return fc.constantFrom(...from).chain(({ key, schema, setting, example }) => {
    const isValid = (value: unknown): boolean =>
      setting.kind.read(value, () => undefined) !== undefined && hasKnownNames(setting.kind.rule, value);
    const any = valuesOf(schema).map((value) => ({ key, value, isValid: isValid(value) }));
    const valid = fc.oneof(
      fc.constant(example),
      valuesOf(schema, someArchitectures).map((value) => (isValid(value) ? value : example)),
      valuesOf(schema).map((value) => (isValid(value) ? value : example)),
    );
    return fc.oneof(
      { arbitrary: valid.map((value) => ({ key, value, isValid: true })), weight: 15 },
      { arbitrary: any, weight: 1 },
    );
  });
}

/** The program also takes architectures that it does not know. The chart does not. */
function hasKnownNames(rule: Rule | undefined, value: unknown): boolean {
  if (rule === undefined || 'unit' in rule) return true;
  if ('match' in rule)
    return rule.similar === undefined || ['*', ...rule.similar.names].includes(value as string);
  if ('items' in rule) return [value].flat().every((item) => hasKnownNames(rule.items, item));
  const entries = Object.entries(value as object);
  if ('fields' in rule) return entries.every(([key, item]) => hasKnownNames(rule.fields[key], item));
  return entries.every(([key, item]) => hasKnownNames(rule.keys, key) && hasKnownNames(rule.values, item));
}

const some = fc.tuple(
  fc.array(drawn(settings), { maxLength: 6 }),
  fc.array(drawn(related), { maxLength: 2 }),
);
const generated = fc
  .record({
    base: some,
    pool: fc.option(some, { freq: 3 }),
    agents: fc.oneof({ arbitrary: fc.constant(true), weight: 5 }, fc.constant(false)),
    controller: fc.oneof({ arbitrary: fc.constant(true), weight: 5 }, fc.constant(false)),
  })
  .map(({ base, pool, agents, controller }): GeneratedValues => {
    const own = byKey(base.flat());
    const ofPool = byKey(pool?.flat() ?? []);
    const pools = pool ? [{ name: 'some', config: nested(flat(ofPool)) }] : [];
    const values = {
      ...nested(flat(own)),
      agent: { enabled: agents, pools, serviceAccountTokenAudiences: ['registry.example.com'] },
      controller: { enabled: controller },
      ...(!controller && { certificates: 'external' }),
    };
    const chart = {
      ...(controller && { onUnknownImage: 'gate' }),
      ...(agents && { agents: ['endpointslices:archwright/archwright-agent'], agentTlsDir: '/tls' }),
    };
    const layers: [Flat, readonly Part[]][] = [
      [{ ...chart, ...read(own) }, ['webhook', 'controller', 'agent', 'clean', 'probe']],
      [{ ...chart, ...read(own), ...read(ofPool) }, ['agent']],
    ];
    const isValid =
      [...own.values(), ...ofPool.values()].every((each) => each.isValid) &&
      layers.every(([layer, parts]) => parts.every((part) => contradictions(layer, part) === 0));
    return { values, isValid };
  });

/** @param seed the same sets for the same seed */
export function generatedValues(count: number, seed: number): readonly GeneratedValues[] {
  return fc.sample(generated, { numRuns: count, seed });
}

function byKey(all: readonly Drawn[]): ReadonlyMap<string, Drawn> {
  return new Map(all.map((each) => [each.key, each]));
}

function flat(all: ReadonlyMap<string, Drawn>): Flat {
  return Object.fromEntries([...all].map(([key, { value }]) => [key, value]));
}

function nested(all: Flat): object {
  return Object.entries(all).reduce<object>((values, [key, value]) => withValue(values, key, value), {});
}

function read(all: ReadonlyMap<string, Drawn>): Flat {
  const kinds = new Map(settings.map(({ key, setting }) => [key, setting.kind]));
  return Object.fromEntries(
    [...all].map(([key, { value }]) => [key, kinds.get(key)?.read(value, () => undefined)]),
  );
}

function contradictions(layer: Flat, part: Part): number {
  const configuration = { ...defaultConfiguration(), ...layer } as Configuration;
  return inconsistencies(configuration, part).length;
}
