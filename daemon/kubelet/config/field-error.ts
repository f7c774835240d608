/** Verdicts in the words of Kubernetes' validation (apimachinery pkg/util/validation/field/errors.go). */

export function required(path: string, detail = ''): string {
  return withDetail(`${path}: Required value`, detail);
}

export function invalid(path: string, value: unknown, detail: string): string {
  return withDetail(
    `${path}: Invalid value: ${typeof value === 'string' ? quote(value) : JSON.stringify(value)}`,
    detail,
  );
}

export function duplicate(path: string, value: string): string {
  return `${path}: Duplicate value: ${quote(value)}`;
}

export function forbidden(path: string, detail: string): string {
  return `${path}: Forbidden: ${detail}`;
}

export function notSupported(path: string, value: string, supported: readonly string[]): string {
  return `${path}: Unsupported value: ${quote(value)}: supported values: ${supported.map(quote).join(', ')}`;
}

/** Several verdicts as one, each said once; `undefined` for none. */
export function aggregate(verdicts: readonly string[]): string | undefined {
  const distinct = [...new Set(verdicts)];
  return distinct.length > 1 ? `[${distinct.join(', ')}]` : distinct[0];
}

const short: Readonly<Record<string, string>> = {
  '\u0007': String.raw`\a`,
  '\b': String.raw`\b`,
  '\f': String.raw`\f`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
  '\t': String.raw`\t`,
  '\v': String.raw`\v`,
  '"': String.raw`\"`,
  '\\': String.raw`\\`,
};

/** Go's `strconv.Quote`. */
export function quote(text: string): string {
  const escaped = text.replaceAll(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (letter) => {
    const code = letter.codePointAt(0) ?? 0;
    if (code < 0x80) return short[letter] ?? `\\x${hex(code, 2)}`;
    return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
  });
  return `"${escaped}"`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}

function withDetail(text: string, detail: string): string {
  return detail === '' ? text : `${text}: ${detail}`;
}
