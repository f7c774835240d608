/** The documentation stays short: a fact that is added should replace or shorten others. */
import t from 'tap';
import { allPages, writtenPages, type Page } from './pages.ts';

/** Words as `wc -w` counts them, without marks of lists and tables. */
const wordsOf = ({ text }: Page): number =>
  text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

const isDocumentation = ({ path }: Page): boolean => path === 'README.md' || path.startsWith('docs/');

function total(pages: readonly Page[]): number {
  return pages.filter(isDocumentation).reduce((sum, page) => sum + wordsOf(page), 0);
}

t.test('the number of words is limited, per page and for README.md and docs/ together', async (t) => {
  t.ok(total(allPages) <= 32_000, `${total(allPages)} words`);
  t.ok(total(writtenPages) <= 24_000, `${total(writtenPages)} words are not generated`);
  for (const page of allPages.filter(isDocumentation))
    t.ok(wordsOf(page) <= 2_400, `${page.path}: ${wordsOf(page)} words`);
});
