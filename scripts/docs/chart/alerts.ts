/** The alerts of the chart: `files/alerts.json` for the PrometheusRule, and a runbook page for each. */
import { code } from '../markdown.ts';

export interface Alert {
  readonly name: string;
  readonly expr: string;
  readonly for: string;
  readonly severity: 'critical' | 'warning' | 'info';
  readonly summary: string;
  /** The problem, and its effect on pods. */
  readonly meaning: string;
  /** Checks and actions in order; Markdown. */
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
    summary: 'Prometheus scrapes no archwright webhook.',
    meaning:
      'Under `failurePolicy: Ignore` pods are created without a placement, and evicted later from nodes that cannot run them. Under `Fail` no pod can be created outside `excludedNamespaces`.',
    steps: [
      '`kubectl -n archwright get pods -l app.kubernetes.io/component=webhook`: are they ready?',
      '`ContainerCreating`: they wait for certificates from the controller. ' +
        logs('controller') +
        ' shows why.',
      'Ready but not scraped: check `networkPolicy.metricsFrom` and `monitoring.labels`.',
      'If pods are refused: `kubectl delete mutatingwebhookconfiguration archwright` lets them in. Afterwards, `helm upgrade archwright charts/archwright -n archwright -f values.yaml` restores it.',
    ],
  },
  {
    name: 'ArchwrightWebhookNotInForce',
    expr: 'max(archwright_webhook_configuration{state="in-force"}) == 0',
    for: '10m',
    severity: 'critical',
    summary: 'The webhook configuration is not in force.',
    meaning: 'Pods are created without a placement.',
    steps: [
      '`archwright_webhook_configuration == 1` has the [state](../certificates.md#the-webhook-configuration). `waiting`: see [ArchwrightWebhookDown](ArchwrightWebhookDown.md). `missing`: `helm upgrade archwright charts/archwright -n archwright -f values.yaml` restores the MutatingWebhookConfiguration.',
      `${logs('controller')} has the cause.`,
      'When it is fixed, `archwright probe` checks that the API server calls the webhook.',
    ],
  },
  {
    name: 'ArchwrightNoLeader',
    expr: 'max(archwright_controller_leading) == 0 or absent(archwright_controller_leading)',
    for: '5m',
    severity: 'critical',
    summary: 'No archwright controller leads.',
    meaning:
      'New pods are not gated. Gated pods wait. Certificates and the webhook configuration are not maintained.',
    steps: [
      '`kubectl -n archwright get pods,lease` shows if controllers run.',
      `${logs('controller')} has the [cause](../troubleshooting.md#no-controller-leads).`,
      'To release pods that must not wait, [remove their gates](../../use/gates.md#when-pods-stay-gated).',
    ],
  },
  {
    name: 'ArchwrightNoAgents',
    expr: 'min(archwright_fleet_available) == 0',
    for: '2m',
    severity: 'critical',
    summary: 'No archwright agent answers a webhook or controller.',
    meaning:
      'Images that are not in memory stay unknown. Their pods are not gated: they get `fallbackArchitecture`, or may run anywhere.',
    steps: [
      '[`archwright status`](../status.md) names the cause. If it does not: `kubectl -n archwright describe daemonset archwright-agent` (*violates PodSecurity*) and `kubectl -n archwright get pods -l app.kubernetes.io/component=agent -o wide`. With [`agentNodes`](../agent-nodes.md), agents run only on nodes with the label `arch.example/agent=true`.',
      'Agents are ready, but unreachable: a security group may block their port (`agent.port`, 9443) between nodes.',
      `${logs('webhook')} shows why each agent is not used.`,
    ],
  },
  {
    name: 'ArchwrightAgentsUnhealthy',
    expr: 'max(archwright_fleet_agents{state="silent"}) / (max(archwright_fleet_agents{state="ready"}) + max(archwright_fleet_agents{state="silent"})) > 0.2',
    for: '15m',
    severity: 'warning',
    summary: 'More than a fifth of the agents do not answer.',
    meaning: 'Other agents answer for them, unless only their nodes have the credentials for an image.',
    steps: [
      `${logs('webhook')} names these agents.`,
      'Check one of them and its node: `kubectl -n archwright describe pod AGENT-POD`. Is its clock right? `kubectl debug node/NODE -it --image=busybox -- date`',
    ],
  },
  {
    name: 'ArchwrightAdmissionFaults',
    expr: 'sum(increase(archwright_admissions_total{outcome="fault"}[15m])) > 0',
    for: '0m',
    severity: 'warning',
    summary: 'Objects were admitted unchanged because the webhook failed on them.',
    meaning: 'Their pods have no placement. This is a defect in archwright.',
    steps: [
      `${logs('webhook')}: the line \`admission failed, the object was let through\` has the error.`,
      'Report the defect with that line.',
    ],
  },
  {
    name: 'ArchwrightSlowAdmissions',
    expr: 'histogram_quantile(0.99, sum by (le) (rate(archwright_admission_duration_seconds_bucket[5m]))) > 0.5',
    for: '15m',
    severity: 'warning',
    summary: 'One in a hundred admissions takes longer than half a second.',
    meaning:
      'An admission waits at most `inlineBudget` for an unknown image. If it takes longer, the webhook lacks CPU.',
    steps: [
      'Compare the CPU usage of the webhook with its limit, and look at `nodejs_eventloop_lag_p99_seconds`.',
      'Add replicas (`webhook.replicas`, `webhook.autoscaling.enabled`), or raise the CPU request. Other causes: [creating pods is slow](../troubleshooting.md#creating-pods-is-slow).',
    ],
  },
  {
    name: 'ArchwrightPodsGatedLong',
    expr: 'sum by (reason) (archwright_gated_pods{age="older"}) > 0',
    for: '10m',
    severity: 'warning',
    summary: 'Pods have been gated for longer than five minutes ({{ $labels.reason }}).',
    meaning: 'The controller should have applied the fallback by now.',
    steps: [
      'If `maxGateDuration` is longer than five minutes, the alert also fires without a problem.',
      '[`archwright status`](../status.md) lists the pods.',
      '`kubectl -n NAMESPACE describe pod NAME` shows events. `archwright explain pod/NAME -n NAMESPACE` decides again and explains the decision.',
      'In `archwright_gate_failures_total`, `refused` is a missing right or another admission webhook. See [gates](../../use/gates.md#when-pods-stay-gated).',
    ],
  },
  {
    name: 'ArchwrightImagesRefused',
    expr: 'sum by (code) (increase(archwright_admission_unknown_images_total{code=~"unauthorized|forbidden"}[30m])) > 0',
    for: '15m',
    severity: 'warning',
    summary: 'Images cannot be inspected: {{ $labels.code }}.',
    meaning:
      'No credential is accepted. Either the nodes cannot pull these images, or archwright does not find the credentials that the nodes use.',
    steps: [
      `${logs('agent')} names the images.`,
      '`kubectl -n archwright exec AGENT-POD -- archwright inspect --verbose IMAGE` shows which credentials were tried. [The registry returns 401](../troubleshooting.md#the-registry-returns-401) has the remedies.',
    ],
  },
  {
    name: 'ArchwrightRateLimited',
    expr: 'sum(increase(archwright_facts_failures_total{code="rate-limited"}[15m])) > 10',
    for: '15m',
    severity: 'warning',
    summary: 'A registry limits requests.',
    meaning: 'Images that are not in memory stay unknown until the registry answers again.',
    steps: [
      `${logs('agent')} names the registry (\`rate-limited\`).`,
      'Set credentials with a higher limit (`registryCredentials`), or a mirror (`proxies`).',
      'To keep the image facts of agents across restarts, set `agent.stateHostPath`.',
    ],
  },
  {
    name: 'ArchwrightDockerHubLimitLow',
    expr: 'min(archwright_registry_limit_remaining_requests{registry="docker.io"} / archwright_registry_limit_requests{registry="docker.io"}) < 0.1',
    for: '5m',
    severity: 'warning',
    summary: 'Less than a tenth of the requests that Docker Hub allows is left.',
    meaning:
      'Without any, it refuses pulls of nodes (`429`), and images that are not in memory stay unknown.',
    steps: [
      'The limit is for an account, or without one for an IP address. `sum by (instance) (archwright_registry_limit_remaining_requests{registry="docker.io"})` shows the agents.',
      'Set credentials with a higher limit (`registryCredentials`), or a mirror (`proxies`).',
    ],
  },
  {
    name: 'ArchwrightSourceBroken',
    expr: 'max by (source) (archwright_source_broken) == 1',
    for: '15m',
    severity: 'warning',
    summary: 'Part of the source {{ $labels.source }} cannot be used.',
    meaning:
      'A file of a node or a mounted Secret is missing, misnamed or malformed. Its last good content may still be in force.',
    steps: [
      '`kubectl -n archwright get events --field-selector=reason=CredentialProblem` names nodes, files and problems. See [credentials are not used](../troubleshooting.md#credentials-are-not-used).',
      '`kubectl -n archwright exec AGENT-POD -- archwright agent --check` shows all sources of a node.',
      `Without such events: ${logs('agent')}.`,
    ],
  },
  {
    name: 'ArchwrightConfigBroken',
    expr: 'min(archwright_config_last_reload_successful) == 0',
    for: '5m',
    severity: 'warning',
    summary: 'The current configuration file cannot be used.',
    meaning: 'The last good one stays in force. Pods that start now end with exit code 2.',
    steps: [
      "`kubectl -n archwright get configmap archwright -o jsonpath='{.data.archwright\\.toml}' | archwright config check -` shows line and key. The logs have them too: `configuration is broken`.",
      'Correct the values and run `helm upgrade`, or `helm rollback`.',
    ],
  },
  {
    name: 'ArchwrightCertificateExpires',
    expr: 'min by (use) (archwright_tls_certificate_expiry_timestamp_seconds > 0) - time() < 86400',
    for: '1h',
    severity: 'critical',
    summary: 'A certificate in use ({{ $labels.use }}) expires within a day.',
    meaning: 'After that, the API server cannot call the webhook, or the webhook cannot reach agents.',
    steps: [
      `Built-in certificates: does a controller lead ([ArchwrightNoLeader](ArchwrightNoLeader.md))? ${logs('controller')} has errors.`,
      'cert-manager: `kubectl -n archwright get certificates`. Otherwise check your own issuer.',
      'The [certificate in the Secret](../certificates.md#secrets) is new, but the one in use is old: if a log has `a TLS certificate cannot be used`, correct the Secret; otherwise `kubectl -n archwright rollout restart deployment,daemonset`.',
      'With a `certificateTime` of less than five days, this alert also fires without a problem.',
    ],
  },
  {
    name: 'ArchwrightExecFormatErrors',
    expr: 'sum by (architecture) (increase(archwright_exec_format_errors_total[15m])) > 0',
    for: '0m',
    severity: 'warning',
    summary: 'Containers ended with an exec format error on {{ $labels.architecture }}.',
    meaning:
      'The manifest of an image names this architecture, but a binary is for another one. New pods of the namespace avoid the architecture for `brokenImageTime`.',
    steps: [
      '`kubectl get events -A --field-selector=reason=ExecFormatError` and the ConfigMap `archwright-broken-images` name the image.',
      'Report it to the author of the image. Until it is fixed, set its real architectures in `imageOverrides`.',
    ],
  },
  {
    name: 'ArchwrightProgramExecFormatErrors',
    expr: 'sum by (architecture) (increase(archwright_program_exec_format_errors_total[15m])) > 0',
    for: '0m',
    severity: 'info',
    summary: 'Programs in running containers cannot be executed on {{ $labels.architecture }}.',
    meaning:
      'A container has a program for another architecture, or starts a script without `#!`. Placement does not change.',
    steps: [
      '`kubectl get events -A --field-selector=reason=ProgramExecFormatError` names container, image and the process that [started the program](../exec-format-errors.md#programs-that-fail-later).',
      'Is the program for another architecture? Report it to the author of the image, and set the real architectures in `imageOverrides`.',
    ],
  },
  {
    name: 'ArchwrightMisplacedPods',
    expr: 'max(archwright_misplaced_pods) > 0',
    for: '30m',
    severity: 'warning',
    summary: '{{ $value }} pods are on nodes that cannot run their images, and stay there.',
    meaning:
      'A PodDisruptionBudget blocks the eviction, no other node accepts them, their workload was evicted before, a DaemonSet recreates them, or `misplacedPods` is `event`.',
    steps: [
      '`kubectl get events -A | grep MisplacedPod` names each pod and the [reason](../misplaced-pods.md#events).',
      '`sum by (outcome) (increase(archwright_misplaced_pods_total[1h]))` counts the reasons.',
    ],
  },
  {
    name: 'ArchwrightImageLostArchitecture',
    expr: 'max by (architecture) (archwright_drifted_tags{change="lost"}) > 0',
    for: '0m',
    severity: 'warning',
    summary: '{{ $value }} tags of running pods no longer have {{ $labels.architecture }}.',
    meaning: 'Running pods are not affected. New pods are placed on other nodes, or stay pending.',
    steps: [
      '`kubectl get events -A --field-selector=reason=ImageLostArchitecture` names workloads, and the ConfigMap `archwright-drift` images ([drift](../drift.md)).',
      'Push the tag again with all platforms, or pin the digest that still runs.',
    ],
  },
  {
    name: 'ArchwrightTaintsHeld',
    expr: 'max by (reason) (archwright_taint_blockers) > 0',
    for: '30m',
    severity: 'info',
    summary: 'Nodes wait for their taint: {{ $labels.reason }}.',
    meaning: 'With the taint, pods that must run there could not be scheduled.',
    steps: [
      '`kubectl get events -A --field-selector=reason=TaintHeldBack` names pods and DaemonSets. Each `reason` has [a remedy](../taints.md#when-a-taint-is-held-back).',
    ],
  },
  {
    name: 'ArchwrightControllerFaults',
    expr: 'sum by (feature) (increase(archwright_controller_feature_failures_total[15m])) > 0',
    for: '0m',
    severity: 'warning',
    summary: 'The feature {{ $labels.feature }} of the controller failed and was restarted.',
    meaning: 'This is a defect in archwright.',
    steps: [`${logs('controller')} has the error. Report it.`],
  },
  {
    name: 'ArchwrightForbidden',
    expr: 'sum by (verb) (increase(archwright_kube_requests_total{code="403"}[15m])) > 0',
    for: '15m',
    severity: 'warning',
    summary: 'The API server refuses requests ({{ $labels.verb }}).',
    meaning: 'A right is missing, or another admission webhook or policy refuses a change.',
    steps: [
      `${logs('controller')} and ${logs('webhook')} name the object.`,
      'Under `rbac.pullSecrets: none` or `namespaces`, refused reads of pull secrets are intended: silence `verb="get"`.',
      'With `rbac.create: false`, compare your roles with `helm template archwright charts/archwright -f values.yaml --set rbac.create=true`.',
    ],
  },
];

