/** Service accounts of archwright, with the rights that the manifests in `deploy/` give them. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import { kubeconfigOf } from '../../../support/kubeconfig.ts';
import { ownNamespace } from './archwright.ts';
import type { Cluster } from '../harness.ts';

const accounts = `/api/v1/namespaces/${ownNamespace}/serviceaccounts`;

const kinds = /^(?:ServiceAccount|(?:Cluster)?Role(?:Binding)?|ValidatingAdmissionPolicy(?:Binding)?)$/;

/** Accounts, roles and policies of a file, as they are installed. */
export async function installRights(cluster: Cluster, file: string): Promise<void> {
  const objects = parseAllDocuments(await readFile(file, 'utf8')).map(
    (document) => document.toJS() as KubeObject & { kind?: string },
  );
  const some = objects.filter(({ kind = '' }) => kinds.test(kind));
  await cluster.applyYaml(some.map((object) => stringify(object)).join('---\n'));
}

/**
 * A kubeconfig with a token of a service account.
 * @param pod the pod that the token is bound to @param audiences default: that of the API server
 */
export async function tokenOf(
  cluster: Cluster,
  account: string,
  pod?: KubeObject,
  audiences: readonly string[] = [],
): Promise<string> {
  const { name, uid } = pod?.metadata ?? {};
  const boundObjectRef = pod && { apiVersion: 'v1', kind: 'Pod', name, uid };
  const spec = { audiences, boundObjectRef };
  const { status } = await cluster.post<{ readonly status: { readonly token: string } }>(
    `${accounts}/${account}/token`,
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec },
  );
  const path = join(cluster.directory, `${account}-${name ?? 'unbound'}.kubeconfig`);
  const { server, identities } = cluster;
  const text = kubeconfigOf({ server, 'certificate-authority': identities.caFile }, { token: status.token });
  await writeFile(path, text, { mode: 0o600 });
  return path;
}
