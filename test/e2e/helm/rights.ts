/** Each right of the chart is used by a component. A missing right shows as a refused request. */
import assert from 'node:assert/strict';
import { parseAllDocuments } from 'yaml';
import { chart, kubeVersion } from '../chart/helm.ts';
import { allowedRequests } from './logs.ts';
import { namespace, type Helm } from './release.ts';

interface Role {
  readonly kind: string;
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
  readonly rules?: readonly {
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

const parts = new Set(['webhook', 'controller', 'clean']);

/** Rights that no request here shows: their situations do not occur, or not in each run. */
const rare: Readonly<Record<string, string>> = {
  'clean: delete configmaps': 'no notes of broken images or drifted tags were written',
  'clean: delete reports': 'none were published',
  'clean: create leases': 'no controller has led yet',
  'clean: get pods': 'a pod changed while its gate was removed',
  'clean: get nodes': 'a node changed while its taint was removed',
  'controller: approve signers':
    'a check of the API server while an approval is written (plugin CertificateApproval)',
  'controller: sign signers': 'the same for a certificate (plugin CertificateSigning)',
  'controller: create configmaps': 'the first note of a broken image or a drifted tag',
  'controller: create subjectaccessreviews': 'explain with --as-service-account',
  'controller: delete certificatesigningrequests':
    'a request from before the policy that refuses those of other accounts',
  'controller: get cronjobs': 'explain of a CronJob in a controller pod',
  'controller: create secrets': 'needed by server-side apply, which the audit log has as a patch',
  'controller: get jobs': 'a misplaced pod of a Job',
  'controller: get persistentvolumeclaims': 'a rollout of pods with volumes',
  'controller: get persistentvolumes': 'the same',
  'controller: get replicationcontrollers': 'a misplaced pod of a ReplicationController',
  'controller: get statefulsets': 'a misplaced pod of a StatefulSet',
  'controller: patch configmaps': 'a second note of broken images',
  'controller: patch events': 'the same event again',
  'webhook: get serviceaccounts': 'the pull secrets of a template',
};

/** Compares them. @param values the flag with the values that were installed */
export async function expectUsedRights(helm: Helm, values: string): Promise<void> {
  const text = await helm.run('template archwright', chart, `--kube-version ${kubeVersion}`, values);
  const given = new Set<string>();
  for (const document of parseAllDocuments(text)) {
    const role = document.toJS() as Role | null;
    const part = role?.metadata.labels?.['app.kubernetes.io/component'] ?? '';
    if (role === null || !parts.has(part)) continue;
    for (const { resources, verbs } of role.rules ?? [])
      for (const resource of resources) for (const verb of verbs) given.add(`${part}: ${verb} ${resource}`);
  }
  assert(given.size > 40, `${given.size} rights`);
  const used = new Set(
    allowedRequests().map(({ user, verb, resource }) => {
      const account = user.slice(`system:serviceaccount:${namespace}:archwright-`.length);
      return `${account}: ${verb} ${resource}`;
    }),
  );
  const idle = [...given].filter((right) => !used.has(right) && !Object.hasOwn(rare, right));
  assert.deepEqual(idle, [], 'granted, and never used');
  const gone = Object.keys(rare).filter((right) => !given.has(right));
  assert.deepEqual(gone, [], 'not granted any more');
}
