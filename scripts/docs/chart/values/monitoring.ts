/** Values of what watches the running parts. */
import { flag, oneOf, text, textMap, valuesOf, type Section } from '../value.ts';

export const monitoring: Section = {
  title: 'Monitoring',
  values: valuesOf('monitoring', {
    mode: oneOf('none', 'ServiceMonitor', 'PodMonitor')({
      help:
        'Objects of the Prometheus operator by which webhook and controller are scraped. Agents always get a PodMonitor, since their Service is ' +
        'for their API.',
      default: 'none',
      example: 'PodMonitor',
    }),
    interval: text({ help: 'How often; empty: as Prometheus is configured.', default: '', example: '30s' }),
    labels: textMap({
      help: 'Labels of the monitors and rules, by which Prometheus selects them.',
      default: {},
      example: { release: 'prometheus' },
    }),
    scrapeAnnotations: flag({
      help: 'Whether pods get the annotations `prometheus.io/scrape`, `port` and `path`.',
      default: false,
      example: true,
    }),
    'rules.enabled': flag({ help: 'Whether there is a PrometheusRule with alerts.', default: false, example: true }),
    'rules.runbookURL': text({
      help: 'Where the pages on alerts are (docs/operate/runbooks); the name of the alert’s page is added. Where you keep a copy, name that.',
      default: 'https://github.com/archwright/archwright/blob/main/docs/operate/runbooks/',
      example: 'https://wiki.example.com/',
    }),
    'rules.labels': textMap({ help: 'Labels of every alert.', default: {}, example: { team: 'platform' } }),
    'dashboard.enabled': flag({ help: 'Whether there is a ConfigMap with a dashboard for Grafana.', default: false, example: true }),
    'dashboard.labels': textMap({
      help: 'Its labels, by which Grafana’s sidecar finds it.',
      default: { grafana_dashboard: '1' },
      example: { dashboards: 'yes' },
    }),
    'dashboard.annotations': textMap({ help: 'Its annotations.', default: {}, example: { grafana_folder: 'Cluster' } }),
  }),
};
