/**
 * The platforms of a manifest document of any kind. An index usually names them itself. Missing parts are
 * fetched, within bounds: nested indexes, and the configs of children if no child names a platform.
 */
import {
  documentKind,
  isImageConfig,
  readPlatform,
  type Descriptor,
  type ManifestDocument,
} from './manifest.ts';
import { RegistryError, type RegistryErrorCode, type WrittenPlatform } from '../manifest-lookup.ts';
import { asObject, asText, parseObject } from '../../http/json.ts';
import { normalizePlatform } from '../../names/platform.ts';

/** An index of indexes is rare, a third level unknown. */
const maxIndexDepth = 3;

/** More children than any image has; a list of a thousand platforms is an attack or a mistake. */
const maxChildren = 1000;

/** Each costs a request; an index of indexes has one for each variant of an image. */
const maxNestedIndexes = 16;

/** Each costs two requests; further children without a platform are not read. */
const maxConfigsRead = 16;

interface Content {
  readonly kind: 'image' | 'artifact' | 'bundle';
  readonly platforms: readonly WrittenPlatform[];
}

/** Fetches documents by descriptor and verifies them by digest. */
export interface ContentReader {
  readonly where: string;
  manifest(descriptor: Descriptor): Promise<ManifestDocument>;
  config(descriptor: Descriptor): Promise<ImageConfig>;
}

/** @throws RegistryError `not-an-image` without a platform, `too-large` for children or levels */
export async function contentOf(
  document: ManifestDocument,
  digest: string,
  reader: ContentReader,
): Promise<Content> {
  if (document.kind === 'schema1') {
    return { kind: 'image', platforms: [{ os: 'linux', architecture: document.architecture }] };
  }
  if (document.kind === 'manifest') return contentOfSingle(document, reader, 'alone');

  const found: Found = { platforms: [], nameless: [], artifacts: 0, children: 0, nested: 0 };
  await walk(document, found, { reader, visited: new Set([digest]) }, 1);
  if (found.platforms.length > 0) return { kind: 'image', platforms: found.platforms };
  const platforms: WrittenPlatform[] = [];
  for (const child of found.nameless.slice(0, maxConfigsRead)) {
    const single = await reader.manifest(child);
    if (single.kind !== 'manifest') continue;
    const content = await contentOfSingle(single, reader, 'listed');
    if (content.kind === 'artifact') found.artifacts += 1;
    platforms.push(...content.platforms.map((platform) => ({ ...platform, unnamed: true as const })));
  }
  const named = platforms.filter((platform) => !isUnknown(platform));
  if (named.length > 0) return { kind: 'image', platforms: named };
  if (found.artifacts > 0 || document.artifactType !== undefined) return { kind: 'artifact', platforms: [] };
  throw refusal('not-an-image', reader, 'the index lists no platform');
}

async function contentOfSingle(
  document: ManifestDocument & { kind: 'manifest' },
  reader: ContentReader,
  place: 'alone' | 'listed',
): Promise<Content> {
  if (!document.imageConfig) return { kind: 'artifact', platforms: [] };
  const { platform, isBundle } = await reader.config(document.config);
  // From an index, a node takes only its own platform, even of a bundle.
  if (isBundle && place === 'alone') return { kind: 'bundle', platforms: [] };
  if (platform) return { kind: 'image', platforms: [platform] };
  if (document.claimsArtifact) return { kind: 'artifact', platforms: [] };
  throw refusal('not-an-image', reader, 'the image config names no architecture');
}

function refusal(code: RegistryErrorCode, { where }: ContentReader, problem: string): RegistryError {
  return new RegistryError(code, where, `${where}: ${problem}`);
}

interface Found {
  readonly platforms: WrittenPlatform[];
  /** Children without a platform that may be images. */
  readonly nameless: Descriptor[];
  artifacts: number;
  children: number;
  nested: number;
}

interface Around {
  readonly reader: ContentReader;
  readonly visited: Set<string>;
  /** The platform that the index above names for this one. */
  readonly within?: WrittenPlatform | undefined;
}

