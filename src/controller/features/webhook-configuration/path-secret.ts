/**
 * The unguessable part of the webhook's path (`admission-paths.ts` says why), and its rotation:
 *
 * 1. A new token is written into the Secret. The old one stays as the previous token.
 * 2. Once every endpoint answers at the new path, the webhook configuration gets it (`decide.ts`).
 * 3. The previous token is accepted until the next rotation, which begins only after 2.
 */
import { randomBytes } from 'node:crypto';
import { pathSecretKeys } from '../../../names/keys.ts';
import { secret } from '../../../telemetry/secret.ts';
import type { SecretTexts } from '../../../certificates/authorities.ts';
import { readSecret, writeSecret } from '../../write/own-data.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { pathOf } from './endpoints.ts';
import type { ClientConfig, Webhook } from '../../state/webhooks-file.ts';

const { current, previous, rotated, recordKey } = pathSecretKeys;

const tokenBytes = 32;
/** Service paths take only lower-case RFC 1123 names (apiserver util/webhook `ValidateWebhookService`). */
const tokenShape = /^[0-9a-f]{64}$/;

/** @param rotationMs age at which the path is replaced; the previous one works until the next rotation */
export function createPathSecret(leader: LeaderContext, name: string, rotationMs: number) {
  const { serverNow, log } = leader;
  /**
   * Creates, repairs or rotates the Secret.
   * @param actual the webhooks of the API server
   * @returns the current token, and when to look again, milliseconds from now
   * @throws KubeError `conflict` if another writer was faster
   */
  return async (actual: readonly Webhook[]): Promise<{ readonly token: string; readonly nextMs: number }> => {
    const now = serverNow();
    const found = await readSecret(leader, name);
    const texts = found?.texts ?? {};
    const inForce = actual.map(({ clientConfig }) => tokenIn(clientConfig));
    const token = tokenOf(texts[current]);
    const ageMs = now - Date.parse(texts[rotated] ?? '');
    const isInForce = actual.length > 0 && inForce.every((each) => each === token);
    if (token !== undefined && tokenOf(texts[recordKey]) !== undefined && !Number.isNaN(ageMs)) {
      if (Math.abs(ageMs) < rotationMs) return { token, nextMs: rotationMs - ageMs };
      // The old path would no longer be accepted.
      if (!isInForce) return { token, nextMs: Infinity };
    }
    const fresh = newToken();
    const next: SecretTexts = {
      [current]: fresh,
      // Even if the Secret was lost, the API server still uses the token in force.
      [previous]: inForce.find((each) => each !== undefined) ?? token ?? '',
      [rotated]: new Date(now).toISOString(),
      [recordKey]: tokenOf(texts[recordKey]) ?? newToken(),
    };
    await writeSecret(leader, { name, type: 'Opaque' }, found?.resourceVersion, next);
    log.info({ reason: token === undefined ? 'missing' : 'age' }, 'the webhook gets a new path');
    return { token: fresh, nextMs: rotationMs };
  };
}

/** A webhook of the file at the path with the token. */
export function withToken(webhook: Webhook, token: string): Webhook {
  const { clientConfig } = webhook;
  return {
    ...webhook,
    clientConfig: withPath(clientConfig, `${pathOf(clientConfig).replace(/\/$/, '')}/${token}`),
  };
}

export function withPath(config: ClientConfig, path: string): ClientConfig {
  if (config.service) return { ...config, service: { ...config.service, path } };
  return { ...config, url: new URL(path, config.url).href };
}

function tokenIn(config: ClientConfig): string | undefined {
  return tokenOf(pathOf(config).split('/').at(-1));
}

/** @returns `undefined`: it is no token. The log never shows one. */
function tokenOf(text: string | undefined): string | undefined {
  if (text === undefined || !tokenShape.test(text)) return undefined;
  secret(text);
  return text;
}

function newToken(): string {
  const token = randomBytes(tokenBytes).toString('hex');
  secret(token);
  return token;
}
