/**
 * The error in an entry of `matchImages`, in the words of Go's net/url, which the kubelet quotes. `splitHostPath` decides whether there
 * is one; this file finds the message.
 */
import { splitHostPath } from '../../../src/credentials/keyring/key.ts';
import { goQuote } from '../../go.ts';

/** @returns `undefined` for a valid pattern */
export function matchImageProblem(text: string): string | undefined {
  if (splitHostPath(text) !== undefined) return undefined;
  const url = `https://${text}`;
  const [beforeFragment = ''] = url.split('#', 1);
  const early = urlProblem(text.split('#', 1)[0] ?? '');
  if (early !== undefined) return `parse ${goQuote(beforeFragment)}: ${early}`;
  return `parse ${goQuote(url)}: ${escapeProblem(text.slice(text.indexOf('#') + 1)) ?? 'invalid URL'}`;
}

/** @param text without scheme and fragment */
function urlProblem(text: string): string | undefined {
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(text)) return 'net/url: invalid control character in URL';
  const [address = ''] = text.split('?', 1);
  const slash = address.includes('/') ? address.indexOf('/') : address.length;
  const authority = address.slice(0, slash);
  const at = authority.lastIndexOf('@');
  return (
    hostProblem(authority.slice(at + 1)) ??
    (at < 0 ? undefined : userProblem(authority.slice(0, at))) ??
    escapeProblem(address.slice(slash))
  );
}

function hostProblem(host: string): string | undefined {
  if (host.includes('[')) {
    const end = host.lastIndexOf(']');
    if (end < 0) return "missing ']' in host";
    return (
      portProblem(host.slice(end + 1)) ??
      (splitHostPath(host) === undefined ? 'invalid IP-literal' : undefined)
    );
  }
  const colon = host.lastIndexOf(':');
  if (colon >= 0) {
    const problem = portProblem(host.slice(colon));
    if (problem !== undefined) return problem;
  }
  return escapeProblem(host, /^%(?:25|[89A-Fa-f][0-9A-Fa-f])/) ?? characterProblem(host);
}

function portProblem(port: string): string | undefined {
  return /^(?::[0-9]*)?$/.test(port) ? undefined : `invalid port ${goQuote(port)} after host`;
}

function userProblem(user: string): string | undefined {
  return /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user) ? escapeProblem(user) : 'net/url: invalid userinfo';
}

function characterProblem(host: string): string | undefined {
  const found = /[^A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%\u0080-\uffff]/.exec(host);
  return found === null ? undefined : `invalid character ${goQuote(found[0])} in host name`;
}

/** The first escape that is invalid or not allowed here. */
function escapeProblem(text: string, allowed = /^%[0-9A-Fa-f]{2}/): string | undefined {
  for (let at = text.indexOf('%'); at >= 0; at = text.indexOf('%', at + 1)) {
    const escape = text.slice(at, at + 3);
    if (!allowed.test(escape)) return `invalid URL escape ${goQuote(escape)}`;
  }
  return undefined;
}
