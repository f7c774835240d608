/** The page `docs/reference/metrics.md`, made from the descriptions that the endpoints serve. */
import { agentMetrics } from '../../daemon/api/outcomes.ts';
import { pluginMetrics } from '../../daemon/kubelet/run/plugin-error.ts';
import { pullSecretReads } from '../../src/cluster/pull-secrets.ts';
import { sourceMetrics } from '../../src/credentials/sources/file-source.ts';
import { fleetMetrics } from '../../src/fleet/fleet.ts';
import { controllerMetrics } from '../../src/controller/features.ts';
import { factsErrorCodes } from '../../src/images/facts/facts.ts';
import { factsMetrics } from '../../src/images/cache/entries.ts';
import { kubeMetrics } from '../../src/kube/metrics.ts';
import { configurationMetrics } from '../../src/policy/configuration/live.ts';
import { customResources } from '../../src/policy/resources/collection.ts';
import { registryMetrics } from '../../src/registry/net/docker-hub-limit.ts';
import { servingMetrics } from '../../src/serving/metrics.ts';
import type { MetricSpec } from '../../src/telemetry/metrics.ts';
import { buildInfo, processMetrics } from '../../src/telemetry/process.ts';
import { webhookMetrics } from '../../src/webhook/metrics.ts';
import { code } from './markdown.ts';

/** Every metric of the program. Each room with metrics has a line here. */
export const metricGroups: readonly { readonly title: string; readonly metrics: readonly MetricSpec[] }[] = [
  { title: 'Webhook', metrics: webhookMetrics },
  { title: 'Controller', metrics: controllerMetrics },
  { title: 'Cluster', metrics: [pullSecretReads] },
  { title: 'API server', metrics: kubeMetrics },
  { title: 'Agent', metrics: agentMetrics },
  { title: 'Requests to agents', metrics: fleetMetrics },
  { title: 'Image facts', metrics: factsMetrics },
  { title: 'Registries', metrics: registryMetrics },
  { title: 'Sources of credentials and endpoints', metrics: [...sourceMetrics, ...pluginMetrics] },
  { title: 'Servers and certificates', metrics: Object.values(servingMetrics) },
  { title: 'Configuration', metrics: [...configurationMetrics, customResources] },
  { title: 'Process', metrics: [buildInfo, ...processMetrics] },
];

const introduction = `# Metrics

Metrics are served at \`/metrics\` on \`metricsListen\` (TLS: \`--metrics-tls\`). In the chart, this is port 8080 of webhook and controller, and 9444 of
agents. Agents with \`hostNetwork\` listen on 127.0.0.1, or on the node's address if \`monitoring.mode\` or \`monitoring.scrapeAnnotations\` is set;
\`agent.metricsAddress\` overrides this. [Monitors, alerts and a Grafana dashboard](../../charts/archwright/README.md#monitoring) are off by default.

Names that end in \`_total\` are counters, in \`_duration_seconds\` histograms; the others are gauges. Every label value is listed here, and present from
the start with 0. Other values count as \`other\`. Metrics [name no image, registry, pod, node or file](../internals/security.md#metrics-and-health).

`;

/** Long lists of values that several metrics share appear once. */
const longList = 6;

/** The codes of failed lookups, which other values may precede. */
const codes = factsErrorCodes.join('|');

/** Long lists that occur more than once, by their text, with the label that they belong to. */
function sharedLists(): ReadonlyMap<string, string> {
  const all = metricGroups.flatMap(({ metrics }) =>
    metrics.flatMap(({ labels = {} }) => Object.entries(labels)),
  );
  const long = all
    .filter(([, values]) => values.length >= longList)
    .map(([label, values]) => [values.join('|'), label] as const);
  const repeated = long.filter(([text], index) => long.findIndex(([other]) => other === text) !== index);
  return new Map(repeated.filter(([text]) => !text.endsWith(codes)));
}

export function metricsPage(): string {
  const shared = sharedLists();
  const labelText = ([label, values]: readonly [string, readonly string[]]): string => {
    const text = values.join('|');
    return text === '' || shared.get(text) === label ? label : `${label}="${text.replace(codes, '…')}"`;
  };
  const lists = [...shared].map(([text, label]) => `- ${code(`${label}="${text}"`)}`);
  const groups = metricGroups.map(({ title, metrics }) => {
    const rows = metrics.map(({ name, help, labels = {} }) => {
      const inside = Object.entries(labels).map(labelText).join(',');
      return `- ${code(inside === '' ? name : `${name}{${inside}}`)}: ${help}`;
    });
    return `## ${title}\n\n${rows.join('\n')}\n`;
  });
  return [
    introduction,
    `Values of \`…\` (the codes of failed lookups), and of labels without values below:\n\n- ${code(`…="${codes}"`)}\n${lists.join('\n')}\n\n`,
    groups.join('\n'),
  ].join('');
}
