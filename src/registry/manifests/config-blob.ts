/**
 * The config blob of a single manifest: the only place that says which platform it is for, and whether it is a bundle of the
 * Operator Lifecycle Manager. A bundle holds manifests and no program. It is built for one architecture and unpacked on nodes
 * of any by a Job that brings the program from another image: bound to its own architecture, that Job would wait for ever where
 * no node has it.
 */
import { asObject, asText, parseObject } from '../../http/json.ts';
import { readPlatform } from './manifest.ts';
import type { WrittenPlatform } from '../lookup.ts';

/** Real configs are a few KiB (long histories some hundred); one is held in memory per question. */
export const maxConfigBytes = 1024 * 1024;

/** What a config says. */
export interface ImageConfig {
  /** Absent where the document is no image config: it names no architecture. */
  readonly platform?: WrittenPlatform;
  readonly isBundle: boolean;
}

/**
 * Labels of a bundle, of which some are often missing.
 * @see operator-framework/operator-registry docs/design/operator-bundle.md, "Bundle Annotations"
 */
const bundleLabel = 'operators.operatorframework.io.bundle.';

/**
 * Reads an image config.
 * @param bytes the blob, already counted and verified
 * @throws InvalidDocument where it is no JSON object
 */
export function readConfig(bytes: Uint8Array): ImageConfig {
  const document = parseObject(bytes);
  const platform = readPlatform(document);
  return { ...(platform && { platform }), isBundle: isBundle(document['config']) };
}

/** By its labels, and because it has nothing to run: a label alone must not send a program to any node. */
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
