/** The alerts of the chart: `files/alerts.json` for the PrometheusRule, and a runbook page for each of them. */
import { code, table } from '../markdown.ts';

export interface Alert {
  readonly name: string;
  readonly expr: string;
  readonly for: string;
  readonly severity: 'critical' | 'warning' | 'info';
  readonly summary: string;
  /** What is wrong, and what pods feel of it. */
  readonly meaning: string;
  /** What to look at and do, in this order; Markdown. */
  readonly steps: readonly string[];
}

const logs = (part: string): string =>
  `\`kubectl -n archwright logs -l app.kubernetes.io/component=${part} --tail=200\``;

export const alerts: readonly Alert[] = [
  {
    name: 'ArchwrightWebhookDown',
    expr: 'absent(archwright_admissions_total)',
    for: '5m',
    severity: 'critical',
    summary: 'No webhook of archwright is scraped.',
    meaning:
      'No webhook runs, or Prometheus does not reach it. Under `failurePolicy: Ignore` pods are created without a placement and may land on a ' +
      'node that cannot run them; the controller moves those later. Under `Fail` no pod can be created.',
    steps: [
      '`kubectl -n archwright get pods -l app.kubernetes.io/component=webhook`: are they there and ready?',
      'Pods that stay in `ContainerCreating` wait for the Secrets with their certificates, which the controller makes: `kubectl -n archwright describe pod …`, then ' +
        logs('controller'),
      'Pods that are ready and not scraped: does a NetworkPolicy (`networkPolicy.metricsFrom`) or the monitor’s labels (`monitoring.labels`) leave Prometheus out?',
      'To let pods be created meanwhile under `Fail`: `helm upgrade … --reuse-values --set failurePolicy=Ignore`.',
    ],
  },
  {
    name: 'ArchwrightWebhookNotInForce',
    expr: 'max(archwright_webhook_configuration{state="in-force"}) == 0',
    for: '10m',
    severity: 'critical',
    summary: 'The webhook configuration is not in force.',
    meaning: 'The API server does not call the webhook, or not as configured, so pods are created without a placement.',
    steps: [
      'Which state holds instead: `archwright_webhook_configuration == 1`. `waiting`: the webhook has not answered yet, see [ArchwrightWebhookDown](ArchwrightWebhookDown.md). `missing`: somebody deleted the ' +
        'MutatingWebhookConfiguration; `helm upgrade` brings it back. `no-authority`: the Secret with the CA is not there.',
      logs('controller'),
      '`kubectl get mutatingwebhookconfiguration archwright -o yaml`, then `archwright probe`, which asks the API server itself.',
    ],
  },
  {
    name: 'ArchwrightNoLeader',
    expr: 'max(archwright_controller_leading) == 0 or absent(archwright_controller_leading)',
    for: '5m',
    severity: 'critical',
    summary: 'No controller of archwright leads.',
    meaning:
      'Nobody opens gates, renews certificates or keeps the webhook configuration. The webhook stops gating when it sees that nobody leads; ' +
      'pods that are gated already wait.',
    steps: [
      '`kubectl -n archwright get pods -l app.kubernetes.io/component=controller`, and the Lease: `kubectl -n archwright get lease -o yaml`',
      logs('controller'),
      'Pods that must not wait: `archwright clean --dry-run` shows them; `kubectl patch` by a member of `protection.exemptGroups` takes a gate away.',
    ],
  },
  {
    name: 'ArchwrightNoAgents',
    expr: 'max(archwright_fleet_agents{state="ready"}) == 0',
    for: '10m',
    severity: 'critical',
    summary: 'No agent of archwright can be asked.',
    meaning: 'Images that are not in memory stay unknown: their pods wait behind the gate until `maxGateDuration`, then the fallback applies.',
    steps: [
      '`kubectl -n archwright get pods -l app.kubernetes.io/component=agent -o wide`',
      'Agents that are ready and not reached: do the webhook’s nodes reach the agents’ port (`agent.port`, 9443) on every node? A cloud’s security group is the usual reason.',
      `${logs('webhook')}: it says why each agent is left alone, such as a certificate that is not trusted.`,
    ],
  },
  {
    name: 'ArchwrightAgentsResting',
    expr: 'max(archwright_fleet_agents{state="resting"}) / (max(archwright_fleet_agents{state="ready"}) + max(archwright_fleet_agents{state="resting"})) > 0.2',
    for: '15m',
    severity: 'warning',
    summary: 'More than a fifth of the agents do not answer.',
    meaning: 'Others answer for them, unless only their nodes have the credentials for an image.',
    steps: [`${logs('webhook')} names them.`, '`kubectl -n archwright describe pod` of one of them; then its node: is it healthy, is its clock right?'],
  },
  {
    name: 'ArchwrightAdmissionFaults',
    expr: 'sum(increase(archwright_admission_faults_total[15m])) > 0',
    for: '0m',
    severity: 'warning',
    summary: 'Objects were let through because the webhook could not understand them.',
    meaning: 'Their pods have no placement. The fault is in archwright or in an object that no API server should have sent.',
    steps: [`${logs('webhook')}: the line \`admission failed, the object was let through\` has the error.`, 'Report it with that line.'],
  },
  {
    name: 'ArchwrightSlowAdmissions',
    expr: 'histogram_quantile(0.99, sum by (le) (rate(archwright_admission_duration_seconds_bucket[5m]))) > 0.5',
    for: '15m',
    severity: 'warning',
    summary: 'One of a hundred admissions takes longer than half a second.',
    meaning: 'The creation of pods is slower than it should be. An admission waits `inlineBudget` for an unknown image at most, so more is want of CPU.',
    steps: [
      'CPU of the webhook and its limits; `nodejs_eventloop_lag_p99_seconds` says whether the process itself is late.',
      'More replicas (`webhook.replicas`, `webhook.autoscaling.enabled`), or a larger CPU request.',
    ],
  },
  {
    name: 'ArchwrightPodsGatedLong',
    expr: 'sum by (reason) (archwright_gated_pods{age="older"}) > 0',
    for: '10m',
    severity: 'warning',
    summary: 'Pods wait behind the gate for longer than five minutes ({{ $labels.reason }}).',
    meaning: 'The controller should have applied the fallback by then.',
    steps: [
      '`kubectl get pods -A --field-selector=status.phase=Pending -o json | jq -r \'.items[] | select(.spec.schedulingGates) | .metadata.namespace + "/" + .metadata.name\'`',
      '`kubectl describe pod …` shows the events of archwright; `archwright explain pod/NAME` asks again.',
      '`archwright_gate_failures_total` says why gates are not opened: `refused` is a missing right or another admission webhook.',
    ],
  },
  {
    name: 'ArchwrightImagesRefused',
    expr: 'sum by (code) (increase(archwright_admission_unknown_images_total{code=~"unauthorized|forbidden"}[30m])) > 0',
    for: '15m',
    severity: 'warning',
    summary: 'Images cannot be inspected: {{ $labels.code }}.',
    meaning: 'No credential that archwright finds opens their registry. Either the nodes cannot pull them too, or archwright does not see what the nodes use.',
    steps: [
      `${logs('agent')} names the images.`,
      '`kubectl -n archwright exec AGENT-POD -- archwright inspect --verbose IMAGE` says which sources were tried and what each gave.',
      '`kubectl -n archwright exec AGENT-POD -- archwright agent --check` says which files of the node are seen; see `kubeletConfig` and `agent.hostPaths`.',
    ],
  },
  {
    name: 'ArchwrightRateLimited',
    expr: 'sum(increase(archwright_facts_failures_total{code="rate-limited"}[15m])) > 10',
    for: '15m',
    severity: 'warning',
    summary: 'A registry limits how often it may be asked.',
    meaning: 'Images that are not in memory stay unknown until it answers again; known ones go on serving.',
    steps: [
      'Credentials for that registry (`registryCredentials`) raise its limit; a mirror (`proxies`) takes the requests away from it.',
      '`agent.stateHostPath` keeps what agents know across restarts of their pods.',
    ],
  },
  {
    name: 'ArchwrightSourceBroken',
    expr: 'max by (source) (archwright_source_broken) == 1',
    for: '15m',
    severity: 'warning',
    summary: 'Something of the source {{ $labels.source }} cannot be used.',
    meaning: 'A file of a node or a mounted Secret is malformed; its last good content may still be in force.',
    steps: ['`kubectl -n archwright exec AGENT-POD -- archwright agent --check` names the file and what is wrong.', logs('agent')],
  },
  {
    name: 'ArchwrightConfigBroken',
    expr: 'min(archwright_config_last_reload_successful) == 0',
    for: '5m',
    severity: 'warning',
    summary: 'The configuration as it is now cannot be used.',
    meaning: 'The last good one stays in force; a pod that starts now ends with exit code 2.',
    steps: [
      '`kubectl -n archwright get configmap archwright -o jsonpath=\'{.data.archwright\\.toml}\' | archwright config check -`, which names line and key.',
      'Correct the values and `helm upgrade`, or `helm rollback`.',
    ],
  },
  {
    name: 'ArchwrightCertificateExpires',
    expr: 'min by (use) (archwright_tls_certificate_expiry_timestamp_seconds) - time() < 7 * 86400',
    for: '1h',
    severity: 'critical',
    summary: 'A certificate in use ({{ $labels.use }}) expires within a week.',
    meaning: 'After that the API server does not call the webhook, or the webhook cannot ask agents. Certificates are replaced after two thirds of their life.',
    steps: [
      'Where `certificateTime` is shorter than three weeks, this alert says nothing: change it.',
      `Built-in certificates: ${logs('controller')}, and does a controller lead ([ArchwrightNoLeader](ArchwrightNoLeader.md))?`,
      'cert-manager: `kubectl -n archwright get certificates`. Otherwise: who writes the Secrets?',
      'A Secret that is new and a certificate in use that is old: `archwright_tls_reloads_total{outcome="failed"}`; restart the pods.',
    ],
  },
  {
    name: 'ArchwrightExecFormatErrors',
    expr: 'sum by (architecture) (increase(archwright_exec_format_errors_total[15m])) > 0',
    for: '0m',
    severity: 'warning',
    summary: 'Containers ended with an exec format error on {{ $labels.architecture }}.',
    meaning: 'An image claims an architecture that its binary is not for. It is avoided there from now on, for `brokenImageTime`.',
    steps: [
      '`kubectl get events -A --field-selector=reason=ExecFormatError` and the ConfigMap `archwright-broken-images` name the image.',
      'Tell its author. Until it is repaired: `imageOverrides` says which architectures it really has.',
    ],
  },
  {
    name: 'ArchwrightMisplacedPods',
    expr: 'max(archwright_misplaced_pods) > 0',
    for: '30m',
    severity: 'warning',
    summary: '{{ $value }} pods are on nodes that cannot run their images, and stay there.',
    meaning:
      'They are not ready, and what archwright does about such pods does not help them: a budget holds them, no other node takes them, their ' +
      'workload was moved before, a DaemonSet makes them anew, or `misplacedPods` is `event`.',
    steps: [
      '`kubectl get events -A | grep MisplacedPod` names each pod with its images and why it stays; the way out of each is in [misplaced pods](../misplaced-pods.md#events).',
      '`sum by (outcome) (increase(archwright_misplaced_pods_total[1h]))` says which reasons there are: `held`, `no-node`, `no-architecture`, `again`, `last-try`, `unplaced`, `told`, `failed`.',
      `${logs('controller')} has the same.`,
    ],
  },
  {
    name: 'ArchwrightTaintsHeld',
    expr: 'max by (reason) (archwright_taint_holds) > 0',
    for: '30m',
    severity: 'info',
    summary: 'Nodes wait for their taint: {{ $labels.reason }}.',
    meaning: 'They would keep pods away that have to run there, so they are left without their taint.',
    steps: [
      '`kubectl get events -A --field-selector=reason=TaintHeldBack` names pods and DaemonSets; `reason` is one of [those with a way out each](../taints.md#when-a-taint-does-not-come).',
      `${logs('controller')} has the same.`,
    ],
  },
  {
    name: 'ArchwrightControllerFaults',
    expr: 'sum by (feature) (increase(archwright_controller_feature_failures_total[15m])) > 0',
    for: '0m',
    severity: 'warning',
    summary: 'The part {{ $labels.feature }} of the controller ended by a defect and was started again.',
    meaning: 'It works on, or fails again and again.',
    steps: [`${logs('controller')} has the error; report it.`],
  },
  {
    name: 'ArchwrightForbidden',
    expr: 'sum by (verb) (increase(archwright_kube_requests_total{code="403"}[15m])) > 0',
    for: '15m',
    severity: 'warning',
    summary: 'The API server refuses requests ({{ $labels.verb }}).',
    meaning: 'A right is missing, or an admission webhook or policy of somebody else refuses a change.',
    steps: [
      `${logs('controller')} and ${logs('webhook')} name the object.`,
      'Under `rbac.pullSecrets: none` or `namespaces`, reads of pull secrets are refused on purpose: silence `verb="get"`.',
      'With `rbac.create: false`: compare your roles with `helm template … --set rbac.create=true`.',
    ],
  },
];

