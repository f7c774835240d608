/**
 * What only a failure on a node shows of an image: its manifest names an architecture that its binaries are
 * not for (an exec format error), or its programs need a level of x86-64, which no manifest has to state. The
 * controller notes both in a ConfigMap, one key for each digest and architecture or level. A container writes
 * its own log, so a note holds only for the namespaces in which it was seen: a container cannot push pods of
 * others off an architecture by printing an error.
 */
import * as v from 'valibot';
import { parseJson } from '../../http/json.ts';
import { amd64Levels, highestOf } from '../../nodes/amd64-level.ts';
import type { Amd64Level } from '../../nodes/node-class.ts';
import type { ImageFacts } from '../facts/facts.ts';
import { validReference } from '../references/reference.ts';
import type { Overrides } from './overrides.ts';

export interface BrokenImages {
  /** Architectures on which an image has failed in a namespace, sorted; empty: none are known. */
  brokenOn(digest: string, namespace: string): readonly string[];
  /** The highest level of x86-64 that a program of an image missed in a namespace. */
  requiredLevel(digest: string, namespace: string): Amd64Level | undefined;
  readonly size: number;
}

/** Facts of an image with the level of an override, and with the failures seen on nodes. @param image as written */
export function observed(
  facts: ImageFacts,
  image: string,
  namespace: string,
  broken: BrokenImages,
  levelOf: Overrides['levelOf'],
): ImageFacts {
  const { digest = '', error } = facts;
  if (error) return facts;
  const architectures = broken.brokenOn(digest, namespace);
  const runnable = architectures.length > 0 ? avoiding(facts, architectures) : facts;
  const reference = levelOf && validReference(image);
  const stated = reference && levelOf?.(reference);
  const requiredLevel = highestOf([broken.requiredLevel(digest, namespace), stated]);
  return requiredLevel ? { ...runnable, requiredLevel } : runnable;
}

/** Facts without broken architectures, unless that would leave none for an operating system. */
export function avoiding(facts: ImageFacts, architectures: readonly string[]): ImageFacts {
  const platforms = facts.platforms.filter(({ architecture }) => !architectures.includes(architecture));
  const systems = new Set(platforms.map(({ os }) => os));
  if (facts.platforms.some(({ os }) => !systems.has(os))) return facts;
  return { ...facts, platforms, brokenOn: architectures };
}

export interface BrokenImage {
  readonly digest: string;
  readonly architecture: string;
  /** The image is not broken on amd64, but needs this level. */
  readonly level?: Amd64Level;
  /** The text in the pod, for people. */
  readonly image: string;
  readonly namespaces: readonly string[];
  /** Wall clock, milliseconds. */
  readonly until: number;
}

/** More than any cluster has at a time. */
export const maxBrokenImages = 1000;
/** All notes and keys together: a ConfigMap may have 1 MiB, and many long names of namespaces exceed it. */
export const maxBrokenBytes = 900 * 1024;
/** Namespaces in one note. */
export const maxNamespaces = 20;
const maxImageBytes = 256;

const keyForm = /^sha256-([0-9a-f]{64})\.(?:amd64-v([2-4])|([a-z0-9][a-z0-9_]{0,31}))$/;

/** The key of a note: keys of a ConfigMap have no colon. `undefined` for a digest that is not SHA-256. */
export function keyOfBroken(digest: string, architecture: string, level?: Amd64Level): string | undefined {
  const suffix = level === undefined ? '' : `-v${level}`;
  const key = `${digest.replace(':', '-')}.${architecture}${suffix}`;
  return keyForm.test(key) ? key : undefined;
}

/** The value of a note's key. */
export function formatBroken({ image, namespaces, until }: BrokenImage): string {
  return JSON.stringify({
    image: image.slice(0, maxImageBytes),
    namespaces: namespaces.slice(0, maxNamespaces),
    until: new Date(until).toISOString(),
  });
}

/** Reads the notes of a ConfigMap. People can edit it: invalid and surplus notes are left out. */
export function parseBroken(data: Readonly<Record<string, unknown>> | undefined): readonly BrokenImage[] {
  return Object.entries(data ?? {})
    .slice(0, maxBrokenImages)
    .flatMap(([key, value]) => noteOf(key, value) ?? []);
}

const written = v.object({
  image: v.string(),
  namespaces: v.pipe(
    v.array(v.string()),
    v.transform((names) => names.slice(0, maxNamespaces)),
  ),
  until: v.pipe(v.string(), v.transform(Date.parse), v.number()),
});

function noteOf(key: string, value: unknown): BrokenImage | undefined {
  const [, hex, digit, architecture = 'amd64'] = keyForm.exec(key) ?? [];
  const level = amd64Levels.find((each) => String(each) === digit);
  const { success, output } = v.safeParse(written, typeof value === 'string' && parseJson(value));
  if (hex === undefined || !success) return undefined;
  return { digest: `sha256:${hex}`, architecture, ...(level && { level }), ...output };
}

/** @param now wall clock, milliseconds; a note counts until its time */
export function brokenImagesOf(notes: readonly BrokenImage[], now: () => number): BrokenImages {
  const byDigest = Map.groupBy(notes, ({ digest }) => digest);
  const of = (digest: string, namespace: string) =>
    (byDigest.get(digest) ?? []).filter(
      ({ namespaces, until }) => until > now() && namespaces.includes(namespace),
    );
  return {
    size: notes.length,
    brokenOn: (digest, namespace) =>
      of(digest, namespace)
        .filter(({ level }) => level === undefined)
        .map(({ architecture }) => architecture)
        .sort(),
    requiredLevel: (digest, namespace) => highestOf(of(digest, namespace).map(({ level }) => level)),
  };
}

export const noBrokenImages = brokenImagesOf([], () => 0);
