/** What moving the pods would save. Each amount is a range, and its assumptions stand beside it. */
import { printable } from '../../../src/names/printable.ts';
import { counted } from '../../program/table.ts';
import { bytes, rangeText, rounded } from '../amounts.ts';
import { unpriced, type Money } from '../prices/savings.ts';
import type { JudgedPod } from '../rows.ts';
import type { Change } from './changes.ts';
import { markup, numberCells, section, table, type Head, type Html } from './html.ts';

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
  const heads = ['Pods', ...['Number', 'They cost now', `On ${architecture}`, 'Saving'].map(number)];
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

function number(label: string): Head {
  return { number: label };
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
    ...['Nodes', 'Cores', 'Memory', 'An hour'].map(number),
    number('One core per month, if CPU is all you pay for'),
    number('One GiB per month, if memory is all you pay for'),
    'From',
  ];
  return table('prices', heads, rows);
}
