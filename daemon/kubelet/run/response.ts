/**
 * The response of a plugin, checked in the kubelet's order (kubernetes pkg/credentialprovider/plugin/plugin.go `ExecPlugin`,
 * `decodeResponse`) and strictly: names in their exact case, no duplicates. Messages omit decoding errors, which could quote a password.
 */
import type { Credential } from '../../../src/credentials/credential.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { duration } from '../config/decode-config.ts';
import { PluginError } from './plugin-error.ts';
import { execApiVersions } from '../config/provider-config.ts';
import { parseJsonTree } from '../config/tree-json.ts';
import { DecodeError, entries, fields, text, type Tree } from '../config/tree.ts';

export interface ProviderResponse {
  /** `Image`, `Registry` or `Global` if valid. */
  readonly cacheKeyType: string;
  /** Milliseconds; may be negative. Default: the configured duration. */
  readonly cacheDurationMs?: number | undefined;
  /** By key; keys are matched against the image again. */
  readonly auth: ReadonlyMap<string, Credential>;
}

/**
 * @param plugin name, for errors
 * @param apiVersion of the configuration
 * @throws PluginError `bad-response` in the kubelet's words
 */
export function decodeResponse(stdout: string, plugin: string, apiVersion: string): ProviderResponse {
  const bad = (message: string): PluginError => new PluginError('bad-response', plugin, message);
  let tree: Tree;
  let actual: string;
  let kind: string;
  try {
    tree = parseJsonTree(stdout);
    // The kubelet first reads these two names in any case, and then decodes strictly.
    const members = new Map([...entries(tree, '', [])].map(([name, value]) => [name.toLowerCase(), value]));
    actual = text(members.get('apiversion'), 'apiVersion');
    kind = text(members.get('kind'), 'kind');
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw bad(
      `error reading GVK from response: couldn't get version/kind; json parse error: ${error.message}`,
    );
  }
  if (actual !== apiVersion) {
    throw bad(
      `apiVersion from credential plugin response did not match expected apiVersion:${apiVersion}, ` +
        `actual apiVersion:${printable(actual)}`,
    );
  }
  try {
    if (kind !== 'CredentialProviderResponse' || !execApiVersions.some((known) => known === actual)) {
      throw new DecodeError('is not a response');
    }
    return decode(tree);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw bad('error decoding credential provider plugin response from stdout');
  }
}

function decode(tree: Tree): ProviderResponse {
  const strict: string[] = [];
  const root = fields(tree, '', ['kind', 'apiVersion', 'cacheKeyType', 'cacheDuration', 'auth'], strict);
  const auth = new Map<string, Credential>();
  for (const [key, entry] of entries(root.auth ?? null, 'auth', strict)) {
    const { username, password } = fields(entry, 'auth', ['username', 'password'], strict);
    auth.set(key, { username: text(username, 'username'), password: secret(text(password, 'password')) });
  }
  if (strict.length > 0) throw new DecodeError('has unknown or duplicate fields');
  return {
    cacheKeyType: text(root.cacheKeyType, 'cacheKeyType'),
    cacheDurationMs: duration(root.cacheDuration, 'cacheDuration'),
    auth,
  };
}

/** A text of the plugin for a message. */
function printable(text: string): string {
  return text.replaceAll(/[^ -~]/g, '?').slice(0, 100);
}
