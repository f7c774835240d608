/** What an agent uses of its node besides credentials: host root, endpoints, trust, proxies, state directory, TLS files. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import type { SourcePart } from '../../src/files/source-part.ts';
import { fileError } from '../../src/files/error.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { describeProxies, type Environment } from '../../src/http/proxy/proxy.ts';
import { describeTrust } from '../../src/http/tls/trust.ts';
import { ServingError } from '../../src/serving/error.ts';
import { loadTlsMaterial } from '../../src/serving/tls-files.ts';

/** A source with all of its parts. */
export interface CheckedSource {
  readonly source: string;
  readonly parts: readonly SourcePart[];
}

/** Describes each of them. */
export async function describeNode(
  configuration: Configuration,
  environment: Environment,
): Promise<readonly CheckedSource[]> {
  const { hostRoot, caFiles: extraFiles, stateDir, tlsDir } = configuration;
  return [
    { source: 'host-root', parts: [await describeDirectory(hostRoot, constants.R_OK, 'files of the node')] },
    { source: 'endpoints', parts: describeOwnEndpoints(configuration) },
    { source: 'trust', parts: await describeTrust({ environment, hostRoot, extraFiles }) },
    { source: 'proxies', parts: describeProxies(environment) },
    { source: 'state', parts: [await describeState(stateDir)] },
    { source: 'tls', parts: [await describeTls(tlsDir)] },
  ];
}

/** Endpoints of archwright's own settings. */
function describeOwnEndpoints({ proxies, insecureRegistries }: Configuration): SourcePart[] {
  const parts = [
    ...proxies.map(({ registry, endpoint }): SourcePart => ({
      where: 'proxies',
      state: 'used',
      what: `${registry}: ${withoutLogin(endpoint)} is tried first`,
      differs: ['containerd pulls from the endpoints of its own configuration'],
    })),
    ...insecureRegistries.map((registry): SourcePart => ({
      where: 'insecureRegistries',
      state: 'used',
      what: `${registry}: certificates are not verified`,
      differs: ['containerd verifies certificates, unless its own configuration says otherwise'],
    })),
  ];
  if (parts.length > 0) return parts;
  return [{ where: 'proxies, insecureRegistries', state: 'absent', what: 'not set' }];
}

function withoutLogin(endpoint: string): string {
  return endpoint.replace(/^([a-z]+:\/\/)?[^/@]*@/i, '$1');
}

async function describeState(dir: string | undefined): Promise<SourcePart> {
  if (dir !== undefined) return describeDirectory(dir, constants.R_OK | constants.W_OK, 'image facts');
  return { where: 'stateDir', state: 'absent', what: 'not set; image facts do not survive a restart' };
}

async function describeDirectory(where: string, mode: number, what: string): Promise<SourcePart> {
  try {
    if (!(await stat(where)).isDirectory()) return { where, state: 'left-out', what: 'is not a directory' };
    await access(where, mode | constants.X_OK);
    return { where, state: 'used', what };
  } catch (error) {
    return { where, state: 'left-out', what: fileError(where, error).message };
  }
}

async function describeTls(dir: string | undefined): Promise<SourcePart> {
  if (dir === undefined) {
    const what = 'not set; an agent does not start without tls.crt, tls.key and ca.crt';
    return { where: 'tlsDir', state: 'absent', what };
  }
  try {
    const { expires } = await loadTlsMaterial(dir, true);
    const until = new Date(expires).toISOString();
    if (expires < Date.now())
      return { where: dir, state: 'left-out', what: `the certificate expired at ${until}` };
    return { where: dir, state: 'used', what: `tls.crt, tls.key and ca.crt, valid until ${until}` };
  } catch (error) {
    if (error instanceof ServingError) return { where: dir, state: 'left-out', what: error.message };
    throw error;
  }
}
