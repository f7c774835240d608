/** The effective policy: what the configuration means for a pod. Made once for each configuration, not for each pod. */
import type { OnUnknownImage, Policy, Preference, TolerationTemplate } from './policy.ts';
import type { Configuration } from './settings/all.ts';

/** The taint that GKE sets on nodes of an architecture of which images are often lacking. */
const architectureTaint: TolerationTemplate = {
  key: 'kubernetes.io/arch',
  operator: 'Equal',
  effect: 'NoSchedule',
};

/** The largest that Kubernetes takes; with one preferred architecture there is nothing to weigh it against. */
const fullWeight = 100;

/** Makes the policy of a configuration. */
export function policyFor(configuration: Configuration): Policy {
  const { namespace, excludedNamespaces } = configuration;
  return {
    schedulableArchitectures: configuration.schedulableArchitectures,
    preference: preference(configuration),
    fallbackArchitecture: configuration.fallbackArchitecture,
    onUnknownImage: onUnknownImage(configuration),
    onNoCommonArchitecture: configuration.onNoCommonArchitecture,
    matchNodeLabels: configuration.matchNodeLabels,
    tolerations: tolerations(configuration),
    architectures: configuration.architectures,
    excludedNamespaces: [
      ...new Set([...excludedNamespaces, ...(namespace === undefined ? [] : [namespace])]),
    ],
    requirePullableNodes: configuration.requirePullableNodes,
  };
}

function preference(configuration: Configuration): Preference | undefined {
  const { preferredArchitecture, preferredWeights, preferenceMode: mode } = configuration;
  const weights =
    preferredArchitecture === undefined ? preferredWeights : { [preferredArchitecture]: fullWeight };
  return Object.keys(weights).length === 0 ? undefined : { weights, mode, origin: 'configuration' };
}

/** A gate is chosen only where a person asked for just that: nothing here would take it away again. */
function onUnknownImage(configuration: Configuration): OnUnknownImage {
  return (
    configuration.onUnknownImage ?? (configuration.fallbackArchitecture === undefined ? 'allow' : 'fallback')
  );
}

function tolerations(configuration: Configuration): readonly TolerationTemplate[] {
  const templates = configuration.tolerations;
  if (!configuration.tolerateArchitectureTaint) return templates;
  const covered = templates.some(
    ({ key, effect }) =>
      key === architectureTaint.key && (effect === undefined || effect === architectureTaint.effect),
  );
  return covered ? templates : [...templates, architectureTaint];
}
