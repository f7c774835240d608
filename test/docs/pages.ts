/** The pages that people write, taken apart: fenced blocks, code spans, links, headings. Generated pages are compared elsewhere. */
import { globSync, readFileSync } from 'node:fs';
import { pages as generated } from '../../scripts/docs/main.ts';
import { anchorOf } from '../../scripts/docs/markdown.ts';

export interface Page {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
  /** Fenced blocks, with their language. */
  readonly blocks: readonly { readonly language: string; readonly text: string }[];
  /** What stands between backticks outside of the blocks. */
  readonly spans: readonly string[];
  /** Targets of links, outside of blocks and spans. */
  readonly links: readonly string[];
  /** What a link can name behind `#`, as GitHub makes it of headings. */
  readonly anchors: ReadonlySet<string>;
}

const fence = /^ *```(\w*)[^\n]*\n([\s\S]*?)^ *```$/gm;
const span = /`([^`]+)`/g;

/** Takes a page apart. */
export function pageOf(path: string, text: string): Page {
  const blocks = [...text.matchAll(fence)].map(([, language = '', block = '']) => ({ language, text: block }));
  const prose = text.replaceAll(fence, '');
  const plain = prose.replaceAll(span, '');
  return {
    path,
    text,
    blocks,
    // A bar in a cell of a table is escaped; a span may go on in the next line.
    spans: [...prose.matchAll(span)].map(([, inside = '']) =>
      inside.replaceAll('\\|', '|').replaceAll(/\s*\n\s*/g, ' '),
    ),
    links: [...plain.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = '']) => target),
    anchors: new Set([...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading))),
  };
}

function read(path: string): Page {
  return pageOf(path, readFileSync(path, 'utf8'));
}

/** Every page of the repository, generated ones too. */
export const allPages: readonly Page[] = [
  'README.md',
  'CONTRIBUTING.md',
  ...globSync(['docs/**/*.md', 'examples/**/*.md', 'charts/**/*.md', 'deploy/**/*.md']).sort(),
].map(read);

/** Those that somebody wrote. */
export const writtenPages: readonly Page[] = allPages.filter(({ path }) => !Object.hasOwn(generated, path));

/** A page by its path. */
export function page(path: string): Page {
  const found = allPages.find((each) => each.path === path);
  if (found === undefined) throw new Error(`there is no page ${path}`);
  return found;
}

/** Everything that the program can say, as written in its source: strings that go on in the next line are joined. */
export const source: string = globSync(['{src,cmd,daemon,scripts/image}/**/*.ts', 'charts/archwright/templates/**'], { withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => readFileSync(`${entry.parentPath}/${entry.name}`, 'utf8'))
  .join('\n')
  .replaceAll(/['`]\s*\+\s*['`]/g, '');
