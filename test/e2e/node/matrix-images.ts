/** Images over the variants of platforms: single manifests, and indexes in every order. */
import { gzipSync } from 'node:zlib';
import {
  document,
  index,
  manifest,
  mediaTypes,
  platformOf,
  type Content,
} from '../../support/registry/content.ts';
import { emptyTar } from '../layout.ts';
import { createRandom } from '../random.ts';
import type { ImageForm } from '../../../src/nodes/selection.ts';

/** As indexes write them; `x86_64` is what some builders write for amd64. */
const variants = [
  'amd64',
  'amd64/v1',
  'amd64/v2',
  'amd64/v3',
  'amd64/v4',
  'x86_64',
  '386',
  'arm',
  'arm/v5',
  'arm/v6',
  'arm/v7',
  'arm/v8',
  'arm64',
  'arm64/v8',
  'arm64/v9',
] as const;

/**
 * Indexes with unnamed platforms. If none is named, containerd reads the config of the first entry only;
 * if one is, it never pulls an entry without a platform.
 */
const unnamed = [
  ['?amd64'],
  ['?386'],
  ['?arm64'],
  ['?amd64/v3'],
  ['?amd64', '?arm64'],
  ['?arm64', '?amd64'],
  ['?386', '?amd64'],
  ['?amd64', '?amd64'],
  ['?amd64', 'arm64'],
  ['arm64', '?amd64'],
  ['?arm64', 'amd64'],
  ['?amd64', '386'],
  ['amd64/v3', '?386'],
  ['arm64', '?arm64', '?amd64'],
] as const;

/** Indexes with nested ones (`>`) without a platform: only the first counts, if no entry has a platform. */
const nested = [
  ['>amd64'],
  ['>amd64', 'arm64'],
  ['arm64', '>amd64'],
  ['>arm64', '>amd64'],
  ['>amd64', '>arm64'],
  ['?arm64', '>amd64'],
  ['?amd64', '>arm64'],
  ['>arm64', '?amd64'],
] as const;

export interface MatrixImage {
  readonly name: string;
  readonly form: ImageForm;
  readonly top: Content;
  /** The manifests in the order of the index. */
  readonly entries: readonly Entry[];
}

interface Entry {
  readonly platform: Readonly<Record<string, string>>;
  /** Whether the index names the platform; otherwise only the config does. */
  readonly named: boolean;
  /** Digest of the config, which CRI calls the image's id. */
  readonly id: string;
}

/** All images share it: only the first pull needs it. */
const layer = document(mediaTypes.ociLayer, gzipSync(emptyTar));
const rootfs = { type: 'layers', diff_ids: [document('', emptyTar).digest] };

function manifestFor(platform: Readonly<Record<string, string>>, title: string): Content {
  return manifest(document(mediaTypes.ociConfig, { ...platform, config: { Labels: { title } }, rootfs }), [
    layer,
  ]);
}

function imageOf(texts: readonly string[], form: ImageForm): MatrixImage {
  const name = form === 'manifest' ? `manifest ${texts.join()}` : `[${texts.join(', ')}]`;
  const entries = texts.map((text, position) => {
    const platform = platformOf(`linux/${text.replace(/[?>]/, '')}`);
    const content = manifestFor(platform, `${name} ${position}`);
    const id = content.blobs[0]?.digest ?? '';
    return { platform, content, named: !text.startsWith('?'), isNested: text.startsWith('>'), id };
  });
  const [first] = entries;
  if (form === 'manifest' && first) return { name, form, top: first.content, entries };
  const written = entries.map(({ content, platform, named, isNested }) => {
    const entry = { content, ...(named && { platform }) };
    return isNested ? { content: index([entry]) } : entry;
  });
  return { name, form, top: index(written), entries };
}

/** Each as manifest and in an index; every ordered pair; `more` larger random indexes with repetitions. */
export function matrixImages(seed: number, more: number): readonly MatrixImage[] {
  const random = createRandom(seed);
  const larger = Array.from({ length: more }, () =>
    Array.from({ length: 3 + random.below(4) }, () => random.pick(variants)),
  );
  return [...small(), ...indexes(larger)];
}

/** As `matrixImages`, with every ordered triple instead of random ones: 2,730. */
export function exhaustiveImages(): readonly MatrixImage[] {
  const pairs = orderedWith(variants.map((text) => [text]));
  return [...small(), ...indexes(orderedWith(pairs))];
}

function small(): readonly MatrixImage[] {
  const alone = variants.map((text) => [text]);
  return [
    ...alone.map((texts) => imageOf(texts, 'manifest')),
    ...indexes(alone),
    ...indexes(orderedWith(alone)),
    ...indexes(unnamed),
    ...indexes(nested),
  ];
}

function indexes(lists: readonly (readonly string[])[]): readonly MatrixImage[] {
  return lists.map((texts) => imageOf(texts, 'index'));
}

/** Each list with each variant that it does not have, at its end. */
function orderedWith(lists: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return lists.flatMap((list) =>
    variants.filter((text) => !list.includes(text)).map((text) => [...list, text]),
  );
}

/** The manifests and configs of an image, by digest. */
export function documentsOf(top: Content): ReadonlyMap<string, Buffer> {
  const contents = [top, ...top.children, ...top.blobs, ...top.children.flatMap(({ blobs }) => blobs)];
  return new Map(contents.map(({ digest, bytes }) => [digest, bytes]));
}
