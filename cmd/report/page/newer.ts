/** Images that are one step away: a newer tag has the architecture. */
import { maxImageBytes, printable } from '../../../src/names/printable.ts';
import type { NewerTags } from '../newer-tags.ts';
import { imageRows, type JudgedPod } from '../rows.ts';
import { markup, type Html } from './html.ts';
import { numberCells, section, table } from './layout.ts';
import { amount } from './sections.ts';

/** More of a message says nothing more about its cause. */
const maxProblemBytes = 512;

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
