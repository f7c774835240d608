/** The parts of the page that need no script. */
import { maxImageBytes, printable } from '../../../src/names/printable.ts';
import { counted } from '../../program/table.ts';
import { bytes, percent, rangeText, ratio, rounded } from './data.ts';
import { unpriced, type Money } from '../prices/savings.ts';
import { mainState, states, type Cause, type JudgedPod, type State } from '../verdict.ts';
import { shareOf, type Share } from '../rows.ts';
import type { Report } from '../contents.ts';
import type { Change } from './changes.ts';
import { bar, markup, numberCells, numberHead, section, swatch, table, type Html } from './html.ts';

type Measure = keyof Share;

const measures: Readonly<Record<Measure, string>> = {
  pods: 'pods',
  cpu: 'CPU requests',
  memory: 'memory requests',
};
const measureNames = Object.keys(measures) as readonly Measure[];

export const stateLabels: Readonly<Record<State, string>> = {
  ready: 'can run',
  image: 'image lacks it',
  broken: 'image is broken',
  unknown: 'image is unknown',
  selector: 'node selector',
  affinity: 'node affinity',
};

const meanings: Readonly<Record<State, string>> = {
  ready: 'All images have the architecture, and the pod does not exclude it.',
  image: 'An image lacks the architecture. Build it for the architecture, or take another image or tag.',
  broken: 'The image has the architecture, but its binaries did not start there (exec format error).',
  unknown: 'The image could not be looked up, or is never pulled.',
  selector: 'The node selector of the pod names another architecture. Remove it.',
  affinity: 'The required node affinity of the pod excludes the architecture. Change it.',
};

/** Each pod counts once, for its main cause. */
export function todaySection(pods: readonly JudgedPod[], architecture: string): Html {
  const all = shareOf(pods);
  const groups = Map.groupBy(pods, mainState);
  const shares = states.map((state) => ({ state, share: shareOf(groups.get(state) ?? []) }));
  const there = pods.filter(({ on }) => on === architecture).length;
  const ready = shareOf(groups.get('ready') ?? []);
  const tiles = measureNames.map(
    (measure) =>
      markup`<div class="tile">
        <p class="number">${percent(ratio(ready[measure], all[measure]))}</p>
        <p>of the ${measures[measure]}</p>
        ${bar(shares.map(({ state, share }) => ({ color: state, part: share[measure] / (all[measure] || 1) })))}
      </div>`,
  );
  const rows = shares
    .filter(({ share }) => share.pods > 0)
    .map(
      ({ state, share }) =>
        markup`<tr>
          <th scope="row">${swatch(state)} ${stateLabels[state]}</th>
          ${measureNames.map((measure) =>
            numberCells(
              amount(share, measure),
              all[measure] === 0 ? '–' : percent(share[measure] / all[measure]),
            ),
          )}
          <td>${meanings[state]}</td>
        </tr>`,
    );
  const numbers = measureNames.map(
    (name) => markup`<th scope="colgroup" colspan="2" class="n">${measures[name]}</th>`,
  );
  return section(
    'today',
    `What can run on ${architecture} today`,
    markup`<div class="tiles">${tiles}</div>
<p>${there.toLocaleString('en')} of ${amount(all, 'pods')} pods run on ${architecture} now.</p>`,
    table('today', ['State', ...numbers, 'Meaning'], rows),
  );
}

function amount(share: Share, measure: Measure): string {
  if (measure === 'memory') return bytes(share.memory);
  return share[measure].toLocaleString('en');
}

/** The rest of a longer message adds nothing about its cause. */
const maxProblemBytes = 512;

const actions: Readonly<Record<Cause, string>> = {
  image: 'Build for the architecture:',
  broken: 'Fix the binaries of:',
  unknown: 'Find out the architectures of:',
  selector: 'Remove the node selector of',
  affinity: 'Change the node affinity of',
};

export function changesSection(
  changes: readonly Change[],
  { pods, newerTags, money }: Pick<Report, 'pods' | 'newerTags' | 'money'>,
): Html | undefined {
  if (changes.length === 0) return undefined;
  const all = shareOf(pods);
  let reached = shareOf(pods.filter(({ blockers }) => blockers.length === 0)).cpu;
  const rows = changes.map((change, index) => {
    const newer = newerTags?.byImage.get(change.image ?? '');
    const action = newer ? `Take ${printable(newer, maxImageBytes)} in place of` : actions[change.cause];
    const parts = [
      { color: 'ready', part: reached / (all.cpu || 1) },
      { color: 'gain', part: change.gain.cpu / (all.cpu || 1) },
    ];
    reached = rounded(reached + change.gain.cpu);
    return markup`<tr>
      ${numberCells(index + 1)}
      <th scope="row">${action} <span class="name">${change.subject}</span></th>
      ${numberCells(change.blocked.toLocaleString('en'))}
      ${measureNames.map((measure) => numberCells(amount(change.gain, measure)))}
      ${money && numberCells(rangeText(money.savingsOf(change.freed)?.saved, money.list.currency))}
      <td class="reached">${bar(parts)} <span>${percent(ratio(reached, all.cpu))}</span></td>
    </tr>`;
  });
  const unknown = changes.some(({ cause }) => cause === 'unknown')
    ? ' An unknown image counts as if it had the architecture.'
    : '';
  const gains = ['Pods with it', 'Pods that can run then', 'CPU', 'Memory'];
  const numbers = [...gains, ...(money ? ['Saving per month'] : [])].map(numberHead);
  const heads = [numberHead('Step'), 'Change', ...numbers, 'CPU that can run after it'];
  return section(
    'first',
    'What to change first',
    markup`<p>First the changes that bring the most. A pod counts when its last blocker is gone, so some steps bring
nothing before the next one.${unknown}</p>`,
    table('first', heads, rows),
    newerTags?.problems.map((text) => markup`<p>Newer tags: ${printable(text, maxProblemBytes)}</p>`),
  );
}

