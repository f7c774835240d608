/** The dashboard for Grafana, `files/dashboard.json`: one panel for each line of the table below. */
interface Panel {
  readonly title: string;
  readonly unit: 'reqps' | 's' | 'short' | 'bytes' | 'percentunit';
  /** Expression by legend. */
  readonly queries: Readonly<Record<string, string>>;
}

export const rows: Readonly<Record<string, readonly Panel[]>> = {
  Admission: [
    {
      title: 'Admissions by outcome',
      unit: 'reqps',
      queries: { '{{outcome}}': 'sum by (outcome) (rate(archwright_admissions_total[$__rate_interval]))' },
    },
    {
      title: 'Time to answer',
      unit: 's',
      queries: {
        p50: 'histogram_quantile(0.5, sum by (le) (rate(archwright_admission_duration_seconds_bucket[$__rate_interval])))',
        p99: 'histogram_quantile(0.99, sum by (le) (rate(archwright_admission_duration_seconds_bucket[$__rate_interval])))',
      },
    },
    {
      title: 'Unknown images',
      unit: 'reqps',
      queries: {
        '{{code}}': 'sum by (code) (rate(archwright_admission_unknown_images_total[$__rate_interval]))',
      },
    },
    {
      title: 'Faults and warnings',
      unit: 'reqps',
      queries: {
        faults: 'sum(rate(archwright_admissions_total{outcome="fault"}[$__rate_interval]))',
        warnings: 'sum(rate(archwright_admission_warnings_total[$__rate_interval]))',
      },
    },
  ],
  Gates: [
    {
      title: 'Gated pods',
      unit: 'short',
      queries: { '{{reason}}': 'sum by (reason) (archwright_gated_pods)' },
    },
    {
      title: 'Decisions on gated pods',
      unit: 'reqps',
      queries: {
        '{{outcome}}': 'sum by (outcome) (rate(archwright_gate_decisions_total[$__rate_interval]))',
      },
    },
    {
      title: 'Time until the gate is removed',
      unit: 's',
      queries: {
        p99: 'histogram_quantile(0.99, sum by (le) (rate(archwright_gated_duration_seconds_bucket[$__rate_interval])))',
      },
    },
    {
      title: 'Webhook configuration',
      unit: 'short',
      queries: { '{{state}}': 'max by (state) (archwright_webhook_configuration)' },
    },
  ],
  'Image facts': [
    { title: 'Agents', unit: 'short', queries: { '{{state}}': 'max by (state) (archwright_fleet_agents)' } },
    {
      title: 'Requests to agents',
      unit: 'reqps',
      queries: {
        '{{outcome}}': 'sum by (outcome) (rate(archwright_fleet_attempts_total[$__rate_interval]))',
      },
    },
    {
      title: 'Failed lookups',
      unit: 'reqps',
      queries: { '{{code}}': 'sum by (code) (rate(archwright_facts_failures_total[$__rate_interval]))' },
    },
    { title: 'Images in memory', unit: 'short', queries: { '{{pod}}': 'archwright_facts_entries' } },
  ],
  Cluster: [
    {
      title: 'Running pods by architecture',
      unit: 'short',
      queries: { '{{architecture}}': 'max by (architecture) (archwright_running_pods)' },
    },
    {
      title: 'Exec format errors',
      unit: 'reqps',
      queries: {
        '{{architecture}}':
          'sum by (architecture) (rate(archwright_exec_format_errors_total[$__rate_interval]))',
      },
    },
    {
      title: 'Requests to the API server',
      unit: 'reqps',
      queries: {
        '{{verb}} {{code}}': 'sum by (verb, code) (rate(archwright_kube_requests_total[$__rate_interval]))',
      },
    },
    {
      title: 'Sources that cannot be used',
      unit: 'short',
      queries: { '{{source}}': 'sum by (source) (archwright_source_broken)' },
    },
  ],
  Processes: [
    {
      title: 'CPU',
      unit: 'percentunit',
      queries: {
        '{{pod}}':
          'rate(process_cpu_seconds_total[$__rate_interval]) and on (instance) archwright_build_info',
      },
    },
    {
      title: 'Memory',
      unit: 'bytes',
      queries: { '{{pod}}': 'process_resident_memory_bytes and on (instance) archwright_build_info' },
    },
    {
      title: 'Event loop lag',
      unit: 's',
      queries: { '{{pod}}': 'nodejs_eventloop_lag_p99_seconds and on (instance) archwright_build_info' },
    },
    {
      title: 'Time until certificates expire',
      unit: 's',
      queries: {
        '{{use}}': 'min by (use) (archwright_tls_certificate_expiry_timestamp_seconds > 0) - time()',
      },
    },
  ],
};

const width = 6;
const height = 8;
const datasource = { type: 'prometheus', uid: '${datasource}' };

export function dashboardFile(): string {
  let id = 0;
  let y = 0;
  const panels = Object.entries(rows).flatMap(([title, list]) => {
    const row = {
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: 24, h: 1 },
    };
    const shown = list.map((panel, index) => ({
      id: ++id,
      type: 'timeseries',
      title: panel.title,
      datasource,
      gridPos: { x: index * width, y: y + 1, w: width, h: height },
      fieldConfig: { defaults: { unit: panel.unit, min: 0 }, overrides: [] },
      targets: Object.entries(panel.queries).map(([legendFormat, expr], at) => ({
        refId: String.fromCodePoint('A'.codePointAt(0)! + at),
        datasource,
        expr,
        legendFormat,
      })),
    }));
    y += height + 1;
    return [row, ...shown];
  });
  const dashboard = {
    uid: 'archwright',
    title: 'archwright',
    tags: ['archwright'],
    schemaVersion: 39,
    editable: true,
    time: { from: 'now-6h', to: 'now' },
    refresh: '1m',
    templating: {
      list: [{ name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' }],
    },
    panels,
  };
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}
