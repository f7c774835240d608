/** The API server's authorizer reads roles and bindings by watches, so it grants new rights a moment late. */
import type { KubeClient } from '../../../../src/kube/api/client.ts';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import { until } from '../../../support/until.ts';

const rbac = '/apis/rbac.authorization.k8s.io/v1';
const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

export interface Binding extends KubeObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly {
    readonly kind: string;
    readonly name: string;
    readonly namespace?: string;
  }[];
}

interface Role {
  readonly rules?: readonly {
    readonly verbs: readonly string[];
    readonly apiGroups?: readonly string[];
    readonly resources?: readonly string[];
    readonly resourceNames?: readonly string[];
  }[];
}

interface Review {
  readonly status: { readonly allowed: boolean };
}

export function isBinding(object: KubeObject & { readonly kind?: string }): object is Binding {
  return object.kind === 'RoleBinding' || object.kind === 'ClusterRoleBinding';
}

/** Waits until every subject of a binding has each right of its role. */
export async function untilGranted(client: KubeClient, binding: Binding): Promise<void> {
  const { roleRef, subjects = [], metadata: { name = '', namespace } = {} } = binding;
  const signal = AbortSignal.timeout(60_000);
  const roles = roleRef.kind === 'Role' ? `namespaces/${namespace}/roles` : 'clusterroles';
  let rules: NonNullable<Role['rules']> = [];
  const hasRules = async (): Promise<boolean> => {
    rules = (await client.get<Role>(`${rbac}/${roles}/${roleRef.name}`, { signal })).rules ?? [];
    return rules.length > 0;
  };
  // A controller aggregates the rules of `edit` and `view`.
  await until(hasRules, `the rules of ${roleRef.name}`);
  for (const subject of subjects)
    for (const rule of rules) {
      const [all = '', subresource] = rule.resources?.[0]?.split('/') ?? [];
      if (all === '') continue;
      const resourceAttributes = {
        namespace,
        verb: rule.verbs[0],
        group: rule.apiGroups?.[0],
        resource: all,
        subresource,
        name: rule.resourceNames?.[0],
      };
      const spec = { ...userOf(subject), resourceAttributes };
      const isAllowed = async (): Promise<boolean> =>
        (await client.create<Review>(reviews, { spec }, { signal })).status.allowed;
      await until(isAllowed, `the rights of ${name}: ${JSON.stringify(spec)}`);
    }
}

function userOf({ kind, name, namespace = '' }: { kind: string; name: string; namespace?: string }): object {
  if (kind === 'Group') return { user: 'anyone', groups: [name] };
  return { user: kind === 'ServiceAccount' ? `system:serviceaccount:${namespace}:${name}` : name };
}

/** Waits until the bindings that a release of the chart has made are in force. */
export async function untilChartGranted(client: KubeClient): Promise<void> {
  for (const kind of ['clusterrolebindings', 'rolebindings']) {
    const query = { labelSelector: 'app.kubernetes.io/part-of=archwright' };
    const signal = AbortSignal.timeout(60_000);
    const { items } = await client.get<{ items: readonly Binding[] }>(`${rbac}/${kind}`, { signal, query });
    for (const binding of items) await untilGranted(client, binding);
  }
}

/**
 * Repeats a request while the API server accepts it: it enforces a policy a moment after it was created.
 * @param change gets the number of requests before
 * @throws KubeError the refusal. @throws Error if requests are still accepted after a minute
 */
export async function untilRefused(change: (tries: number) => Promise<unknown>): Promise<void> {
  let tries = 0;
  const isRefused = async (): Promise<boolean> => {
    await change(tries++);
    return false;
  };
  await until(isRefused, 'a policy to be enforced');
}
