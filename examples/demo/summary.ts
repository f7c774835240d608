/** One line for each pod: its images, the decision, and why. */
import { table } from '../../cmd/program/table.ts';
import type { ImageVerdict, Outcome, PlacementDecision } from '../../src/placement/decision.ts';
import { heading, print, style, type Style } from './print.ts';
import type { Sent } from './rounds.ts';

/** Text and color of each outcome. */
const outcomeTexts: Readonly<Record<Outcome, readonly [text: string, format: Style]>> = {
  placed: ['placed', 'green'],
  'own-constraint': ['kept', 'green'],
  skipped: ['skipped', 'dim'],
  unconstrained: ['unchanged', 'yellow'],
  gated: ['waits', 'yellow'],
  fallback: ['fallback', 'yellow'],
  'allowed-unknown': ['unchanged', 'yellow'],
  denied: ['refused', 'red'],
  pending: ['pending', 'red'],
};

/** Prints the table, in the order of the files. */
export function printPods(sent: readonly Sent[]): void {
  const decisions = sent.map(({ knowledge }) => knowledge.decision);
  const rows = sent.map(({ example }, index): readonly string[] => {
    const decision = decisions[index];
    if (!decision) return [];
    const name = example.file.replace(/\.yaml$/, '');
    return [name, imagesText(decision), decisionText(decision), whyText(decision)];
  });
  heading('Pods and workloads of examples/pods');
  const [header = '', ...lines] = table([['pod', 'images', 'decision', 'why'], ...rows], '  ')
    .trimEnd()
    .split('\n');
  print(style('dim', header));
  for (const [index, line] of lines.entries()) {
    const text = rows[index]?.[2] ?? '';
    const format = outcomeTexts[decisions[index]?.outcome ?? 'skipped'][1];
    // After the columns are laid out: escape sequences have no width.
    print(line.replace(`  ${text}`, `  ${style(format, text)}`));
  }
}

/** An image without its registry and path. */
function shortName(image: string): string {
  return image.slice(image.lastIndexOf('/') + 1);
}

function imagesText({ images }: PlacementDecision): string {
  return images.map(({ image }) => shortName(image)).join(' ') || 'not looked at';
}

function decisionText({ outcome, required = [] }: PlacementDecision): string {
  const [text] = outcomeTexts[outcome];
  return required.length === 0 ? text : `${text}: ${required.join(' ')}`;
}

/** Rules that need no details. */
const decisiveRules = /^(?:skip-|own-constraint$|preference-left-out$)/;

function whyText({ images, required = [], preferred, reasons, template }: PlacementDecision): string {
  const decisive = reasons.find(({ rule }) => decisiveRules.test(rule));
  if (decisive) return decisive.message;
  const parts = [
    imagesWhy(images, required),
    ...(required.length === 0 || preferred.length === 0 ? [] : [preferenceText(preferred)]),
    ...images.flatMap(({ facts }) => credentialTexts[facts?.credentialSource ?? ''] ?? []),
    ...(template === 'workload' ? ['a warning says that its pods would be refused'] : []),
  ];
  return parts.join('; ');
}

function imagesWhy(images: readonly ImageVerdict[], required: readonly string[]): string {
  const unknown = images.filter((verdict) => verdict.unknown !== undefined);
  if (unknown.length > 0) return each(unknown, (verdict) => `is unknown (${verdict.unknown})`);
  const constraining = images.filter(({ architectures }) => architectures !== undefined);
  if (required.length === 0)
    return each(constraining, ({ architectures = [] }) => `has ${architectures.join(' ')}`);
  const artifacts = images.filter((verdict) => !constraining.includes(verdict));
  if (artifacts.length > 0) return each(artifacts, () => 'is an artifact for every architecture');
  const all = new Set(constraining.flatMap(({ architectures = [] }) => architectures));
  const left = [...all].filter((architecture) => !required.includes(architecture));
  const lacking = left.map((architecture) => {
    const names = constraining.filter(({ architectures = [] }) => !architectures.includes(architecture));
    return `${names.map(({ image }) => shortName(image)).join(', ')} lack ${architecture}`;
  });
  return lacking.join('; ') || (images.length === 1 ? 'the image has these' : 'all images have these');
}

function preferenceText(preferred: PlacementDecision['preferred']): string {
  return `prefers ${preferred.map(({ architecture, weight }) => `${architecture} (weight ${weight})`).join(', ')}`;
}

function each(verdicts: readonly ImageVerdict[], text: (verdict: ImageVerdict) => string): string {
  return verdicts.map((verdict) => `${shortName(verdict.image)} ${text(verdict)}`).join(', ');
}

/** Access to a private image. */
const credentialTexts: Readonly<Record<string, string>> = {
  'pull-secret': 'read with the pull secret',
  'registry-toml': 'read with a registry file of a node',
  'docker-config': "read with a kubelet's login",
};
