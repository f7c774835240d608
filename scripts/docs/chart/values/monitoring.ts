import { off, oneOf, text, textMap, valuesOf, type Section } from '../value.ts';

export const monitoring: Section = {
  title: 'Monitoring',
  values: valuesOf('monitoring', {
    mode: oneOf('none', 'ServiceMonitor', 'PodMonitor')(
      'Prometheus operator objects for webhook and controller. Agents always get a PodMonitor, because their Service only has the ' +
        'agent API.',
      'none',
      'PodMonitor',
    ),
    interval: text('Scrape interval. Empty: the default of Prometheus.', '', '30s'),
    labels: textMap(
      'Labels of monitors and rules, for the selectors of Prometheus.',
      {},
      { release: 'prometheus' },
    ),
    scrapeAnnotations: off(
      'Adds the annotations `prometheus.io/scrape`, `port` and `path` to pods, and `scheme` with TLS.',
    ),
    'rules.enabled': off('Creates a PrometheusRule with alerts.'),
    'rules.runbookURL': text(
      'Prefix of the runbook links; the name of the alert’s page (docs/operate/runbooks) is appended. Set it if you keep a copy.',
      'https://github.com/archwright/archwright/blob/main/docs/operate/runbooks/',
      'https://wiki.example.com/',
    ),
    'rules.labels': textMap('Labels of every alert.', {}, { team: 'platform' }),
    'dashboard.enabled': off('Creates a ConfigMap with a Grafana dashboard.'),
    'dashboard.labels': textMap(
      'Labels of the ConfigMap, for Grafana’s sidecar.',
      { grafana_dashboard: '1' },
      { dashboards: 'yes' },
    ),
    'dashboard.annotations': textMap('Annotations of the ConfigMap.', {}, { grafana_folder: 'Cluster' }),
  }),
};
