/**
 * One request to a plugin: checks its program, runs it, and decodes the response (kubernetes
 * pkg/credentialprovider/plugin/plugin.go `ExecPlugin`, `decodeResponse`;
 * staging/src/k8s.io/kubelet/pkg/apis/credentialprovider/v1/types.go).
 */
import * as v from 'valibot';
import { systemClock } from '../../../src/async/clock.ts';
import type { FairSemaphores } from '../../../src/async/fair-semaphore.ts';
import type { Credential } from '../../../src/credentials/credential.ts';
import { reveal, secret } from '../../../src/telemetry/secret.ts';
import {
  duration,
  execApiVersions,
  tokenApiVersion,
  type ProviderConfig,
} from '../config/provider-config.ts';
import {
  DecodeError,
  object,
  parseJsonValue,
  readStrict,
  refuseDuplicates,
  struct,
  text,
} from '../config/strict.ts';
import type { Grant } from '../provider/service-account.ts';
import { checkBinary, type PluginPath } from './binary.ts';
import type { Environment } from './environment.ts';
import { PluginError, type PluginErrorCode, type PluginMeter } from './plugin-error.ts';
import { hostCommand, runProgram } from './run.ts';

/**
 * Runs the plugin once.
 * @param signal aborts when no caller waits any more; a plugin that already runs is not stopped
 * @param namespace of the pod: namespaces take turns
 * @throws PluginError
 */
export type Execute = (
  request: ProviderRequest,
  signal: AbortSignal,
  namespace?: string,
) => Promise<ProviderResponse>;

export interface ExecuteOptions extends PluginPath {
  /** The variables; called before each run. */
  readonly environment: () => Promise<Environment>;
  readonly places: FairSemaphores;
  readonly meter?: PluginMeter | undefined;
  readonly stop: AbortSignal;
}

export function createExecute(config: ProviderConfig, options: ExecuteOptions): Execute {
  const { name: plugin, apiVersion, args } = config;
  const { hostRoot, meter, places, stop } = options;
  return async (request, abandoned, namespace = '') => {
    const leave = await places
      .get(plugin)
      .enter(namespace, AbortSignal.any([stop, abandoned]))
      .catch(() => {
        throw new PluginError('stopped', 'no caller waits for the answer any more');
      });
    let startedAt: number | undefined;
    let code: PluginErrorCode | undefined;
    try {
      // Before each run, because the program may have been replaced.
      const path = await checkBinary(plugin, options);
      const env = await options.environment();
      startedAt = systemClock.monotonic();
      const command = hostCommand(hostRoot, path, args);
      const stdin = encodeRequest(apiVersion, request);
      const stdout = await runProgram({ command, env, stdin }, stop);
      return decodeResponse(stdout.toString('utf8'), apiVersion);
    } catch (error) {
      code = error instanceof PluginError ? error.code : 'failed';
      if (!(error instanceof PluginError) || code === 'bad-response') throw error;
      const message = `error execing credential provider plugin ${plugin} for image ${request.image}: ${error.message}`;
      throw new PluginError(code, message);
    } finally {
      meter?.(code, startedAt === undefined ? undefined : systemClock.monotonic() - startedAt);
      leave();
    }
  };
}

export interface ProviderRequest extends Partial<Pick<Grant, 'token' | 'annotations'>> {
  /** Normalised: `domain/path` without tag and digest. */
  readonly image: string;
}

/**
 * The line of JSON for the standard input of a plugin, with the token in clear text.
 * @param apiVersion of the configuration; versions before v1 have no tokens
 */
export function encodeRequest(
  apiVersion: string,
  { image, token, annotations = {} }: ProviderRequest,
): string {
  const serviceAccountToken = token && reveal(token);
  const hasAnnotations = Object.keys(annotations).length > 0;
  const request = {
    kind: 'CredentialProviderRequest',
    apiVersion,
    image,
    ...(apiVersion === tokenApiVersion && {
      ...(serviceAccountToken && { serviceAccountToken }),
      ...(hasAnnotations && { serviceAccountAnnotations: annotations }),
    }),
  };
  return `${JSON.stringify(request)}\n`;
}

export interface ProviderResponse {
  /** `Image`, `Registry` or `Global` if valid. */
  readonly cacheKeyType: string;
  /** Milliseconds; may be negative. Default: the configured duration. */
  readonly cacheDurationMs?: number | undefined;
  /** Logins by key; keys are matched against the image again. */
  readonly auth: ReadonlyMap<string, Credential>;
}

/** The kubelet first reads these two names in any case, and then decodes strictly. */
const typed = v.pipe(
  object,
  v.transform((all) =>
    Object.fromEntries(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value])),
  ),
  v.object({ kind: text, apiversion: text }),
);

const response = v.pipe(
  struct({
    kind: text,
    apiVersion: text,
    cacheKeyType: text,
    cacheDuration: duration,
    auth: v.optional(
      v.pipe(object, v.record(v.string(), v.optional(struct({ username: text, password: text }), {}))),
      {},
    ),
  }),
  v.transform(({ cacheKeyType, cacheDuration: cacheDurationMs, auth }): ProviderResponse => {
    const entries = Object.entries(auth).map(
      ([key, { username, password }]) => [key, { username, password: secret(password) }] as const,
    );
    return { cacheKeyType, cacheDurationMs, auth: new Map(entries) };
  }),
);

/**
 * Decodes strictly, in the kubelet's order: names in their exact case, no duplicates. Messages omit decoding
 * errors, which could quote a password.
 * @param apiVersion of the configuration
 * @throws PluginError `bad-response` in the kubelet's words
 */
export function decodeResponse(stdout: string, apiVersion: string): ProviderResponse {
  const bad = (message: string): PluginError => new PluginError('bad-response', message);
  let value: unknown;
  let found: v.InferOutput<typeof typed>;
  try {
    value = parseJsonValue(stdout) ?? {};
    found = readStrict(typed, value);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw bad(
      `error reading GVK from response: couldn't get version/kind; json parse error: ${error.message}`,
    );
  }
  const { kind, apiversion: actual } = found;
  if (actual !== apiVersion) {
    const printable = actual.replaceAll(/[^ -~]/g, '?').slice(0, 100);
    throw bad(
      `apiVersion from credential plugin response did not match expected apiVersion:${apiVersion}, ` +
        `actual apiVersion:${printable}`,
    );
  }
  try {
    if (kind === 'CredentialProviderResponse' && execApiVersions.includes(actual)) {
      refuseDuplicates(stdout);
      return readStrict(response, value);
    }
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
  }
  throw bad('error decoding credential provider plugin response from stdout');
}
