import { gauge, type MetricSpec } from '../../../telemetry/metrics.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';

/** Each state, and its line in the log. */
const sentences = {
  'in-force': 'the webhook configuration is up to date',
  waiting: 'a webhook is not in force, because it does not answer',
  missing: 'the webhook configuration does not exist; run helm upgrade, or create it',
  'no-file': 'the webhooks file cannot be used',
  'no-authority': 'the Secret of the webhook has no ca.crt that could be its caBundle',
  failed: 'the webhook configuration cannot be updated; trying again',
} as const;
type ConfigurationState = keyof typeof sentences;
const states = Object.keys(sentences) as readonly ConfigurationState[];

const webhookConfigurationState = gauge(
  'archwright_webhook_configuration',
  'Set to 1 for the current state, by the leader.',
  { state: states },
);

export const webhookConfigurationMetrics: readonly MetricSpec[] = [webhookConfigurationState];

/** @returns shows a state; the log has one line for each change */
export function showState({ metrics, log }: Pick<LeaderContext, 'metrics' | 'log'>, name: string) {
  const gauges = states.map((state) => [state, metrics.gauge(webhookConfigurationState, { state })] as const);
  let lastLine = '';
  return (state: ConfigurationState, details: object = {}): void => {
    for (const [each, gauge] of gauges) gauge.set(each === state ? 1 : 0);
    const line = JSON.stringify([state, details]);
    if (line === lastLine) return;
    lastLine = line;
    const level = state === 'in-force' ? 'info' : 'warn';
    log[level]({ name, state, ...details }, sentences[state]);
  };
}
