/**
 * Links have targets; every page is in an index; every room and script is in CONTRIBUTING.md. The documentation
 * stays short: a fact that is added should replace or shorten others.
 */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path/posix';
import t from 'tap';
import { allPages, page, pageOf, writtenPages, type Page } from './pages.ts';

function brokenLinks({ path, links, anchors }: Page): string[] {
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [target = '', anchor] = link.split('#');
    const file = target === '' ? path : join(path, '..', target);
    if (!existsSync(file)) return true;
    if (anchor === undefined) return false;
    const there = target === '' ? anchors : allPages.find((each) => each.path === file)?.anchors;
    return there?.has(anchor) !== true;
  });
}

t.test('links lead to existing files and headings', async (t) => {
  t.ok(allPages.flatMap(({ links }) => links).length > 100);
  for (const each of allPages) t.strictSame(brokenLinks(each), [], each.path);
});

/** Pages that links of a page lead to; a link to a folder leads to its index. */
function targets({ path, links }: Page): string[] {
  return links
    .filter((link) => !/^[a-z]+:|^#/.test(link))
    .map((link) => join(path, '..', link.split('#')[0] ?? ''))
    .map((target) => (existsSync(join(target, 'README.md')) ? join(target, 'README.md') : target));
}

function rowsOf({ path, text }: Page): Page {
  return pageOf(
    path,
    text
      .split('\n')
      .filter((line) => /^[|-] /.test(line))
      .join('\n'),
  );
}

t.test('the index of a folder lists each page, and the index above lists each folder', async (t) => {
  const folders = globSync('docs/**/', { exclude: ['docs/images'] });
  t.ok(folders.length > 6);
  for (const folder of folders) {
    const linked = targets(rowsOf(page(join(folder, 'README.md'))));
    const entries = [...globSync(`${folder}/!(README).md`), ...globSync(`${folder}/*/README.md`)];
    t.ok(entries.length > 3, folder);
    for (const each of entries) t.ok(linked.includes(each), `${folder}: ${each}`);
  }
});

t.test('every page is at most two clicks away from README.md', async (t) => {
  const first = targets(page('README.md'));
  const pages = new Map(allPages.map((each) => [each.path, each]));
  const near = new Set([...first, ...first.flatMap((path) => targets(pages.get(path) ?? pageOf(path, '')))]);
  for (const { path } of allPages.filter(({ path }) => path.startsWith('docs/'))) t.ok(near.has(path), path);
});

t.test('README.md has at most ten links', async (t) => {
  const pictures = /!\[[^\]]*\]\([^)]*\)/g;
  const { links } = pageOf('README.md', page('README.md').text.replaceAll(pictures, ''));
  t.ok(links.length <= 10, links.join(' '));
});

t.test('CONTRIBUTING.md lists every room and every script', async (t) => {
  const { text, spans } = page('CONTRIBUTING.md');
  for (const room of readdirSync('src', { withFileTypes: true }))
    t.ok(spans.includes(`src/${room.name}/`), room.name);
  for (const room of [
    'cmd',
    'daemon',
    'test',
    'scripts',
    'bench',
    'examples',
    'docs',
    'charts/archwright',
    'deploy',
  ])
    t.ok(spans.includes(`${room}/`), room);
  for (const folder of globSync('src/controller/*/'))
    t.ok(spans.includes(`${folder.replace(/\/$/, '')}/`), folder);
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
  // `npm ci` runs its own last step.
  for (const name of Object.keys(scripts).filter((name) => name !== 'prepare'))
    t.ok(new RegExp(`\`(?:npm (?:run )?)?${name}[\` ]`).test(text), name);
});

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
