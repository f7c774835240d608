/** Identities of a cluster: its authority, certificates of its components, and kubeconfigs for clients. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createCa, type IssueOptions, type TestCa } from '../../support/certificates.ts';

export interface Identities {
  readonly ca: TestCa;
  readonly caFile: string;
  readonly caKeyFile: string;
  /** Files that prove service accounts. */
  readonly accountKey: string;
  readonly accountPublicKey: string;
  /** Writes `<name>.crt` and `<name>.key`. */
  issue(name: string, options: IssueOptions): Promise<{ readonly cert: string; readonly key: string }>;
  /**
   * Writes a kubeconfig for a user.
   * @param server `https://…`
   * @returns its path
   */
  kubeconfig(user: { readonly cn: string; readonly group?: string }, server: string): Promise<string>;
}

export async function createIdentities(directory: string): Promise<Identities> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const write = async (name: string, text: string): Promise<string> => {
    const path = join(directory, name);
    await writeFile(path, text, { mode: 0o600 });
    return path;
  };
  const ca = await createCa('cluster');
  // The API server signs service account tokens by RSA or ECDSA; controllers take RSA only.
  const accounts = generateKeyPairSync('rsa', { modulusLength: 2048 });
  let kubeconfigs = 0;

  return {
    ca,
    caFile: await write('ca.crt', ca.cert),
    caKeyFile: await write('ca.key', ca.key),
    accountKey: await write(
      'sa.key',
      accounts.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    ),
    accountPublicKey: await write(
      'sa.pub',
      accounts.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    ),
    issue: async (name, options) => {
      const pair = await ca.issue(options);
      return { cert: await write(`${name}.crt`, pair.cert), key: await write(`${name}.key`, pair.key) };
    },
    kubeconfig: async ({ cn, group }, server) => {
      const pair = await ca.issue({
        cn,
        client: true,
        ...(group !== undefined && { organizations: [group] }),
      });
      const base64 = (text: string): string => Buffer.from(text).toString('base64');
      kubeconfigs += 1;
      return write(
        `${cn.replaceAll(':', '-')}-${kubeconfigs}.kubeconfig`,
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Config',
          clusters: [{ name: 'e2e', cluster: { server, 'certificate-authority-data': base64(ca.cert) } }],
          users: [
            {
              name: cn,
              user: { 'client-certificate-data': base64(pair.cert), 'client-key-data': base64(pair.key) },
            },
          ],
          contexts: [{ name: 'e2e', context: { cluster: 'e2e', user: cn } }],
          'current-context': 'e2e',
        }),
      );
    },
  };
}
