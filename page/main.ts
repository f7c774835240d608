/** The script of `archwright report --html`. `npm run docs` builds it into `cmd/report/page/assets.ts`. */
import type { PageData } from '../cmd/report/page/data.ts';
import { Explorer } from './explorer.ts';

const data = JSON.parse(document.querySelector('#data')?.textContent ?? '') as PageData;
const place = document.querySelector<HTMLElement>('#table');
if (place !== null) {
  const explorer = new Explorer(data, place);
  // A printed page has every row.
  addEventListener('beforeprint', () => explorer.showAll(true));
  addEventListener('afterprint', () => explorer.showAll(false));
}
