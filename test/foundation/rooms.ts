/** The rooms of the program and which may import which. */
import type { Import } from './sources.ts';

/** Rooms that every room may import. Each may import the ones before it in this list. */
const plain = ['names', 'telemetry', 'async', 'files', 'http', 'serving', 'kube', 'nodes', 'certificates'];

/** Pure rooms: `placement` may import values from them too. */
const pure = new Set(['names', 'nodes']);

/**
 * Rooms that each room may import besides the plain ones and itself. `cmd → clean → webhook, controller,
 * daemon → facts-api → cluster → fleet → images, policy → registry → credentials`: a room may import the
 * rooms to its right.
 */
const chain: readonly (readonly string[])[] = [
  ['cmd'],
  ['clean'],
  ['webhook', 'controller', 'daemon'],
  ['facts-api'],
  ['cluster'],
  ['placement', 'fleet'],
  ['images', 'policy'],
  ['registry'],
  ['credentials'],
];

/** The room of a file: `cmd`, `daemon`, or the folder in `src/`. */
export function roomOf(path: string): string {
  const [top = '', second = ''] = path.split('/');
  return top === 'src' ? second : top;
}

/** The rule that an import breaks, if any. */
export function brokenRule(from: string, { target, typeOnly }: Import): string | undefined {
  if (!/^(?:cmd|src|daemon)\//.test(target)) {
    return /^(?:test|bench|scripts|examples)\//.test(target)
      ? 'the program imports nothing from outside of it'
      : undefined;
  }
  const room = roomOf(from);
  const other = roomOf(target);
  const feature = featureOf(target);
  if (feature !== undefined && feature !== featureOf(from) && !mayImportFeatures(from))
    return 'features of the controller do not import each other, and only their list imports them';
  if (room === other) return undefined;
  if (room === 'placement') {
    return typeOnly || pure.has(other)
      ? undefined
      : 'placement imports only types, names and nodes from elsewhere';
  }
  if (plain.includes(room)) {
    return plain.indexOf(other) >= 0 && plain.indexOf(other) < plain.indexOf(room)
      ? undefined
      : `${room} may import ${plain.slice(0, plain.indexOf(room)).join(', ') || 'nothing'}`;
  }
  if (plain.includes(other)) return undefined;
  const place = placeOf(room);
  const otherPlace = placeOf(other);
  if (place === undefined) return `${room} is not a room of the layout`;
  if (otherPlace === undefined) return `${other} is not a room of the layout`;
  if (otherPlace > place) return undefined;
  return `${room} may import ${
    chain
      .slice(place + 1)
      .flat()
      .join(', ') || 'none of the rooms in the chain'
  }`;
}

function placeOf(room: string): number | undefined {
  const place = chain.findIndex((rooms) => rooms.includes(room));
  return place < 0 ? undefined : place;
}

/** The feature of the controller that a file is of. */
function featureOf(path: string): string | undefined {
  return /^src\/controller\/features\/([^/]+)\//.exec(path)?.[1];
}

/** The files right in `src/controller/` list and start the features. Other rooms may read what they define. */
function mayImportFeatures(path: string): boolean {
  return !/^src\/controller\/[^/]+\//.test(path);
}