async function walk(
  index: ManifestDocument & { kind: 'index' },
  found: Found,
  around: Around,
  depth: number,
): Promise<void> {
  const { reader, visited, within } = around;
  found.children += index.children.length;
  if (found.children > maxChildren) {
    throw refusal('too-large', reader, `more than ${maxChildren} manifests`);
  }
  const counting = index.children.filter((child) => !isArtifact(child));
  found.artifacts += index.children.length - counting.length;
  const isNamed = counting.some(({ platform }) => platform && !isUnknown(platform));
  for (const child of counting) {
    if (documentKind(child.mediaType) === 'index') {
      // containerd pulls an entry without a platform only if there is no named one, and then only the first.
      if (isNamed ? !child.platform : child !== counting[0]) continue;
      if (visited.has(child.digest)) continue;
      visited.add(child.digest);
      if (depth === maxIndexDepth) {
        throw refusal('too-large', reader, `indexes nested deeper than ${maxIndexDepth}`);
      }
      found.nested += 1;
      if (found.nested > maxNestedIndexes) {
        throw refusal('too-large', reader, `more than ${maxNestedIndexes} nested indexes`);
      }
      const nested = await reader.manifest(child);
      if (nested.kind === 'index')
        await walk(nested, found, { ...around, within: child.platform ?? within }, depth + 1);
    } else if (!child.attestation && !(child.platform && isUnknown(child.platform))) {
      if (child.platform && !isWithin(child.platform, within)) continue;
      if (child.platform) found.platforms.push(child.platform);
      else found.nameless.push(child);
    }
  }
}

function isArtifact({ mediaType, artifactType }: Descriptor): boolean {
  return documentKind(mediaType) !== 'index' && artifactType !== undefined && !isImageConfig(artifactType);
}

/** A node does not read a nested index that has another platform. */
function isWithin(platform: WrittenPlatform, within: WrittenPlatform | undefined): boolean {
  if (within === undefined) return true;
  const [inner, outer] = [normalizePlatform(platform), normalizePlatform(within)];
  return inner.os === outer.os && inner.architecture === outer.architecture;
}

/** Attestations have the platform `unknown/unknown`. */
function isUnknown({ os, architecture }: WrittenPlatform): boolean {
  return os === 'unknown' || architecture === 'unknown';
}

/** Real configs are a few KiB (with long histories a few hundred); one is in memory for each lookup. */
export const maxConfigBytes = 1024 * 1024;

/** The part of a config that counts here. */
interface ImageConfig {
  /** Absent if the document names no architecture: then it is not an image config. */
  readonly platform?: WrittenPlatform;
  readonly isBundle: boolean;
}

/** Labels of bundles, often incomplete (operator-registry docs/design/operator-bundle.md). */
const bundleLabel = 'operators.operatorframework.io.bundle.';

/**
 * The config blob of a single manifest names its platform, and shows whether it is a bundle of the Operator
 * Lifecycle Manager. A bundle holds manifests and no program. It is built for one architecture, but a Job
 * with a program from another image unpacks it on any node. Bound to the bundle's architecture, that Job
 * would wait forever in a cluster without such nodes.
 * @throws InvalidDocument if it is not a JSON object
 */
export function readConfig(bytes: Uint8Array): ImageConfig {
  const document = parseObject(bytes);
  const platform = readPlatform(document);
  return { ...(platform && { platform }), isBundle: isBundle(document['config']) };
}

/** A bundle has the labels and nothing to run: a label alone must not send a program to any node. */
function isBundle(value: unknown): boolean {
  const config = asObject(value);
  const labels = asObject(config?.['Labels']);
  if (config === undefined || labels === undefined) return false;
  if (!Object.keys(labels).some((label) => label.startsWith(bundleLabel))) return false;
  return !runsSomething(config['Entrypoint']) && !runsSomething(config['Cmd']);
}

function runsSomething(command: unknown): boolean {
  if (command === undefined || command === null || asText(command) === '') return false;
  return !Array.isArray(command) || command.length > 0;
}
