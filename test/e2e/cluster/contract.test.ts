/** A real API server keeps the contract of the store that stands for it in unit tests. */
import t from 'tap';
import { kubeContract } from '../../support/kube-contract.ts';
import { kubernetes } from '../programs/kubernetes.ts';
import { startCluster } from './harness.ts';

void t.test('a real API server does what unit tests rely on', async (t) => {
  const { client } = await startCluster({ apiServerOnly: kubernetes }, t);
  await kubeContract(t, client);
});
