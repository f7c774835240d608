/** JSON from servers that are not trusted. The reader limits its bytes; its depth is limited here, before it is parsed. */

/** Manifests, configs and token responses nest at most five deep; hostile ones nest a million deep. */
const maxDepth = 64;

/** A document that cannot be used. The message holds nothing of the document. */
export class InvalidDocument extends Error {
  readonly code = 'invalid-document';
  readonly temporary = false;
  override readonly name = 'InvalidDocument';
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** @throws InvalidDocument if the bytes are not UTF-8, not JSON, nested too deeply, or not an object */
export function parseObject(bytes: Uint8Array): JsonObject {
  if (depth(bytes) > maxDepth) throw new InvalidDocument(`it nests deeper than ${maxDepth}`);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new InvalidDocument('it is not JSON in UTF-8');
  }
  const object = asObject(value);
  if (!object) throw new InvalidDocument('it is not a JSON object');
  return object;
}

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;
}

/** Longer than any name that is compared. */
const maxTextLength = 256;

/** A text of limited length, or undefined. */
export function asText(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= maxTextLength ? value : undefined;
}

const [quote, backslash, openBrace, closeBrace, openBracket, closeBracket] = Buffer.from('"\\{}[]');

/** The deepest nesting, counted in the bytes outside of strings. */
function depth(bytes: Uint8Array): number {
  let deepest = 0;
  let level = 0;
  let inString = false;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (inString) {
      if (byte === backslash) index += 1;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if (byte === openBrace || byte === openBracket) deepest = Math.max(deepest, ++level);
    else if (byte === closeBrace || byte === closeBracket) level -= 1;
  }
  return deepest;
}
