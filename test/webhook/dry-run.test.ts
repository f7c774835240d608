/** A dry run is decided from the cache, without requests to a registry, an agent or for a Secret. */
import { test } from 'tap';
import { clusterOf, podOf, scripted, serve, workload } from './support.ts';

test('a dry run causes no lookups, a real request does', async (t) => {
  const source = scripted({ 'app:1': ['arm64'], 'app:2': ['arm64'], 'old:1': ['amd64'] });
  let secrets = 0;
  const cluster = clusterOf({
    nodeArchitecture: () => 'arm64',
    secret: () => {
      secrets += 1;
      return Promise.resolve(undefined);
    },
  });
  const { admit } = await serve(t, { source, cluster });
  const pod = podOf(['app:1'], { imagePullSecrets: [{ name: 'regcred' }] });
  const running = podOf(['old:1'], { nodeName: 'n' });
  const disjoint = { spec: { template: podOf(['app:1', 'old:1']) } };
  const requests = [
    { object: pod },
    workload('DaemonSet', { spec: { template: pod } }),
    workload('Deployment', disjoint),
    { operation: 'UPDATE', object: running, oldObject: podOf(['app:1'], { nodeName: 'n' }) },
  ];
  for (const request of requests) t.equal((await admit({ ...request, dryRun: true })).allowed, true);
  t.strictSame([source.lookups.length, secrets], [0, 0]);

  t.strictSame((await admit({ object: podOf(['app:1']) })).required, ['arm64']);
  const lookups = source.lookups.length;
  t.strictSame(
    (await admit({ object: podOf(['app:1']), dryRun: true })).required,
    ['arm64'],
    'from the cache',
  );
  t.equal(source.lookups.length, lookups);
  await admit({ object: pod });
  t.equal(secrets, 0, 'shared facts need no Secret');
  await admit({ object: podOf(['app:2'], { imagePullSecrets: [{ name: 'regcred' }] }) });
  t.equal(secrets, 1);
});
