/** Handlers of platforms.json. */
import {
  acceptedPlatforms,
  only,
  onlyStrict,
  selectFromIndex,
  type PlatformMatcher,
} from '../../src/nodes/platform-match.ts';
import type { NodeClass, PullMode } from '../../src/nodes/node-class.ts';
import { selectPlatform } from '../../src/nodes/selection.ts';
import { UnknownMachine, architectureOfLabel, cpuVariantOfMachine } from './upstream/platform-node.ts';
import { onlyOs, sortPlatforms } from './upstream/platform-order.ts';
import { formatFullPlatform, parsePlatform } from './upstream/platform-specifier.ts';
import {
  formatPlatform,
  normalizeArchitecture,
  normalizeOs,
  type FullPlatform,
} from '../../src/names/platform.ts';
import { notCompared, type Handlers, type Input } from './handler.ts';
import { isObject, list, object, text, texts } from './input.ts';

export const platforms: Handlers = {
  match: (input) => {
    if (namesFeatures(input)) return notCompared;
    const matcher = matcherOf(text(input, 'mode'), parsePlatform(text(input, 'node')));
    const accepts = (candidate: string): boolean => matcher.matches(parsePlatform(candidate));
    const candidates = texts(input, 'candidates');
    return {
      match: candidates.filter(accepts),
      noMatch: candidates.filter((candidate) => !accepts(candidate)),
    };
  },

  order: (input) => {
    if (namesFeatures(input)) return notCompared;
    const node = parsePlatform(text(input, 'node'));
    const candidates = texts(input, 'platforms').map((candidate) => parsePlatform(candidate));
    const results = text(input, 'mode')
      .split('|')
      .map((mode) => sortPlatforms(candidates, matcherOf(mode, node)).map(formatFullPlatform));
    const [first] = results;
    // All modes of a case must give the same order; otherwise all orders are shown.
    const agree = results.every((result) => result.join() === first?.join());
    return { sorted: agree ? first : results };
  },

  cpu_variant_from_uname: (input) => {
    try {
      return { variant: cpuVariantOfMachine(text(input, 'machine')) };
    } catch (error) {
      if (error instanceof UnknownMachine) return { variant: '', error: error.message };
      throw error;
    }
  },

  parse: (input, { expected }) => {
    const platform = parsePlatform(text(input, 'platform'));
    const wanted = isObject(expected) ? expected : {};
    const formatter = wanted['formatter'];
    const matcher = onlyStrict(platform);
    return {
      ok: true,
      platform,
      formatted: formatter === 'Format' ? formatPlatform(platform) : formatFullPlatform(platform),
      formatter,
      matches: namesFeatures(input)
        ? notCompared
        : list(wanted, 'matches').filter((candidate) => matcher.matches(candidate as FullPlatform)),
    };
  },

  format_all: (input) => ({
    formatted: formatFullPlatform(object(input, 'platform') as unknown as FullPlatform),
  }),

  normalize_arch: (input) => normalizeArchitecture(text(input, 'architecture'), text(input, 'variant')),

  normalize_os: (input) => ({ os: normalizeOs(text(input, 'os')) }),

  only_vector: (input) => ({
    accepted: acceptedPlatforms(parsePlatform(text(input, 'node'))).map(formatPlatform),
  }),

  select_from_index: (input) => {
    if (namesFeatures(input)) return notCompared;
    const node = parsePlatform(text(input, 'node'));
    const entries = list(input, 'manifests').map(writtenPlatform);
    const selected = (pullMode: PullMode, matcher: PlatformMatcher): readonly number[] => {
      const indices = selectFromIndex(entries, matcher);
      const chosen = chosenOn(node, pullMode, entries);
      // Shown if the decision takes another entry than the first.
      return chosen === indices[0] ? indices : [chosen ?? -1, ...indices];
    };
    return {
      localPull: selected('local', only(node)),
      transferService: selected('transfer', onlyStrict(node)),
    };
  },

  node_label: (input) => ({
    goarch: text(input, 'label'),
    ociArchitecture: architectureOfLabel(text(input, 'label')),
  }),
};

/** archwright compares no features: it takes a platform that needs some for one that may not fit. */
function namesFeatures(input: Input): boolean {
  return /\(.*\+|osFeatures|os\.features/.test(JSON.stringify(input));
}

/** The decision's choice for a node. Vectors omit the config of an entry without platform: here, it fits. */
function chosenOn(
  node: FullPlatform,
  pullMode: PullMode,
  entries: readonly (FullPlatform | undefined)[],
): number | undefined {
  const { os, architecture, variant, osVersion } = node;
  const platforms = entries.map((entry) => entry ?? { ...node, unnamed: true as const });
  const nodeClass: NodeClass = {
    os,
    architecture,
    runtime: { name: 'containerd', version: '2.4.2' },
    pullMode,
    ...(variant !== undefined && { armVariant: variant }),
    ...(osVersion !== undefined && { osVersion }),
  };
  return selectPlatform(platforms, nodeClass).chosen;
}

/** An entry without platform may be written as null, as {} or as a manifest with `platform: null`. */
function writtenPlatform(entry: unknown): FullPlatform | undefined {
  return isObject(entry) && typeof entry['architecture'] === 'string'
    ? (entry as unknown as FullPlatform)
    : undefined;
}

function matcherOf(mode: string, node: FullPlatform): PlatformMatcher {
  switch (mode) {
    case 'only':
      return only(node);
    case 'only_strict':
      return onlyStrict(node);
    case 'only_os':
      return onlyOs(node);
    // Of one platform, these are the same.
    case 'ordered':
    case 'any':
      return onlyStrict(node);
    default:
      throw new TypeError(`unknown mode ${mode}`);
  }
}
