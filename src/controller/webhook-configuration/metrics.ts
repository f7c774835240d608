/** Metrics of the webhook configuration. */
import type { MetricSpec } from '../../telemetry/metrics.ts';
import type { Leading } from '../leadership/leading.ts';

/** What holds, and what the log says of it. */
const sentences = {
  'in-force': 'the webhook configuration is as it should be',
  waiting: 'a webhook is not in force, because it does not answer',
  relaxed: 'no webhook is there: its failurePolicy is Ignore until it comes back',
  missing: 'the webhook configuration does not exist; nothing is created in its place',
  'no-file': 'the webhooks file cannot be used',
  'no-authority': 'the Secret of the webhook has no ca.crt that could be its caBundle',
  failed: 'the webhook configuration cannot be kept; trying again',
} as const;
export type ConfigurationState = keyof typeof sentences;
const states = Object.keys(sentences) as readonly ConfigurationState[];

export const webhookConfigurationState: MetricSpec = {
  name: 'archwright_webhook_configuration',
  type: 'gauge',
  help: 'What holds of the webhook configuration, as the leader sees it: 1 for one state, 0 for the others.',
  labels: { state: states },
};

export const webhookConfigurationMetrics: readonly MetricSpec[] = [webhookConfigurationState];

export interface StateView {
  /** Tells a state; the log has one line for each change. */
  readonly say: (state: ConfigurationState, details?: object) => void;
  end(): void;
}

export function showState({ metrics, log }: Pick<Leading, 'metrics' | 'log'>, name: string): StateView {
  const levels = states.map((state) => [state, metrics.gauge(webhookConfigurationState, { state })] as const);
  let told = '';
  return {
    say: (state, details = {}) => {
      for (const [each, level] of levels) level.set(each === state ? 1 : 0);
      const line = JSON.stringify([state, details]);
      if (line === told) return;
      told = line;
      const fields = { name, state, ...details };
      if (state === 'in-force') log.info(fields, sentences[state]);
      else log.warn(fields, sentences[state]);
    },
    end: () => {
      for (const [, level] of levels) level.set(0);
    },
  };
}
