/**
 * The guard for realms. A registry chooses the URL of its token server, and credentials are sent there. The
 * rule:
 *
 * - https, or http if the registry itself was requested by http; no user info.
 * - The host may be any host: the registry itself, or one of another domain. containerd has no rule here;
 *   go-containerregistry (`pkg/v1/remote/transport/bearer.go`) also requires the registry's last two labels.
 *   So a registry decides which host receives the credential that it would receive itself. A realm holds only
 *   for the repository that named it (`authenticator.ts`).
 * - The address may not be nearer than the registry's own (`isForbiddenAddress`): never metadata, link-local
 *   or unspecified, loopback only from loopback, private only from private or loopback. Literals are checked
 *   here as Node will dial them, so that `https://2130706433/` counts as 127.0.0.1. Names are checked after
 *   resolution (`reach.ts`). A proxy resolves names itself: behind it only literals and the names below are
 *   checked.
 */
import { InvalidChallenge } from './challenge.ts';
import { addressKind, bareHost, isForbiddenAddress, portOf } from '../../http/reach/address.ts';

/** Names that lead to this machine, or to a cloud's metadata service, without an IP literal. */
const loopbackNames = /^(?:.*\.)?localhost\.?$/;
const metadataNames = /^(?:metadata|metadata\.google\.internal|instance-data(?:\.ec2\.internal)?)\.?$/;

/**
 * @param registry URL of the request; http only by configuration
 * @param registryIp unknown behind a proxy, and then it counts as public
 * @returns the URL of the realm @throws InvalidChallenge; its message holds at most the host
 */
export function validateRealm(realm: string | undefined, registry: URL, registryIp?: string): URL {
  if (realm === undefined) throw new InvalidChallenge('the Bearer challenge names no realm');
  const url = URL.parse(realm);
  if (!url) throw new InvalidChallenge('the realm is not an absolute URL');
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new InvalidChallenge('the realm is neither https nor http');
  if (url.protocol === 'http:' && registry.protocol === 'https:')
    throw new InvalidChallenge('the realm is http, but the registry uses https');
  if (url.username !== '' || url.password !== '') {
    throw new InvalidChallenge('the realm holds a user name or password');
  }
  const host = bareHost(url);
  if (host === bareHost(registry) && portOf(url) === portOf(registry)) return url;

  const kind = addressKind(host);
  if (kind !== undefined && isForbiddenAddress(host, registryIp)) {
    throw new InvalidChallenge(`the realm's host ${host} is a ${kind} address and not the registry itself`);
  }
  const registryIsHere = registryIp !== undefined && addressKind(registryIp) === 'loopback';
  if (metadataNames.test(host) || (loopbackNames.test(host) && !registryIsHere)) {
    throw new InvalidChallenge(`the realm's host ${host} names this machine or a metadata service`);
  }
  return url;
}
