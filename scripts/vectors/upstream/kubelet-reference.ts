/** How the kubelet reads an image name, for its events and for the name sent to the runtime. */
import { InvalidReference, defaultTag, parseNormalized } from '../../../src/images/references/reference.ts';
import { formatReference } from './reference-forms.ts';

/** The result of ParseImageName; tag and digest are empty where absent. */
export interface KubeletImageName {
  /** Normalized repository: the kubelet's key for credentials. */
  readonly repository: string;
  readonly tag: string;
  readonly digest: string;
}

/**
 * kubernetes `pkg/util/parsers/parsers.go` ParseImageName: keeps both tag and digest; `latest` without
 * either.
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
 * kubernetes `pkg/kubelet/images/image_manager.go` applyDefaultImageTag: the text for the runtime. Appends
 * the tag to the written text and adds no domain. @throws InvalidReference
 */
export function applyDefaultTag(image: string): string {
  const { tag, digest } = parseImageName(image);
  return digest === '' && !image.endsWith(`:${tag}`) ? `${image}:${tag}` : image;
}
