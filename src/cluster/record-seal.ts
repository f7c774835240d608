/**
 * Seals of decision records (`arch.example/decision`). Anyone can write an annotation, and a record lists
 * what archwright may remove from the pod. So a record has an HMAC over itself and its object; without it,
 * the record removes nothing. Known limit: a record works again for an object of the same namespace, name and
 * owner.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { secretText, type KubeObject } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { watchNamed, type NamedObject } from '../kube/watch/reflector.ts';
import { pathSecretKeys } from '../names/keys.ts';
import type { RecordSeal } from '../placement/decision.ts';
import { reveal, secret, type Secret } from '../telemetry/secret.ts';

/** 128 bits cannot be guessed. */
const macBytes = 16;

/**
 * The seal of an object.
 * @param metadata of the pod, or of the object with the template. At admission the name from `generateName`
 *   is not known yet, so `generateName` replaces it.
 */
export type SealOf = (
  kind: 'Pod' | 'DaemonSet',
  namespace: string,
  metadata: KubeObject['metadata'],
) => RecordSeal;

/** @param keyNow the key in force. Without a key, no record has a valid seal */
export function sealsBy(keyNow: () => Secret | undefined): SealOf {
  return (kind, namespace, metadata = {}) => {
    const key = keyNow();
    if (!key) return { sign: () => '', verify: () => false };
    const { generateName, name, ownerReferences } = metadata;
    // The owner of a DaemonSet may change.
    const owner = kind === 'Pod' ? ownerReferences?.find(({ controller }) => controller) : undefined;
    const subject = JSON.stringify([kind, namespace, generateName || name, owner?.kind, owner?.uid]);
    const macOf = (text: string): string => {
      const mac = createHmac('sha256', reveal(key)).update(subject).update('\n').update(text).digest();
      return mac.toString('base64url', 0, macBytes);
    };
    return {
      sign: macOf,
      verify: (text, given) => {
        const [a, b] = [Buffer.from(macOf(text)), Buffer.from(given)];
        return a.length === b.length && timingSafeEqual(a, b);
      },
    };
  };
}

/** Follows the key in archwright's own Secret. */
export function watchRecordKey(options: NamedObject) {
  const { namespace, name } = options;
  const watch = watchNamed<Secret>({
    ...options,
    path: paths.secrets(namespace),
    trim: (object) => {
      const text = secretText(object, pathSecretKeys.recordKey);
      return text ? secret(text) : undefined;
    },
  });
  return { key: () => watch.get(namespace, name), close: () => watch.stop() };
}
