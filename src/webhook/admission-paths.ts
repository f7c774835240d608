/**
 * Where the webhook takes reviews. A managed control plane cannot present a client certificate, so the
 * webhook recognizes the API server by a path that cannot be guessed: `/mutate/TOKEN` or `/validate/TOKEN`.
 * The controller writes the tokens into a Secret, and the path into the webhook configuration. During a
 * rotation the previous token is accepted too. Without such a Secret (a run by hand), the paths are `/mutate`
 * and `/validate`.
 *
 * The Secret also has the key of the records (`record-seal.ts`).
 */
import { timingSafeEqual } from 'node:crypto';
import { secretText, type Secret as KubeSecret } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { watchNamed, type NamedObject } from '../kube/watch/reflector.ts';
import { pathSecretKeys } from '../names/keys.ts';
import { secret, type Secret } from '../telemetry/secret.ts';

export type AdmissionRoute = 'mutate' | 'validate';

export interface AdmissionPaths {
  /** @param url as in the request line @returns `undefined`: a path of no review, or with a wrong token */
  readonly routeOf: (url: string) => AdmissionRoute | undefined;
  /** Why no path is accepted. */
  readonly problem: () => string | undefined;
  /** The key of the records; `undefined`: not known yet. Absent: records have no seal. */
  readonly recordKey?: () => Secret | undefined;
  readonly close: () => void;
}

/** A token has 64 characters (`path-secret.ts`). */
const shape = /^\/(mutate|validate)(?:\/([\w-]{1,128}))?(?:\?|$)/;

/** @param accepts a token; `undefined`: the path has none */
function routing(accepts: (token: string | undefined) => boolean): AdmissionPaths['routeOf'] {
  return (url) => {
    const [, route, token] = shape.exec(url) ?? [];
    return accepts(token) ? (route as AdmissionRoute | undefined) : undefined;
  };
}

/** The paths of a run by hand. */
export const plainPaths: AdmissionPaths = {
  routeOf: routing((token) => token === undefined),
  problem: () => undefined,
  close: () => undefined,
};

interface Content {
  readonly accepted: readonly Buffer[];
  readonly recordKey: Secret | undefined;
}

/** Follows the Secret. While it is gone or has no token, its last tokens stay in force. */
export function watchAdmissionPaths(options: NamedObject): AdmissionPaths {
  const { namespace, name, log } = options;
  let content: Content | undefined;
  const onChange = (): void => {
    const before = content;
    content = watch.get(namespace, name) ?? content;
    if (content !== before) log.info({ secret: name }, 'the path of the webhook was loaded');
  };
  const watch = watchNamed<Content>({
    ...options,
    path: paths.secrets(namespace),
    trim: contentOf,
    onChange,
  });
  return {
    routeOf: routing((token) => {
      const given = Buffer.from(token ?? '');
      return (
        content?.accepted.some((one) => one.length === given.length && timingSafeEqual(one, given)) ?? false
      );
    }),
    problem: () =>
      content ? undefined : 'the path of the webhook is not known yet; the controller writes its Secret',
    recordKey: () => content?.recordKey,
    close: () => watch.stop(),
  };
}

function contentOf(object: KubeSecret): Content | undefined {
  const text = (key: string): string => secretText(object, key);
  const { current, previous, recordKey } = pathSecretKeys;
  if (text(current) === '') return undefined;
  const tokens = [text(current), text(previous)].filter((token) => token !== '');
  // A wrapped secret never shows in the log.
  for (const token of tokens) secret(token);
  const key = text(recordKey);
  return { accepted: tokens.map((token) => Buffer.from(token)), recordKey: key ? secret(key) : undefined };
}
