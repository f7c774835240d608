/** The parts of the page that need no script. */
import { maxImageBytes, printable } from '../../../src/names/printable.ts';
import { bytes, percent, rangeText, rounded } from '../amounts.ts';
import { causes, type Cause, type State } from '../verdict.ts';
import { imageRows, type JudgedPod } from '../rows.ts';
import type { Report } from '../contents.ts';
import type { NewerTags } from '../newer-tags.ts';
import type { Change } from './changes.ts';
import { bar, markup, numberCells, section, swatch, table, type Head, type Html } from './html.ts';
import { ratio, shareOf, sharesByState, stateLabels, states, type Measure, type Share } from './shares.ts';

const measures: Readonly<Record<Measure, string>> = {
  pods: 'pods',
  cpu: 'CPU requests',
  memory: 'memory requests',
};
const measureNames = Object.keys(measures) as readonly Measure[];

const meanings: Readonly<Record<State, string>> = {
  ready: 'All images have the architecture, and the pod chooses no other.',
  image: 'An image lacks the architecture. Build it for the architecture, or take another image or tag.',
  broken: 'The image has the architecture, but its binaries did not start there (exec format error).',
  unknown: 'The image could not be looked up, or is never pulled.',
  selector: 'The node selector of the pod names other architectures. Remove it.',
  affinity: 'The required node affinity of the pod names other architectures. Remove it.',
};

export function todaySection(pods: readonly JudgedPod[], architecture: string): Html {
  const all = shareOf(pods);
  const byState = sharesByState(pods);
  const there = pods.filter(({ on }) => on === architecture).length;
  const tiles = measureNames.map(
    (measure) =>
      markup`<div class="tile">
        <p class="number">${percent(ratio(byState.ready[measure], all[measure]))}</p>
        <p>of the ${measures[measure]}</p>
        ${bar(segments(byState, all, measure))}
      </div>`,
  );
  const rows = states
    .filter((state) => byState[state].pods > 0)
    .map(
      (state) =>
        markup`<tr>
          <th scope="row">${swatch(state)} ${stateLabels[state]}</th>
          ${measureNames.map((measure) => amountCells(byState[state], all, measure))}
          <td>${meanings[state]}</td>
        </tr>`,
    );
  const heads = ['State', ...measureNames.map((name) => ({ number: measures[name], columns: 2 })), 'Meaning'];
  return section(
    'today',
    `What can run on ${architecture} today`,
    markup`<div class="tiles">${tiles}</div>
<p>${there.toLocaleString('en')} of ${amount(all, 'pods')} pods run on ${architecture} now.</p>`,
    table('today', heads, rows),
  );
}

function segments(byState: Readonly<Record<State, Share>>, all: Share, measure: Measure) {
  return states.map((state) => ({
    color: state,
    part: all[measure] === 0 ? 0 : byState[state][measure] / all[measure],
  }));
}

function amountCells(share: Share, all: Share, measure: Measure): readonly Html[] {
  const part = all[measure] === 0 ? '–' : percent(share[measure] / all[measure]);
  return numberCells(amount(share, measure), part);
}

function amount(share: Share, measure: Measure): string {
  if (measure === 'memory') return bytes(share.memory);
  return (measure === 'cpu' ? rounded(share.cpu) : share.pods).toLocaleString('en');
}

const actions: Readonly<Record<Cause, string>> = {
  image: 'Build for the architecture:',
  broken: 'Fix the binaries of:',
  unknown: 'Find out the architectures of:',
  selector: 'Remove the node selector of',
  affinity: 'Remove the node affinity of',
};

function describeChange(
  { cause, subject, image }: Change,
  newerTags: ReadonlyMap<string, string> | undefined,
): Html {
  const newer = image === undefined ? undefined : newerTags?.get(image);
  const action = newer === undefined ? actions[cause] : `Take ${printable(newer, maxImageBytes)} in place of`;
  return markup`${action} <span class="name">${subject}</span>`;
}

