/** Values of unknown shape: records, own properties, and one order of texts. */

/** An own property: valid names such as `constructor` must not find what objects inherit. */
export function own<Value>(
  record: Readonly<Record<string, Value>> | null | undefined,
  key: string,
): Value | undefined {
  return record !== null && record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Code unit order: the same everywhere, whatever the locale. */
export function byName(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Order of Go's strings: by the bytes of their UTF-8. */
export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
