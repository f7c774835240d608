/** What an agent uses of its node besides credentials and endpoints: the host root, trust, proxies, the state directory, its own TLS files. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import type { SourcePart } from '../../src/files/source-part.ts';
import { fileError } from '../../src/files/error.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { describeProxies, type Environment } from '../../src/http/proxy.ts';
import { describeTrust } from '../../src/http/trust.ts';
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

/** Endpoints that only we know of. */
function describeOwnEndpoints({ proxies, insecureRegistries }: Configuration): SourcePart[] {
  const parts = [
    ...proxies.map(({ registry, endpoint }): SourcePart => ({
      where: 'proxies',
      state: 'used',
      what: `${registry} is asked at ${withoutLogin(endpoint)} first`,
      differs: ['containerd pulls from where its own configuration says'],
    })),
    ...insecureRegistries.map((registry): SourcePart => ({
      where: 'insecureRegistries',
      state: 'used',
      what: `${registry} needs no trusted certificate`,
      differs: ['containerd wants one, if its own configuration does not say otherwise'],
    })),
  ];
  if (parts.length > 0) return parts;
  return [{ where: 'proxies, insecureRegistries', state: 'absent', what: 'not set' }];
}

function withoutLogin(endpoint: string): string {
  return endpoint.replace(/^([a-z]+:\/\/)?[^/@]*@/i, '$1');
}

async function describeState(dir: string | undefined): Promise<SourcePart> {
  if (dir !== undefined) return describeDirectory(dir, constants.R_OK | constants.W_OK, 'what is known');
  return { where: 'stateDir', state: 'absent', what: 'not set, what is known does not survive a restart' };
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
