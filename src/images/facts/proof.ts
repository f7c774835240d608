/**
 * Proof of the facts of a digest. An agent sends the documents that they follow from: the manifest or index,
 * and its children and configs if needed. The receiver hashes them and derives the platforms itself, by the
 * code that the agent uses. So an agent on a compromised node cannot invent them.
 */
import { InvalidDocument } from '../../http/json.ts';
import { RegistryError, type ManifestResult } from '../../registry/manifest-lookup.ts';
import { digestOf, readManifest, type Descriptor } from '../../registry/manifests/manifest.ts';
import { contentOf, readConfig, type ContentReader } from '../../registry/manifests/platforms-of-index.ts';
import { platformsOf } from '../../names/platform.ts';
import type { Reference } from '../references/reference.ts';
import type { ImageFacts } from './facts.ts';
import { maxMediaTypeLength, maxPlatforms } from './wire.ts';

/** The part of facts that follows from the documents. */
export type ImageContent = Pick<ImageFacts, 'digest' | 'mediaType' | 'platforms' | 'error'>;

const notAnImage = {
  code: 'not-an-image',
  message:
    'this is an artifact without platforms (such as a chart, a model or only attestations), no container can run it',
} as const;

/** @param where registry host, for messages @throws RegistryError `too-large` for its platforms */
export function imageOfContent(
  content: Pick<ManifestResult, 'digest' | 'mediaType' | 'kind' | 'platforms'>,
  where: string,
): ImageContent {
  const platforms = content.kind === 'image' ? platformsOf(content.platforms) : [];
  if (platforms.length > maxPlatforms) {
    const message = `the image lists more than ${maxPlatforms} platforms`;
    throw new RegistryError('too-large', where, message);
  }
  return {
    digest: content.digest,
    mediaType: content.mediaType.slice(0, maxMediaTypeLength),
    platforms,
    ...(platforms.length === 0 && content.kind !== 'bundle' && { error: notAnImage }),
  };
}

/** Remembered facts of a digest need a proof. Failures other than `not-an-image` do not. */
export function needsProof(
  reference: Pick<Reference, 'digest'>,
  { error, digest }: Pick<ImageFacts, 'error' | 'digest'>,
): boolean {
  if (reference.digest === undefined) return false;
  return error === undefined || (error.code === 'not-an-image' && digest !== undefined);
}

/** Why documents prove nothing. */
export class NoProof extends Error {
  override readonly name = 'NoProof';
}

/** The facts in a digest's documents. @param claimed for the origin @throws NoProof for bad documents */
export async function proveFacts(digest: string, claimed: ImageFacts): Promise<ImageFacts> {
  const { documents = [], error: _error, mediaType: _mediaType, ...origin } = claimed;
  const bytes = documents.map((text) => Buffer.from(text, 'base64'));
  try {
    const reader = new Documents(bytes);
    const document = readManifest(reader.find(digest), undefined);
    const { mediaType } = document;
    const content = await contentOf(document, digest, reader);
    return { ...origin, ...imageOfContent({ digest, mediaType, ...content }, reader.where), stale: false };
  } catch (error) {
    if (error instanceof InvalidDocument || error instanceof RegistryError) throw new NoProof(error.message);
    throw error;
  }
}

class Documents implements ContentReader {
  readonly where = 'documents of the agent';
  readonly #documents: readonly Buffer[];
  readonly #byDigest = new Map<string, Buffer>();

  constructor(documents: readonly Buffer[]) {
    this.#documents = documents;
  }

  /** @throws NoProof */
  find(digest: string): Buffer {
    if (!this.#byDigest.has(digest))
      for (const bytes of this.#documents) this.#byDigest.set(digestOf(bytes, digest), bytes);
    const found = this.#byDigest.get(digest);
    if (!found) throw new NoProof(`no document has the digest ${digest.slice(0, 20)}…`);
    return found;
  }

  async manifest(descriptor: Descriptor) {
    return readManifest(this.#described(descriptor), descriptor.mediaType);
  }

  async config(descriptor: Descriptor) {
    return readConfig(this.#described(descriptor));
  }

  #described({ digest, size }: Descriptor): Buffer {
    const bytes = this.find(digest);
    if (bytes.length !== size) throw new NoProof('the size of a document differs from its descriptor');
    return bytes;
  }
}
