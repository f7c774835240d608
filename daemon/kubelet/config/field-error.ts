/** Messages of Kubernetes' field validation (apimachinery pkg/util/validation/field/errors.go). */
import { goQuote } from '../../go/print.ts';

export function required(path: string, detail = ''): string {
  return withDetail(`${path}: Required value`, detail);
}

export function invalid(path: string, value: unknown, detail: string): string {
  return withDetail(
    `${path}: Invalid value: ${typeof value === 'string' ? goQuote(value) : JSON.stringify(value)}`,
    detail,
  );
}

export function duplicate(path: string, value: string): string {
  return `${path}: Duplicate value: ${goQuote(value)}`;
}

export function forbidden(path: string, detail: string): string {
  return `${path}: Forbidden: ${detail}`;
}

export function notSupported(path: string, value: string, supported: readonly string[]): string {
  return `${path}: Unsupported value: ${goQuote(value)}: supported values: ${supported.map(goQuote).join(', ')}`;
}

/** Several messages as one, without repetitions; `undefined` for none. */
export function aggregate(messages: readonly string[]): string | undefined {
  const distinct = [...new Set(messages)];
  return distinct.length > 1 ? `[${distinct.join(', ')}]` : distinct[0];
}

function withDetail(text: string, detail: string): string {
  return detail === '' ? text : `${text}: ${detail}`;
}
