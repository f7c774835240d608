/** Documents that people write: manifests, other programs' configuration, this program's configuration. */
import { isDeepStrictEqual } from 'node:util';
import { parseAllowList } from '../../../cmd/check/allow-list.ts';
import { podsIn } from '../../../cmd/check/pods.ts';
import { sortObjects } from '../../../cmd/objects/input.ts';
import { parseDocuments, parseObjects } from '../../../cmd/objects/documents.ts';
import { parsePrices } from '../../../cmd/report/prices/prices.ts';
import { UsageError } from '../../../cmd/program/exit.ts';
import { parseWebhooks, webhookNamesOf } from '../../../src/controller/state/webhooks-file.ts';
import { environmentLayer, fileLayer, flagLayer } from '../../../src/policy/configuration/layer.ts';
import { formatKey, formatToml } from '../../../src/policy/configuration/toml.ts';
import { settings } from '../../../src/policy/settings/all.ts';
import { written, type Settings } from '../../../src/policy/settings/setting.ts';
import { words } from './inputs.ts';
import { must, type FuzzTarget } from './target.ts';

const table: Settings = settings;

export const manifestFiles: FuzzTarget = {
  name: 'manifest files',
  share: 1,
  examples: [
    'apiVersion: v1\nkind: List\nitems:\n- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: web, namespace: shop}\n  spec:\n    template:\n      spec:\n        containers:\n        - {name: a, image: nginx}\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: regcred\ntype: kubernetes.io/dockerconfigjson\nstringData:\n  .dockerconfigjson: "{}"\n',
    'kind: Namespace\nmetadata:\n  name: shop\n  labels: &l {a: b}\n  annotations:\n    <<: *l\n---\nkind: Pod\nspec:\n  containers: []\n',
    '{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"nginx"}]}},{"kind":"ServiceAccount","imagePullSecrets":[{"name":"r"}]}]}',
  ],
  words: words('| > &a *a { } [ ] " # kind: items: null', '- ', ': ', '\n', '  ', '---\n', '<<: *m'),
  feed: (_, text) => {
    const objects = parseObjects({ file: 'a.yaml', text: text });
    const { subjects, skipped } = sortObjects(objects, 'default');
    return [subjects.length, skipped];
  },
  expected: [UsageError],
};

