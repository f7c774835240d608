/** Metrics of the controller's server for image facts. */
import { counter } from '../../telemetry/metrics.ts';

const outcomes = ['answered', 'refused', 'invalid', 'overloaded', 'failed'] as const;
export type FactsRequestOutcome = (typeof outcomes)[number];

export const factsRequests = counter(
  'archwright_controller_facts_requests_total',
  'Requests of `explain` and `report`. `refused`: the caller is unknown or has no right.',
  { outcome: outcomes },
);
