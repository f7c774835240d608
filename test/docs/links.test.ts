/** Links lead somewhere, and every page, room and script is in the table where somebody looks for it. */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path/posix';
import t from 'tap';
import { allPages, page, pageOf, type Page } from './pages.ts';

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

t.test('links lead to files and headings that exist', async (t) => {
  t.ok(allPages.flatMap(({ links }) => links).length > 100);
  for (const each of allPages) t.same(brokenLinks(each), [], each.path);
  const links = '[a](gates.md#gates) [b](gates.md#hinges) [c](gate.md) [d](https://example.com/x) [e](#here) [f](../README.md)';
  t.same(brokenLinks(pageOf('docs/gates.md', `# Here\n\n${links}\n\n\`[g](none.md)\``)), ['gates.md#hinges', 'gate.md']);
});

t.test('every page has a row in an index', async (t) => {
  const indexes = [
    { index: 'README.md', pages: [...globSync('docs/*.md'), 'docs/decisions/README.md', 'charts/archwright/README.md'] },
    { index: 'docs/decisions/README.md', pages: globSync('docs/decisions/!(README).md') },
  ];
  for (const { index, pages } of indexes) {
    const { text } = page(index);
    const rows = text.split('\n').filter((line) => line.startsWith('|')).join('\n');
    const linked = new Set(pageOf(index, rows).links.map((link) => join(index, '..', link.split('#')[0] ?? '')));
    t.ok(pages.length > 5, index);
    for (const each of pages) t.ok(linked.has(each), `${index}: ${each}`);
  }
});

t.test('CONTRIBUTING.md has every room and every script', async (t) => {
  const { text, spans } = page('CONTRIBUTING.md');
  for (const room of readdirSync('src', { withFileTypes: true })) t.ok(spans.includes(`src/${room.name}/`), room.name);
  for (const room of ['cmd', 'daemon', 'test', 'scripts', 'bench', 'examples', 'docs', 'charts/archwright', 'deploy'])
    t.ok(spans.includes(`${room}/`), room);
  for (const folder of globSync('src/controller/*/')) t.ok(spans.includes(`${folder.replace(/\/$/, '')}/`), folder);
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
  // `npm test` runs its own first step.
  for (const name of Object.keys(scripts).filter((name) => name !== 'pretest'))
    t.ok(new RegExp(`\`(?:npm (?:run )?)?${name}[\` ]`).test(text), name);
});
