/** A kubeconfig of one cluster and one user, as JSON, which is YAML too. */
export function kubeconfigOf(
  cluster: { readonly server: string } & Readonly<Record<string, unknown>>,
  user: Readonly<Record<string, unknown>>,
  namespace?: string,
): string {
  const context = { cluster: 'test', user: 'test', ...(namespace !== undefined && { namespace }) };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context }],
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user }],
  });
}
