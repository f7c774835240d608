/**
 * Classes of nodes that cannot pull or run the images, although others of their architecture can. A label for
 * the CPU level excludes them if it tells them from the others, otherwise their hostnames. New nodes, and
 * nodes with too few known facts, stay eligible. A gated pod is excluded from nothing: its images are
 * unknown, and nothing that is added to it can be removed.
 */
import type { ImageFacts } from '../../../images/facts/facts.ts';
import { listed, maxImageBytes, printable } from '../../../names/printable.ts';
import { byName } from '../../../names/values.ts';
import {
  amd64Levels,
  highestOf,
  levelExpression,
  type LabelExpression,
  type LabeledLevels,
} from '../../../nodes/amd64-level.ts';
import { levelOfVariant } from '../../../nodes/machine.ts';
import { groupsOf, type NodesOfClass } from '../../../nodes/node-classes.ts';
import type { ImageVerdict, Reason } from '../../decision.ts';
import { constrainsItself, namesNode, requiredTermsOf } from '../../pod/terms.ts';
import type { RuleInput } from '../input.ts';
import { reason, type Draft } from '../rules.ts';
import { areTooMany, maxNamesBytes, withoutExclusion, type Exclusion } from './pullable.ts';

interface ClassRestriction extends Exclusion {
  readonly amd64Level?: LabelExpression;
}

const noRestriction: ClassRestriction = Object.freeze({ hostnames: [], warnings: [], reasons: [] });

export function restrictToClasses(
  input: RuleInput,
  { outcome, tolerated, keptArchitectures }: Draft,
  required: readonly string[] | undefined,
): ClassRestriction {
  if (withoutExclusion.has(outcome)) return noRestriction;
  const { nodes: classes, fields, fit, images, os } = input;
  const { refusing } = fit;
  const architectures = tolerated ?? required ?? [];
  const wrong = [...refusing].filter(([group]) => architectures.includes(group.class.architecture));
  if (wrong.length === 0) return noRestriction;
  const why = listed([...new Set(wrong.map(([, text]) => text))], (text) => text, maxWhyBytes);
  if (namesNode(fields)) return notExcluded(`the pod names its node itself: ${why}`);
  const isByName = keptArchitectures?.includes('amd64') ?? false;
  const level = !isByName && takesLabel(input, outcome, architectures) ? levelOf(images) : undefined;
  const amd64Level = level && separating(groupsOf(classes, 'amd64', os), refusing, level);
  const isLeft = ([group]: (typeof wrong)[number]): boolean =>
    amd64Level === undefined || group.class.architecture !== 'amd64' || matches(group.levels, amd64Level);
  const hostnames = wrong.filter(isLeft).flatMap(([group]) => group.hostnames);
  hostnames.sort(byName);
  const byLabel = amd64Level ? { amd64Level: amd64Level.expression } : {};
  if (areTooMany(hostnames, fields)) {
    const text = `${hostnames.length} nodes are too many to name: ${why}`;
    return {
      ...notExcluded(text),
      ...byLabel,
      warnings: [`archwright: the pod can land where it cannot run: ${text}`],
    };
  }
  const label = amd64Level ? [`required: ${amd64Level.expression.key}`] : [];
  const names = hostnames.length > 0 ? [`excluded: ${listed(hostnames, (name) => name, maxNamesBytes)}`] : [];
  const reasons = [reason('node-classes', [why, ...label, ...names].join('; '))];
  return { hostnames, ...byLabel, warnings: [], reasons };
}

/** Whether a label of amd64 nodes can be required: only together with architectures, unlike hostnames. */
function takesLabel(
  { pod, waiting, fields: { terms } }: RuleInput,
  outcome: Draft['outcome'],
  architectures: readonly string[],
): boolean {
  if (outcome === 'own-constraint' || terms?.some(constrainsItself)) return false;
  // A waiting pod's terms cannot be copied (KEP-3838): the label would exclude all other architectures.
  const isCopied = waiting !== true || requiredTermsOf(pod.spec) === undefined;
  return isCopied || architectures.every((name) => name === 'amd64');
}

const maxWhyBytes = 1024;

function notExcluded(why: string): ClassRestriction {
  return { ...noRestriction, reasons: [reason('node-classes-left-out', why)] };
}

function levelOf(images: readonly ImageVerdict[]) {
  return highestOf(images.flatMap(({ facts }) => (facts ? [facts.requiredLevel, leastVariant(facts)] : [])));
}

/** A CPU below the least of an index runs none of its platforms for amd64. */
function leastVariant({ platforms }: ImageFacts) {
  const amd64 = platforms.filter(({ architecture }) => architecture === 'amd64');
  const least = Math.min(...amd64.slice(0, maxVariants).map(({ variant }) => levelOfVariant(variant)));
  return amd64Levels.find((level) => level > 1 && level === least);
}

/** Real indexes have four. */
const maxVariants = 64;

interface LevelLabel {
  readonly source: keyof LabeledLevels;
  readonly level: NonNullable<LabeledLevels['own']>;
  readonly expression: LabelExpression;
}

/** A label that all nodes that can run the images have, and some that cannot lack. */
function separating(
  groups: readonly NodesOfClass[],
  refusing: ReadonlyMap<NodesOfClass, string>,
  level: LevelLabel['level'],
): LevelLabel | undefined {
  for (const source of ['own', 'nfd'] as const) {
    const label = { source, level, expression: levelExpression(source, level) };
    const hasAll = groups.every((group) => refusing.has(group) || matches(group.levels, label));
    if (hasAll && groups.some((group) => !matches(group.levels, label))) return label;
  }
  return undefined;
}

function matches(levels: LabeledLevels, { source, level }: LevelLabel): boolean {
  return (levels[source] ?? 0) >= level;
}

/** What decides on some nodes, for `explain`. */
export function explainFit(
  images: readonly ImageVerdict[],
  required: readonly string[] | undefined,
): readonly Reason[] {
  return images.flatMap(({ image, fit }) =>
    [...(fit?.dependsOn ?? [])]
      .filter(([architecture]) => required?.includes(architecture) ?? false)
      .map(([architecture, fields]) =>
        reason('depends-on-node', `${printable(image, maxImageBytes)} on ${architecture}: ${fields}`),
      ),
  );
}
