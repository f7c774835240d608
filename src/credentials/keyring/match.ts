/**
 * Whether a pattern matches a repository: the kubelet's rules for docker config keys and for `matchImages`
 * (kubernetes pkg/credentialprovider/keyring.go `URLsMatch`). The ports are equal as written, the hosts have the same
 * number of labels and match label by label (`*` matches any text inside a label), and the pattern's path is a
 * plain prefix of the repository's. There are no default ports, and case matters.
 */
import { splitHostPath } from './key.ts';

export interface Pattern {
  readonly labels: readonly string[];
  readonly port: string;
  readonly path: string;
}

/**
 * @param text `host[:port][/path]` without a scheme, such as `*.dkr.ecr.*.amazonaws.com`
 * @returns `undefined` if it cannot be parsed; such a pattern matches nothing
 */
export function parsePattern(text: string): Pattern | undefined {
  const split = splitHostPath(text);
  if (split === undefined) return undefined;
  const { host, port } = splitPort(split.host);
  return { labels: host.split('.'), port, path: split.path };
}

/** @param repository parsed by the same rules: `parsePattern('docker.io/library/nginx')` */
export function matches(pattern: Pattern, repository: Pattern): boolean {
  return (
    pattern.port === repository.port &&
    pattern.labels.length === repository.labels.length &&
    repository.path.startsWith(pattern.path) &&
    pattern.labels.every((label, index) => matchesLabel(label, repository.labels[index] ?? ''))
  );
}

/** As Go's net.SplitHostPort; if that fails, all of it is the host. */
function splitPort(text: string): { host: string; port: string } {
  const split = /^(?:\[([^[\]]*)\]|([^:[\]]*)):([^:]*)$/.exec(text);
  if (split === null) return { host: text, port: '' };
  return { host: split[1] ?? split[2] ?? '', port: split[3] ?? '' };
}

/** Linear in practice and never exponential: only the last star is ever tried again. */
function matchesLabel(pattern: string, label: string): boolean {
  // The kubelet's glob treats an IPv6 address in brackets as a character class, which never matches the address.
  if (pattern.includes('[')) return false;
  let at = 0;
  let star = -1;
  let retry = 0;
  for (let seen = 0; seen < label.length;) {
    if (pattern[at] === '*') {
      star = at;
      retry = seen;
      at += 1;
    } else if (pattern[at] === label[seen]) {
      at += 1;
      seen += 1;
    } else if (star >= 0) {
      at = star + 1;
      retry += 1;
      seen = retry;
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}
