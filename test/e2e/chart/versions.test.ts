/** The chart and the API servers of the oldest and the newest supported Kubernetes. */
import t from 'tap';
import { kubernetes, oldestKubernetes } from '../programs/kubernetes.ts';
import {
  checkDefinitions,
  define,
  deleteKeptDefinitions,
  installDefinitions,
} from '../cluster/control-plane/definitions.ts';
import { startCluster } from '../cluster/harness.ts';
import { foreignDefinitions } from '../programs/definitions.ts';
import { checkPodSecurity, checkStrictValidation, constraintsDefinition, everyObject } from './strict.ts';
import { otherAudience } from './escalations.ts';
import { checkOwnRights } from './own-rights.ts';
import { checkProtection } from './protection.ts';
import { like } from '../../support/like.ts';

const wanted = everyObject();

for (const version of [oldestKubernetes, kubernetes]) {
  void t.test(`the chart installs on Kubernetes ${version}`, async (t) => {
    const audiences = `https://kubernetes.default.svc.cluster.local,${otherAudience}`;
    const apiServerFlags = [`--api-audiences=${audiences}`];
    const cluster = await startCluster({ apiServerOnly: version, apiServerFlags }, t);
    like(t, await cluster.get('/version'), { gitVersion: version });
    await cluster.createNamespace('archwright', { 'pod-security.kubernetes.io/enforce': 'privileged' });

    await t.test("users cannot write archwright's annotation or remove its gate", async (t) => {
      await checkProtection(t, cluster);
    });
    await t.test("archwright's service accounts cannot escalate their rights", async (t) => {
      await checkOwnRights(t, cluster);
    });
    await t.test('the definitions of the custom resources accept and refuse objects', async (t) => {
      await deleteKeptDefinitions(cluster);
      await installDefinitions(cluster);
      await checkDefinitions(t, cluster);
    });
    await t.test('every object passes strict validation', async (t) => {
      for (const text of [...foreignDefinitions(), constraintsDefinition]) await define(cluster, text);
      await checkStrictValidation(t, cluster, wanted);
    });
    await t.test(
      'webhook, controller and Jobs pass Pod Security restricted; the agent does not',
      async (t) => {
        await checkPodSecurity(t, cluster);
      },
    );
  });
}