/** What the template of the PrometheusRule reads. */
export function alertsFile(): string {
  const rules = alerts.map(({ name, expr, for: time, severity, summary }) => ({ name, expr, for: time, severity, summary }));
  return `${JSON.stringify(rules, undefined, 2)}\n`;
}

/** The list of the runbooks. */
export function runbookIndex(): string {
  const rows = alerts.map(({ name, severity, summary }) => [`[${name}](${name}.md)`, severity, withLabels(summary)]);
  return (
    '# Runbooks\n\nOne page for each alert of the chart ([monitoring](../../../charts/archwright/README.md#monitoring)). ' +
    'The annotation `runbook_url` of a firing alert links to its page.\n\n' +
    `${table(['Alert', 'Severity', 'Summary'], rows)}\n`
  );
}

function withLabels(summary: string): string {
  return summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => code(label)).replaceAll('{{ $value }}', 'Some');
}

/** The page of an alert. */
export function runbookPage({ name, expr, for: time, severity, summary, meaning, steps }: Alert): string {
  const list = steps.map((step, index) => `${index + 1}. ${step}`).join('\n');
  return (
    `# ${name}\n\n${withLabels(summary)}\n\n` +
    `\`\`\`promql\n${expr}\n\`\`\`\n\nfor ${time}, ${severity}\n\n## What it means\n\n${meaning}\n\n## What to do\n\n` +
    `${list}\n\nThe commands take the release \`archwright\` in the namespace \`archwright\`.\n`
  );
}
