/**
 * What a runtime did in a generated case, for `test/recorded`. The case itself is generated again, so that only its
 * hash is recorded.
 */
import { hashText } from '../../../src/names/hash.ts';
import { connection, type Recorded } from './registry.ts';
import type { World } from './world.ts';

interface Side {
  readonly message: string;
  readonly requests: readonly Recorded[];
}

export interface RecordedCase<Observed> {
  /** Of the generated cases. */
  readonly number: number;
  /** Of the runtime, if there are several, as it prints it. */
  readonly version: string;
  readonly hash: string;
  /** Of its requests only the hosts. */
  readonly observed: Omit<Observed, keyof Side> & { readonly requests: readonly string[] };
}

/** Others would take seconds of `npm test`, and cases in a row share a configuration. */
export const isRecorded = (number: number): boolean => number % 4 === 0;

export function recordedCase<Observed extends Side>(
  { number, version, about }: { readonly number: number; readonly version: string; readonly about: object },
  side: Observed,
  world: World,
): RecordedCase<Observed> {
  const { message: _, requests, ...rest } = side;
  const hosts = [...new Set(requests.map(({ host }) => host))];
  const text = withNames(JSON.stringify({ ...rest, requests: hosts }), world);
  const observed = JSON.parse(text) as RecordedCase<Observed>['observed'];
  return { number, version, hash: hashOfCase(about, world), observed };
}

/** What was observed then, at the hosts of this world. */
export function observedThen<Observed extends Side>(
  { observed }: RecordedCase<Observed>,
  world: World,
): Observed {
  let text = JSON.stringify(observed);
  for (const { place, port } of portsOf(world)) text = text.replaceAll(`{${place}}`, port);
  const { requests, ...rest } = JSON.parse(text) as RecordedCase<Observed>['observed'];
  return { ...rest, message: '', requests: requests.map(connection) } as unknown as Observed;
}

/** A recorded verdict belongs to exactly this case. */
export function hashOfCase(about: object, world: World): string {
  const { publicCa, privateCa, client } = world;
  const pems = [publicCa, privateCa, client.cert, client.key];
  const stable = (_: string, value: unknown): unknown => {
    if (value instanceof Map) return [...value];
    if (typeof value !== 'string') return value;
    return pems.reduce((text, pem, index) => text.replaceAll(pem, `{${index}}`), value);
  };
  const ports = portsOf(world).map(({ port }) => port);
  const port = new RegExp(`(?<!\\d)(?:${ports.join('|')})(?!\\d)`, 'g');
  return hashText([JSON.stringify(about, stable).replaceAll(port, '{port}')]);
}

/** With names in place of ports, which each world has of its own. Two addresses may have one port. */
function withNames(text: string, world: World): string {
  return portsOf(world).reduce(
    (left, { place, last, port }) =>
      left.replaceAll(new RegExp(`(?<=\\b${last}:)${port}(?!\\d)`, 'g'), `{${place}}`),
    text,
  );
}

/** @returns `last`: the last part of the address */
function portsOf({ places }: World): readonly Readonly<Record<'place' | 'last' | 'port', string>>[] {
  return Object.entries(places).flatMap(([place, host]) => {
    const [, last, port] = /^(?:127\.0\.0\.)?(\d+|localhost):(\d+)$/.exec(host) ?? [];
    return last === undefined || port === undefined ? [] : [{ place, last, port }];
  });
}
