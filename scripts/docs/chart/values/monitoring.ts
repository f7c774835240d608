/** Monitoring values. */
import { flag, oneOf, text, textMap, valuesOf, type Section } from '../value.ts';

export const monitoring: Section = {
  title: 'Monitoring',
  values: valuesOf('monitoring', {
    mode: oneOf('none', 'ServiceMonitor', 'PodMonitor')({
      help:
        'Prometheus operator objects for webhook and controller. Agents always get a PodMonitor, because their Service only has the ' +
        'agent API.',
      default: 'none',
      example: 'PodMonitor',
    }),
    interval: text({ help: 'Scrape interval. Empty: the default of Prometheus.', default: '', example: '30s' }),
    labels: textMap({
      help: 'Labels of monitors and rules, for the selectors of Prometheus.',
      default: {},
      example: { release: 'prometheus' },
    }),
    scrapeAnnotations: flag({
      help: 'Adds the annotations `prometheus.io/scrape`, `port` and `path` to pods, and `scheme` with TLS.',
      default: false,
      example: true,
    }),
    'rules.enabled': flag({ help: 'Creates a PrometheusRule with alerts.', default: false, example: true }),
    'rules.runbookURL': text({
      help: 'Prefix of the runbook links; the name of the alert’s page (docs/operate/runbooks) is appended. Set it if you keep a copy.',
      default: 'https://github.com/archwright/archwright/blob/main/docs/operate/runbooks/',
      example: 'https://wiki.example.com/',
    }),
    'rules.labels': textMap({ help: 'Labels of every alert.', default: {}, example: { team: 'platform' } }),
    'dashboard.enabled': flag({ help: 'Creates a ConfigMap with a Grafana dashboard.', default: false, example: true }),
    'dashboard.labels': textMap({
      help: 'Labels of the ConfigMap, for Grafana’s sidecar.',
      default: { grafana_dashboard: '1' },
      example: { dashboards: 'yes' },
    }),
    'dashboard.annotations': textMap({ help: 'Annotations of the ConfigMap.', default: {}, example: { grafana_folder: 'Cluster' } }),
  }),
};
