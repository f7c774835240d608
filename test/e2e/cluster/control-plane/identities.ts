/** Identities of a cluster: its authority, certificates of its components, and kubeconfigs for clients. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createCa, type IssueOptions } from '../../../support/certificates.ts';
import { kubeconfigOf } from '../../../support/kubeconfig.ts';

export type Identities = Awaited<ReturnType<typeof createIdentities>>;

export async function createIdentities(directory: string) {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const write = async (name: string, text: string | Uint8Array): Promise<string> => {
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
    accountKey: await write('sa.key', accounts.privateKey.export({ type: 'pkcs1', format: 'pem' })),
    accountPublicKey: await write('sa.pub', accounts.publicKey.export({ type: 'spki', format: 'pem' })),
    issue: async (name: string, options: IssueOptions) => {
      const pair = await ca.issue(options);
      return { cert: await write(`${name}.crt`, pair.cert), key: await write(`${name}.key`, pair.key) };
    },
    /** Writes a kubeconfig for a user, and returns its path. @param server `https://…` */
    kubeconfig: async ({ cn, group }: { readonly cn: string; readonly group?: string }, server: string) => {
      const organizations = group === undefined ? [] : [group];
      const pair = await ca.issue({ cn, client: true, organizations });
      const base64 = (text: string): string => Buffer.from(text).toString('base64');
      const cluster = { server, 'certificate-authority-data': base64(ca.cert) };
      const user = { 'client-certificate-data': base64(pair.cert), 'client-key-data': base64(pair.key) };
      kubeconfigs += 1;
      return write(`${cn.replaceAll(':', '-')}-${kubeconfigs}.kubeconfig`, kubeconfigOf(cluster, user));
    },
  };
}