/** The input of the PrometheusRule's template. */
export function alertsFile(): string {
  const rules = alerts.map(({ name, expr, for: time, severity, summary }) => ({
    name,
    expr,
    for: time,
    severity,
    summary,
  }));
  return `${JSON.stringify(rules, undefined, 2)}\n`;
}

/** The list of the runbooks. */
export function runbookIndex(): string {
  const severities = [...new Set(alerts.map(({ severity }) => severity))];
  const rows = severities.map((each) => {
    const links = alerts
      .filter(({ severity }) => severity === each)
      .map(({ name }) => `[${name}](${name}.md)`);
    return `- ${each}: ${links.join(', ')}`;
  });
  return (
    '# Runbooks\n\nThe meaning of each alert of the chart, and what to do. Commands use the release and namespace `archwright`. The annotation `runbook_url` of a firing ' +
    'alert links to its page. To create the alerts, enable [monitoring](../../../charts/archwright/README.md#monitoring).\n\n' +
    `${rows.join('\n')}\n`
  );
}

function withLabels(summary: string): string {
  return summary
    .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => code(label))
    .replaceAll('{{ $value }}', 'Some');
}

/** The page of an alert. */
export function runbookPage({ name, summary, meaning, steps }: Alert): string {
  const list = steps.map((step, index) => `${index + 1}. ${step}`).join('\n');
  return `# ${name}\n\n${withLabels(summary)} ${meaning}\n\n${list}\n`;
}
