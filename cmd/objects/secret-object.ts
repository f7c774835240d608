/** Secrets in files: what a person may write in a manifest that the API server would turn into the stored form. */
import type { Secret } from '../../src/kube/api/objects.ts';
import { isObject } from '../../src/webhook/validate-pod.ts';

/** True for an object that calls itself a Secret. */
export function isSecret(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && value['kind'] === 'Secret';
}

/**
 * A Secret as the API server would store it: `stringData` is written into `data` (kubernetes
 * pkg/registry/core/secret). Whatever is no text is left out.
 */
export function storedSecret(written: Readonly<Record<string, unknown>>): Secret {
  const { metadata, type, data, stringData } = written;
  const stored = texts(data);
  for (const [key, value] of Object.entries(texts(stringData))) {
    stored[key] = Buffer.from(value).toString('base64');
  }
  const { name, namespace } = texts(metadata);
  return {
    kind: 'Secret',
    metadata: { ...(name !== undefined && { name }), ...(namespace !== undefined && { namespace }) },
    ...(typeof type === 'string' && { type }),
    data: stored,
  };
}

function texts(value: unknown): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, entry]) => (typeof entry === 'string' ? [[key, entry]] : [])),
  );
}
