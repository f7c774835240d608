/**
 * A certificate that only this process has, for a server whose clients do not verify it: the API server's proxy verifies no certificate
 * of pods and Services (kubernetes pkg/controlplane/apiserver, `proxyTLSClientConfig`). TLS keeps tokens from those who only listen.
 */
import type { Clock } from '../../async/clock.ts';
import { issueAuthority, issueLeaf } from '../certificates/issue.ts';
import type { ServerPair } from '../../serving/server.ts';

/** Longer than any process runs. */
const validMs = 10 * 365 * 86_400_000;

export async function ephemeralPair(clock: Pick<Clock, 'now'>): Promise<ServerPair> {
  const validity = { from: clock.now() - 86_400_000, to: clock.now() + validMs };
  const authority = await issueAuthority(validity);
  const name = 'archwright-controller';
  const { certificate, key } = await issueLeaf(
    authority,
    { commonName: name, names: [name], usage: 'server' },
    validity,
  );
  return { cert: certificate.pem, key };
}
