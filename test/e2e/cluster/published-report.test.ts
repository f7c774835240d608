/**
 * `archwright report --publish` on a real control plane: with the flags of the chart's CronJob, and its
 * service account's token and rights. The definitions of OpenReports come later.
 */
import { readFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { openReportsDefinitions } from '../programs/definitions.ts';
import { until } from '../../support/until.ts';
import { installRights, tokenOf } from './archwright/accounts.ts';
import { ownNamespace, runArchwright } from './archwright/archwright.ts';
import { define } from './control-plane/definitions.ts';
import { clientOf, patience } from './harness.ts';
import { podOf } from './control-plane/pods.ts';
import { startRelease } from './archwright/release.ts';

interface CronJob {
  readonly kind: string;
  readonly spec: {
    readonly jobTemplate: {
      readonly spec: {
        readonly template: {
          readonly spec: {
            readonly serviceAccountName: string;
            readonly containers: readonly [{ readonly args: readonly string[] }];
          };
        };
      };
    };
  };
}

interface ConfigMap extends KubeObject {
  readonly data: Readonly<Record<string, string>>;
  readonly binaryData: Readonly<Record<string, string>>;
}

const manifests = 'deploy/report.yaml';
const reports = '/apis/openreports.io/v1alpha1';
const reportIn = (namespace: string): string =>
  `${reports}/namespaces/${namespace}/reports/archwright-report`;

t.test('the scheduled report is published with the rights of its account', async (t) => {
  const { cluster, images } = await startRelease(t);
  await installRights(cluster, 'deploy/archwright.yaml');
  await installRights(cluster, manifests);
  const both = images.push('team/web', ['amd64', 'arm64'], 'private');
  const old = images.push('team/old', ['amd64'], 'private');
  for (const [namespace, image] of Object.entries({ shop: both, bank: old })) {
    await cluster.createNamespace(namespace);
    await cluster.create(podOf('web', image, { nodeName: 'amd64-0' }, { namespace }));
  }

  const documents = parseAllDocuments(await readFile(manifests, 'utf8'));
  const cronJob = documents.map((each) => each.toJS() as CronJob).find(({ kind }) => kind === 'CronJob');
  const pod = cronJob?.spec.jobTemplate.spec.template.spec;
  const account = await tokenOf(cluster, pod?.serviceAccountName ?? '');
  const publish = () => runArchwright(cluster, [...(pod?.containers[0].args ?? []), '--kubeconfig', account]);
  const configMap = () => cluster.get<ConfigMap>(paths.configMaps(ownNamespace, 'archwright-report'));

  const first = await publish();
  t.equal(first.code, 0, first.output);
  t.match(first.output, /no Reports: the cluster has no OpenReports definitions/);
  const { binaryData, data } = await configMap();
  t.match(JSON.parse(data['summary.json'] ?? ''), { architecture: 'arm64', leftOut: [] });
  const unpacked = (file: string): string =>
    gunzipSync(Buffer.from(binaryData[file] ?? '', 'base64')).toString('utf8');
  const json = unpacked('report.json.gz');
  const admin = await cluster.identities.kubeconfig({ cn: 'admin', group: 'system:masters' }, cluster.server);
  const own = await runArchwright(cluster, ['report', '-o', 'json', '--kubeconfig', admin]);
  t.equal(own.output.trim(), json.trim(), 'the figures of the command');
  t.match(JSON.parse(json), {
    lookups: /^through archwright\/archwright-controller/,
    totals: { no: { pods: 1 } },
  });
  t.match(unpacked('report.html.gz'), /^<!doctype html>/);

  for (const definition of openReportsDefinitions()) await define(cluster, definition);
  // The API server returns 429 until it has read the stored objects of a new kind.
  const isReady = () => cluster.get(`${reports}/reports`).then(Boolean, () => false);
  await until(isReady, 'Reports can be listed', 60_000);
  const second = await publish();
  t.equal(second.code, 0, second.output);
  t.match(second.output, /Reports: 3 written, 0 deleted/, "the third is for the controller's namespace");
  const inShop = await cluster.get(reportIn('shop'));
  t.match(inShop, {
    summary: { pass: 1, fail: 0 },
    results: [{ policy: 'runs-on-arm64', result: 'pass', resources: [{ kind: 'Pod', name: 'web' }] }],
  });
  t.match(await cluster.get(reportIn('bank')), {
    scope: { kind: 'Namespace', name: 'bank' },
    summary: { pass: 0, fail: 1 },
    results: [{ result: 'fail', message: `${old} has amd64` }],
  });

  await cluster.delete(paths.pods('bank', 'web'));
  await cluster.waitFor(paths.pods('bank', 'web'), (found) => found === undefined);
  const third = await publish();
  t.match(third.output, /Reports: 2 written, 1 deleted/);
  await t.rejects(cluster.get(reportIn('bank')), { code: 'not-found' });
  const { metadata } = await cluster.get(reportIn('shop'));
  t.equal(metadata?.resourceVersion, inShop.metadata?.resourceVersion, 'unchanged reports are not written');

  const client = await clientOf(account);
  t.teardown(() => client.close());
  const options = () => ({ signal: patience() });
  const refused: readonly (readonly [what: string, request: () => Promise<unknown>])[] = [
    ['secrets', () => client.get(paths.secrets('shop'), options())],
    ['other ConfigMaps', () => client.get(paths.configMaps(ownNamespace), options())],
    ['all Reports', () => client.get(`${reports}/reports`, options())],
    ['a Report by another name', () => client.delete(`${reportIn('shop')}-2`, options())],
    ['a ConfigMap by another name', () => client.create(paths.configMaps(ownNamespace), other, options())],
    ['a token for the API server', () => client.create(tokenPath, tokenRequest, options())],
  ];
  for (const [what, request] of refused) await t.rejects(request(), { code: 'forbidden' }, what);
});

const tokenPath = `${paths.serviceAccounts(ownNamespace, 'archwright-report')}/token`;
const spec = { audiences: [] };
const tokenRequest = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
const other = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other' } };
