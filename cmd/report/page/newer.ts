/** Images that are one step away: a newer tag has the architecture. */
import { maxImageBytes, printable } from '../../../src/names/printable.ts';
import { imageRows, type JudgedPod } from '../rows.ts';
import { markup, type Html } from './html.ts';
import { amount } from './sections.ts';

/** @param newerTags by image; `undefined`: nobody looked */
export function newerSection(
  newerTags: ReadonlyMap<string, string> | undefined,
  pods: readonly JudgedPod[],
): Html | undefined {
  if (newerTags === undefined) return undefined;
  const rows = imageRows(pods).flatMap((row) => {
    const newer = newerTags.get(row.image);
    if (newer === undefined) return [];
    const share = { pods: row.pods, ...row.requests };
    return [
      markup`<tr>
        <th scope="row" class="name">${printable(row.image, maxImageBytes)}</th>
        <td class="name">${printable(newer, maxImageBytes)}</td>
        <td class="n">${amount(share, 'pods')}</td>
        <td class="n">${amount(share, 'cpu')}</td>
      </tr>`,
    ];
  });
  const table = markup`<div class="scroll" role="region" aria-labelledby="newer" tabindex="0">
    <table>
      <thead>
        <tr>
          <th scope="col">Image</th>
          <th scope="col">Newer tag that has it</th>
          <th scope="col" class="n">Pods</th>
          <th scope="col" class="n">CPU</th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;
  return markup`<section aria-labelledby="newer">
    <h2 id="newer">One step away: newer tags</h2>
    ${rows.length === 0 ? markup`<p>No newer tag of the images that were looked up has it.</p>` : table}
  </section>`;
}
