/** The page `docs/reference/metrics.md`, made from the descriptions that the endpoints serve. */
import { agentMetrics } from '../../daemon/api/metrics.ts';
import { pluginMetrics } from '../../daemon/kubelet/metrics.ts';
import { clusterMetrics } from '../../src/cluster/metrics.ts';
import { sourceMetrics } from '../../src/credentials/sources/metrics.ts';
import { fleetMetrics } from '../../src/fleet/metrics.ts';
import { features } from '../../src/controller/features.ts';
import { leadingMetrics } from '../../src/controller/leadership/metrics.ts';
import { controllerMetrics } from '../../src/controller/metrics.ts';
import { factsMetricSpecs } from '../../src/images/memory/metrics.ts';
import { kubeMetrics } from '../../src/kube/metrics.ts';
import { policyMetrics } from '../../src/policy/metrics.ts';
import { servingMetrics } from '../../src/serving/metrics.ts';
import type { MetricSpec } from '../../src/telemetry/metrics.ts';
import { buildInfoExample, processMetrics } from '../../src/telemetry/process.ts';
import { webhookMetrics } from '../../src/webhook/metrics.ts';
import { code, table } from './markdown.ts';

/** Every metric of the program. A room with metrics of its own has a line here. */
export const metricGroups: readonly { readonly title: string; readonly metrics: readonly MetricSpec[] }[] = [
  { title: 'Webhook', metrics: webhookMetrics },
  { title: 'Controller', metrics: [...leadingMetrics(Object.keys(features)), ...controllerMetrics] },
  { title: 'Cluster', metrics: clusterMetrics },
  { title: 'API server', metrics: kubeMetrics },
  { title: 'Agent', metrics: agentMetrics },
  { title: 'Questions to agents', metrics: fleetMetrics },
  { title: 'Image facts', metrics: Object.values(factsMetricSpecs) },
  { title: 'Sources of credentials and endpoints', metrics: [...sourceMetrics, ...pluginMetrics] },
  { title: 'Servers and certificates', metrics: Object.values(servingMetrics) },
  { title: 'Configuration', metrics: policyMetrics },
  { title: 'Process', metrics: [buildInfoExample, ...processMetrics] },
];

const introduction = `# Metrics

Served at \`/metrics\` on \`metricsListen\`, in the Prometheus text format. Names that end in \`_total\` are counters, the others gauges if nothing
else is said. Every label value is listed here and present from the start
with 0; any other value is counted as \`other\`.

The page has no names of images, registries, pods, nodes or files ([security](../internals/security.md#metrics-and-health)). \`metricsTlsDir\` adds TLS.

The chart uses port 8080 for webhook and controller and 9444 for agents. Agents on the network of the node serve it on 127.0.0.1, and on the
address of the node if \`monitoring.mode\` or \`monitoring.scrapeAnnotations\` is set; \`agent.metricsAddress\` overrides this. Monitors, alerts with
[runbooks](../operate/runbooks/README.md), a Grafana dashboard and scrape annotations are [off by default](../../charts/archwright/README.md#monitoring).
`;

/** Lists of values that several metrics have are long: they are said once. */
const longList = 6;

/** Long lists that occur more than once, by their text, with the label that they belong to. */
function sharedLists(): ReadonlyMap<string, string> {
  const all = metricGroups.flatMap(({ metrics }) => metrics.flatMap(({ labels = {} }) => Object.entries(labels)));
  const long = all.filter(([, values]) => values.length >= longList).map(([label, values]) => [values.join(', '), label] as const);
  return new Map(long.filter(([text], index) => long.findIndex(([other]) => other === text) !== index));
}

/** Makes the page. */
export function metricsPage(): string {
  const shared = sharedLists();
  const valuesText = (label: string, values: readonly string[]): string =>
    shared.get(values.join(', ')) === label ? '[above](#values-of-labels)' : values.join(', ');
  const lists = table(['Label', 'Values'], [...shared].map(([text, label]) => [code(label), text]));
  const groups = metricGroups.map(({ title, metrics }) => {
    const rows = metrics.map(({ name, type, help, labels = {} }) => [
      code(name),
      type === 'histogram' ? `${help} Histogram.` : help,
      Object.entries(labels)
        .map(([label, values]) => `${code(label)}: ${valuesText(label, values)}`)
        .join('; '),
    ]);
    return `## ${title}\n\n${table(['Name', 'Meaning', 'Labels'], rows)}\n`;
  });
  return [introduction, `## Values of labels\n\nOf several metrics:\n\n${lists}\n`, ...groups].join('\n');
}
