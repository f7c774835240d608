/**
 * Where the webhook takes reviews. A managed control plane cannot present a client certificate, so the
 * webhook recognizes the API server by a path that cannot be guessed: `/mutate/TOKEN` or `/validate/TOKEN`.
 * The controller writes the tokens into a Secret, and the path into the webhook configuration. During a
 * rotation the previous token is accepted too. Without such a Secret (a run by hand), the paths are `/mutate`
 * and `/validate`.
 *
 * The Secret is mounted as a directory, whose changes are read. It also has the key of the records
 * (`record-seal.ts`).
 */
import { timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { liveContent } from '../files/live.ts';
import { decodeUtf8, FileError, readBounded, undefinedIfMissing } from '../files/read.ts';
import { pathSecretKeys } from '../names/keys.ts';
import type { Log } from '../telemetry/log.ts';
import { secret, type Secret } from '../telemetry/secret.ts';

export type AdmissionRoute = 'mutate' | 'validate';

export interface AdmissionPaths {
  /** @param url as in the request line @returns `undefined`: a path of no review, or with a wrong token */
  readonly routeOf: (url: string) => AdmissionRoute | undefined;
  /** Why no path is accepted. */
  readonly problem: () => string | undefined;
  /** The key of the records; `undefined`: not known yet. Absent: records have no seal. */
  readonly recordKey?: () => Secret | undefined;
  readonly close: () => Promise<void>;
}

/** A token has 43 characters. */
const shape = /^\/(mutate|validate)(?:\/([\w-]{1,128}))?(?:\?|$)/;
const maxFileBytes = 128;

/** For a run by hand. */
export const plainPaths: AdmissionPaths = {
  routeOf: (url) => {
    const [, route, token] = shape.exec(url) ?? [];
    return token === undefined ? (route as AdmissionRoute | undefined) : undefined;
  },
  problem: () => undefined,
  close: () => Promise.resolve(),
};

/** @param dir with the keys of the Secret as files; may be missing or empty at the start */
export async function openAdmissionPaths(options: {
  readonly dir: string;
  readonly log: Log;
  readonly pollMs?: number | undefined;
}): Promise<AdmissionPaths> {
  const { dir, log, pollMs } = options;
  const live = await liveContent({
    dirs: [dir],
    read: () => readFiles(dir),
    fingerprint: ({ fingerprint }) => fingerprint,
    onChange: () => log.info({ dir }, 'the path of the webhook was loaded again'),
    onProblem: (error) => {
      const problem = error.message;
      // A pod starts before its Secret is there.
      if (error instanceof FileError && error.code === 'missing')
        log.info({ problem }, 'the path of the webhook is not there yet; the controller writes it');
      else log.error({ problem }, 'the path of the webhook cannot be read; the controller writes it');
    },
    pollMs,
    log,
  });
  return {
    routeOf: (url) => {
      const [, route, token] = shape.exec(url) ?? [];
      if (token === undefined) return undefined;
      const given = Buffer.from(token);
      const isKnown = live.current()?.accepted.some((one) => isEqual(one, given)) ?? false;
      return isKnown ? (route as AdmissionRoute) : undefined;
    },
    problem: () => (live.current() === undefined ? 'the path of the webhook is not known yet' : undefined),
    recordKey: () => live.current()?.recordKey,
    close: () => live.close(),
  };
}

async function readFiles(dir: string) {
  const read = async (name: string): Promise<string> =>
    decodeUtf8(await readBounded(join(dir, name), { maxBytes: maxFileBytes }), join(dir, name)).trim();
  const current = await read(pathSecretKeys.current);
  if (current === '') throw new Error(`${join(dir, pathSecretKeys.current)} is empty`);
  const previous = await read(pathSecretKeys.previous).catch(undefinedIfMissing);
  const recordKey = await read(pathSecretKeys.recordKey).catch(undefinedIfMissing);
  const tokens = [current, ...(previous ? [previous] : [])];
  // A wrapped secret never shows in the log.
  for (const token of tokens) secret(token);
  return {
    accepted: tokens.map((token) => Buffer.from(token)),
    recordKey: recordKey ? secret(recordKey) : undefined,
    fingerprint: [...tokens, recordKey ?? ''].join(' '),
  };
}

function isEqual(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