/** What moving the pods would save. Each amount is a range, and its assumptions stand beside it. */
export function moneySection(
  money: Money,
  architecture: string,
  pods: readonly JudgedPod[],
  changes: readonly Change[],
): Html {
  const { currency, hoursPerMonth } = money.list;
  const ready = pods.filter(({ blockers }) => blockers.length === 0);
  const changed = [...ready, ...changes.flatMap(({ freed }) => freed)];
  const rows: readonly (readonly [string, readonly JudgedPod[]])[] = [
    ['As they are', ready],
    ...(changes.length === 0 ? [] : ([['With the changes to make first', changed]] as const)),
    ...(ready.length === pods.length ? [] : ([['Without any blocker', pods]] as const)),
  ];
  const lines = rows.map(([label, some]) => {
    const savings = money.savingsOf(some);
    const ranges = [savings?.now, savings?.moved, savings?.saved];
    const count = (savings?.pods ?? 0).toLocaleString('en');
    const texts = ranges.map((range) => rangeText(range, currency));
    return markup`<tr><th scope="row">${label}</th>${numberCells(count, ...texts)}</tr>`;
  });
  const heads = ['Pods', ...['Number', 'They cost now', `On ${architecture}`, 'Saving'].map(numberHead)];
  return section(
    'money',
    'What moving them saves per month',
    table('money', heads, lines),
    markup`<h3>Assumptions</h3>
    <ul>
      <li>Only what the pods request counts, and the capacity that they leave is given back.</li>
      ${rows.length > 1 ? markup`<li>After the changes, images without the architecture and unknown ones have it.</li>` : undefined}
      <li>A pod requests as much on ${architecture} as now.</li>
      <li>A month has ${hoursPerMonth} hours. Disks, traffic, licenses, discounts and taxes are not in it.</li>
      <li>A price is for CPU and memory together. The range covers each way to divide it, the same for all types: all for the CPU to all for the memory.</li>
      <li>Pods move within their region, from spot to spot and from on-demand to on-demand. The range covers each type of the
        table below that they could move to.</li>
      ${exclusions(pods, money).map((text) => markup`<li>${text}</li>`)}
    </ul>
    <h3 id="prices">Prices</h3>`,
    priceTable(money),
  );
}

function exclusions(pods: readonly JudgedPod[], money: Money): readonly string[] {
  const counts = Map.groupBy(pods, (pod) => money.unpriced(pod));
  return (Object.keys(unpriced) as (keyof typeof unpriced)[]).flatMap((reason) => {
    const count = counts.get(reason)?.length ?? 0;
    return count === 0 ? [] : [`Not counted: ${counted(count, 'pod')} ${unpriced[reason]}.`];
  });
}

const gib = 2 ** 30;

const sources = {
  file: 'file of prices',
  node: 'annotation or label of the node',
};

function priceTable({ kinds, list: { currency, hoursPerMonth } }: Money): Html {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  const exact = new Intl.NumberFormat('en', { style: 'currency', currency, maximumFractionDigits: 6 });
  const rows = kinds.map(({ offer, nodes }) => {
    const { architecture, instanceType, region, capacityType, price, source, vcpu, memory } = offer;
    const monthly = price * hoursPerMonth;
    const amounts = [
      exact.format(price),
      format.format(monthly / vcpu),
      format.format((monthly * gib) / memory),
    ];
    return markup`<tr>
      <th scope="row" class="name">${printable(instanceType, 128) || '–'}</th>
      <td>${printable(architecture, 64)}</td>
      <td>${printable(region, 128) || '–'}</td>
      <td>${capacityType}</td>
      ${numberCells(nodes, rounded(vcpu), bytes(memory), ...amounts)}
      <td>${sources[source]}</td>
    </tr>`;
  });
  const heads = [
    'Type',
    'Architecture',
    'Region',
    'Capacity',
    ...['Nodes', 'Cores', 'Memory', 'An hour'].map(numberHead),
    numberHead('One core per month, if CPU is all you pay for'),
    numberHead('One GiB per month, if memory is all you pay for'),
    'From',
  ];
  return table('prices', heads, rows);
}