export const documentTargets: readonly FuzzTarget[] = [
  manifestFiles,
  {
    name: 'checked manifests',
    share: 1,
    examples: [
      ...manifestFiles.examples,
      '[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"initContainers":[{"name":"i","image":"b"}],"containers":[{"name":"a","image":"nginx"}],"volumes":[{"name":"v","image":{"reference":"r"}}]}}]',
      'base: &b {name: a, image: x}\nspec:\n  containers:\n  - <<: *b\n    image: y\n  - *b\n',
    ],
    words: [...(manifestFiles.words ?? []), 'containers', 'image', 'apiVersion: v1', 'metadata: {}'],
    feed: (_, text) => {
      const lines = text.split(/\r\n?|\n/).length;
      const places = parseDocuments({ file: 'a.yaml', text })
        .flatMap((document) => podsIn(document, 'a.yaml').pods)
        .flatMap((pod) => pod.places);
      for (const { line } of places) must(line >= 1 && line <= lines, `line ${line} of ${lines}`);
      return places;
    },
    expected: [UsageError],
  },
  {
    name: 'allow-lists',
    share: 1,
    examples: [
      '[[allow]]\nimage = "registry.example/legacy/**"\narchitectures = ["arm64"]\nreason = "x"\nexpires = "2027-03-31"\n\n[[allow]]\nimage = "nginx:1.*"\nexpires = 2027-03-31\n',
    ],
    words: words('[[allow]] image expires reason = " * ** @sha256: 2027-02-29 [ ] { }', '\n'),
    feed: (_, text) => parseAllowList(text, 'allow.toml').map(({ line, expires }) => [line, expires]),
    expected: [UsageError],
  },
  {
    name: 'files of prices',
    share: 1,
    examples: [
      'currency = "EUR"\nhours-per-month = 720\n\n[[node]]\ninstance-type = "m7g.large"\nregion = "eu-central-1"\non-demand = 0.0978\nspot = 0.04\narchitecture = "arm64"\nvcpu = 2\nmemory = "8Gi"\n\n[[node]]\ninstance-type = "m7i.large"\nspot = 1\n',
    ],
    words: words(
      '[[node]] instance-type region on-demand spot vcpu memory currency = " nan inf -1 1e400 Gi',
      '\n',
    ),
    feed: (_, text) => {
      const { entries, hoursPerMonth } = parsePrices(text, 'prices.toml');
      for (const entry of entries)
        for (const value of [hoursPerMonth, ...Object.values(entry)])
          must(typeof value === 'string' || (Number.isFinite(value) && value > 0), `the number ${value}`);
      return entries;
    },
    expected: [UsageError],
  },
  {
    name: 'webhooks files',
    share: 1,
    examples: [
      'webhooks:\n- name: pods.archwright.example\n  clientConfig:\n    service: {namespace: archwright, name: archwright, path: /mutate, port: 443}\n  rules:\n  - operations: [CREATE]\n    apiGroups: [""]\n- name: b\n  clientConfig: {url: "https://[::1]:8443/mutate"}\n',
    ],
    words: words('| &a *a { } [ ] null name: url: https:// service:', '- ', ': ', '\n', '  '),
    feed: (_, text) => {
      try {
        return webhookNamesOf(parseWebhooks(text, 'webhooks.yaml'));
      } catch (error) {
        // Its class is not exported, because only the start of the controller handles it.
        if (error instanceof Error && error.name === 'WebhooksFileError') return undefined;
        throw error;
      }
    },
  },
  {
    name: 'configuration',
    share: 4,
    examples: [
      'schedulableArchitectures = ["amd64"]\n[architectures.arm64]\ntaintsToTolerate = [{ key = "arch", effect = "NoSchedule" }]\n[[imageOverrides]]\nmatch = "a"\narchitectures = ["arm64"]\n',
      'logLevel = "debug"\nlisten = ":8443"\ninlineBudget = "2s"\nmemoryBytes = "64Mi"\nagents = ["endpointslices:a/b"]\n[proxies]\n"docker.io" = "proxy.corp"\n',
    ],
    words: words('[ ] [[ ]] " \' = { } 0x 1_000 inf 1979-05-27 listen', '\n', ' = '),
    feed: (input) => {
      const { values, problems } = fileLayer(table, 'archwright.toml', input.toString('utf8'));
      for (const [key, { value }] of values) {
        const setting = table[key];
        const toml = setting && written(setting, value);
        if (toml === undefined) continue;
        const text = `${key.split('.').map(formatKey).join('.')} = ${formatToml(toml)}\n`;
        const again = fileLayer(table, 'archwright.toml', text);
        must(
          isDeepStrictEqual(again.values.get(key)?.value, value),
          `another value when read again: ${text}`,
        );
      }
      return problems;
    },
  },
  {
    name: 'variables and flags',
    share: 1,
    examples: [
      'listen\n:8443',
      'imageOverrides\n[{ match = "a", architectures = ["arm64"] }]',
      'preferredArchitectures\narm64=80,amd64=20',
      'inlineBudget\n2s',
      'taintsToTolerate\n{ key = "a" }',
    ],
    words: [...Object.keys(table), ...words('= , { } [ ] " true 2s -1 64Mi', '\n', ' ')],
    feed: (input) => {
      const [key = '', text = ''] = input.toString('utf8').split('\n', 2);
      const name = `ARCHWRIGHT_${key.toUpperCase()}`;
      // Only known flags get there.
      const flags = Object.hasOwn(table, key) ? { [key]: text } : {};
      const layers = [environmentLayer(table, { [name]: text }), flagLayer(table, flags)];
      return layers.map(({ problems }) => problems);
    },
  },
];
