/**
 * The config blob of a single manifest names its platform, and shows whether it is a bundle of the Operator Lifecycle Manager. A
 * bundle holds manifests and no program. It is built for one architecture, but a Job with a program from another image unpacks
 * it on any node. Bound to the bundle's architecture, that Job would wait forever in a cluster without such nodes.
 */
import { asObject, asText, parseObject } from '../../http/json.ts';
import { readPlatform } from './manifest.ts';
import type { WrittenPlatform } from '../manifest-lookup.ts';

/** Real configs are a few KiB (long histories some hundred); one is in memory for each lookup. */
export const maxConfigBytes = 1024 * 1024;

/** The part of a config that counts here. */
export interface ImageConfig {
  /** Absent if the document names no architecture: then it is not an image config. */
  readonly platform?: WrittenPlatform;
  readonly isBundle: boolean;
}

/**
 * Prefix of a bundle's labels; some of them are often missing.
 * @see operator-framework/operator-registry docs/design/operator-bundle.md, "Bundle Annotations"
 */
const bundleLabel = 'operators.operatorframework.io.bundle.';

/**
 * Reads an image config.
 * @param bytes the blob, already counted and verified
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
