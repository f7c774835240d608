/** The Markdown pages, parsed into fenced blocks, code spans, links and headings. */
import { globSync, readFileSync } from 'node:fs';
import { pages as generated } from '../../scripts/docs/main.ts';
import { anchorOf } from '../../scripts/docs/markdown.ts';

export type Page = ReturnType<typeof pageOf>;

const fence = /^ *```(\w*)[^\n]*\n([\s\S]*?)^ *```$/gm;
const span = /`([^`]+)`/g;

/** Parses a page. @param path from the root of the repository */
export function pageOf(path: string, text: string) {
  const blocks = [...text.matchAll(fence)].map(([, language = '', block = '']) => ({
    language,
    text: block,
  }));
  const prose = text.replaceAll(fence, '');
  const plain = prose.replaceAll(span, '');
  return {
    path,
    text,
    /** Fenced blocks, with their language. */
    blocks,
    /** Inline code, outside of blocks. A bar in a table cell is escaped; a span may continue on the next line. */
    spans: [...prose.matchAll(span)].map(([, inside = '']) =>
      inside.replaceAll('\\|', '|').replaceAll(/\s*\n\s*/g, ' '),
    ),
    /** Targets of links, outside of blocks and spans. */
    links: [...plain.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = '']) => target),
    /** Fragments of headings, as GitHub generates them. */
    anchors: new Set([...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading))),
  };
}

function read(path: string): Page {
  return pageOf(path, readFileSync(path, 'utf8'));
}

/** Every page of the repository, including generated ones. */
export const allPages: readonly Page[] = [
  'README.md',
  'CONTRIBUTING.md',
  ...globSync(['docs/**/*.md', 'examples/**/*.md', 'charts/**/*.md', 'deploy/**/*.md']).sort(),
].map(read);

/** The pages that are not generated. */
export const writtenPages: readonly Page[] = allPages.filter(({ path }) => !Object.hasOwn(generated, path));

/** A page by its path. */
export function page(path: string): Page {
  const found = allPages.find((each) => each.path === path);
  if (found === undefined) throw new Error(`there is no page ${path}`);
  return found;
}

/**
 * The source of the program and of the chart's templates, with strings that continue on the next line joined.
 */
export const source: string = globSync(
  ['{src,cmd,daemon}/**/*.ts', 'scripts/image.ts', 'charts/archwright/templates/**'],
  { withFileTypes: true },
)
  .filter((entry) => entry.isFile())
  .map((entry) => readFileSync(`${entry.parentPath}/${entry.name}`, 'utf8'))
  .join('\n')
  .replaceAll(/['`]\s*\+\s*['`]/g, '');
