/** The node label that the DaemonSet of the agents selects. */
import type { Patch } from '../../kube/api/client.ts';
import { keys } from '../../names/keys.ts';

export const agentLabelValue = 'true';

/** A merge patch of this label alone: other labels stay, even if another client changes them at the same time. */
export function agentLabelPatch(wanted: boolean): Patch {
  const labels = { [keys.agentNode]: wanted ? agentLabelValue : null };
  return { type: 'merge', body: { metadata: { labels } } };
}
