import t from 'tap';
import { clusterPath, namespacedPath, paths } from '../../../src/kube/api/paths.ts';

const cases: readonly (readonly [string, string])[] = [
  [paths.pods(), '/api/v1/pods'],
  [paths.pods('shop'), '/api/v1/namespaces/shop/pods'],
  [paths.pods('shop', 'web'), '/api/v1/namespaces/shop/pods/web'],
  [paths.nodes(), '/api/v1/nodes'],
  [paths.nodes('node-1'), '/api/v1/nodes/node-1'],
  [paths.leases('shop', 'x'), '/apis/coordination.k8s.io/v1/namespaces/shop/leases/x'],
  [paths.daemonSets('shop', 'x'), '/apis/apps/v1/namespaces/shop/daemonsets/x'],
  [namespacedPath('batch/v1', 'jobs')('a/b', 'c?d'), '/apis/batch/v1/namespaces/a%2Fb/jobs/c%3Fd'],
  [clusterPath('x.example/v1', 'things')('..%'), '/apis/x.example/v1/things/..%25'],
];

t.test('paths of collections and objects have encoded names', async (t) => {
  for (const [path, expected] of cases) t.equal(path, expected);
});