export function changesSection(
  changes: readonly Change[],
  { pods, newerTags, money }: Pick<Report, 'pods' | 'newerTags' | 'money'>,
): Html | undefined {
  if (changes.length === 0) return undefined;
  const all = shareOf(pods);
  let reached = shareOf(pods.filter(({ blockers }) => blockers.length === 0)).cpu;
  const rows = changes.map((change, index) => {
    const before = reached;
    reached += change.gain.cpu;
    const parts = [
      { color: 'ready', part: all.cpu === 0 ? 0 : before / all.cpu },
      { color: 'gain', part: all.cpu === 0 ? 0 : change.gain.cpu / all.cpu },
    ];
    return markup`<tr>
      ${numberCells(index + 1)}
      <th scope="row">${describeChange(change, newerTags?.byImage)}</th>
      ${numberCells(change.blocked.toLocaleString('en'))}
      ${measureNames.map((measure) => numberCells(amount(change.gain, measure)))}
      ${money && numberCells(rangeText(money.savings.of(change.freed)?.saved, money.list.currency))}
      <td class="reached">${bar(parts)} <span>${percent(ratio(reached, all.cpu))}</span></td>
    </tr>`;
  });
  const unknown = changes.some(({ cause }) => cause === 'unknown')
    ? ' An unknown image counts as if it had the architecture.'
    : '';
  const heads: readonly Head[] = [
    { number: 'Step' },
    'Change',
    { number: 'Pods with it' },
    { number: 'Pods that can run then' },
    { number: 'CPU' },
    { number: 'Memory' },
    ...(money ? [{ number: 'Saving per month' }] : []),
    'CPU that can run after it',
  ];
  return section(
    'first',
    'What to change first',
    markup`<p>First the changes that bring the most. A pod counts when its last blocker is gone, so some steps bring
nothing before the next one.${unknown}</p>`,
    table('first', heads, rows),
  );
}

/** The rest of a longer message adds nothing about its cause. */
const maxProblemBytes = 512;

/** Images that are one step away: a newer tag has the architecture. */
export function newerSection({ byImage, problems }: NewerTags, pods: readonly JudgedPod[]): Html {
  const rows = imageRows(pods).flatMap((row) => {
    const newer = byImage.get(row.image);
    if (newer === undefined) return [];
    const share = { pods: row.pods, ...row.requests };
    return [
      markup`<tr>
        <th scope="row" class="name">${printable(row.image, maxImageBytes)}</th>
        <td class="name">${printable(newer, maxImageBytes)}</td>
        ${numberCells(amount(share, 'pods'), amount(share, 'cpu'))}
      </tr>`,
    ];
  });
  const heads = ['Image', 'Newer tag that has it', { number: 'Pods' }, { number: 'CPU' }];
  const items = problems.map((problem) => markup`<li>${printable(problem, maxProblemBytes)}</li>`);
  return section(
    'newer',
    'One step away: newer tags',
    rows.length === 0
      ? markup`<p>No newer tag of the images that were looked up has it.</p>`
      : table('newer', heads, rows),
    items.length === 0 ? undefined : markup`<p>Some tags were not looked up:</p><ul>${items}</ul>`,
  );
}

/** People read ten bars; the table has the rest. */
const maxNamespaces = 10;

export function namespacesSection(pods: readonly JudgedPod[]): Html | undefined {
  const rows = [...Map.groupBy(pods, ({ pod }) => pod.namespace)]
    .map(([namespace, group]) => {
      const all = shareOf(group);
      const byState = sharesByState(group);
      return { namespace, all, byState, blocked: all.cpu - byState.ready.cpu };
    })
    .filter(({ blocked }) => blocked > 0)
    .toSorted((a, b) => b.blocked - a.blocked)
    .slice(0, maxNamespaces);
  const [widest] = rows.toSorted((a, b) => b.all.cpu - a.all.cpu);
  if (widest === undefined) return undefined;
  const lines = rows.map(({ namespace, byState, blocked }) => {
    const parts = states.map((state) => ({ color: state, part: byState[state].cpu / widest.all.cpu }));
    const blocking = causes
      .filter((cause) => byState[cause].cpu > 0)
      .map((cause) => `${stateLabels[cause]} ${amount(byState[cause], 'cpu')}`);
    return markup`<tr>
      <th scope="row" class="name">${printable(namespace, 253)}</th>
      <td class="wide">${bar(parts)}</td>
      ${numberCells(rounded(blocked).toLocaleString('en'))}
      <td>${blocking.join(', ')}</td>
    </tr>`;
  });
  const legend = states.map((state) => markup`<li>${swatch(state)} ${stateLabels[state]}</li>`);
  return section(
    'where',
    'Where the rest is',
    markup`<ul class="legend">${legend}</ul>`,
    table('where', ['Namespace', 'CPU requests by state', { number: 'Blocked cores' }, 'Of these'], lines),
  );
}
