/** The config blob of a single manifest: the only place that says which platform it is for. */
import { parseObject } from './json.ts';
import { readPlatform } from './manifest.ts';
import type { WrittenPlatform } from './question.ts';

/** Real configs are a few KiB (long histories some hundred); one is held in memory per question. */
export const maxConfigBytes = 1024 * 1024;

/**
 * Reads the platform out of an image config.
 * @param bytes the blob, already counted and verified
 * @returns undefined where the document is no image config: it names no architecture
 * @throws InvalidDocument where it is no JSON object
 */
export function readConfigPlatform(bytes: Uint8Array): WrittenPlatform | undefined {
  return readPlatform(parseObject(bytes));
}
