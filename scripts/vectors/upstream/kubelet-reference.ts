/** What only the kubelet does with an image text, for comparing with its events and for the text that it sends to the runtime. */
import { InvalidReference, defaultTag, parseNormalized } from '../../../src/images/references/reference.ts';
import { formatReference } from './reference-forms.ts';

/** The answer of ParseImageName; tag and digest are empty where absent. */
export interface KubeletImageName {
  /** Normalized repository: what the kubelet looks credentials up with. */
  readonly repository: string;
  readonly tag: string;
  readonly digest: string;
}

/**
 * kubernetes `pkg/util/parsers/parsers.go` ParseImageName: tag and digest are both kept, `latest` is assumed where there
 * is neither.
 * @throws InvalidReference with the kubelet's wording around the cause
 */
export function parseImageName(image: string): KubeletImageName {
  try {
    const written = parseNormalized(image);
    const { domain, path, digest = '' } = written;
    const tag = written.tag ?? (digest === '' ? defaultTag : '');
    return { repository: formatReference({ domain, path }), tag, digest };
  } catch (error) {
    if (!(error instanceof InvalidReference)) throw error;
    throw new InvalidReference(`couldn't parse image name ${JSON.stringify(image)}: ${error.message}`);
  }
}

/**
 * kubernetes `pkg/kubelet/images/image_manager.go` applyDefaultImageTag: the text that the runtime gets. The tag is appended
 * to what was written; no domain is added.
 * @throws InvalidReference
 */
export function applyDefaultTag(image: string): string {
  const { tag, digest } = parseImageName(image);
  return digest === '' && !image.endsWith(`:${tag}`) ? `${image}:${tag}` : image;
}
