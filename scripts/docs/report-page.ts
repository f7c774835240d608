/** The script and the style of `archwright report --html`, built from `page/` into one program file. */
import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../page/', import.meta.url));

export async function pageAssets(): Promise<string> {
  const script = await built('main.ts');
  const style = await built('style.css');
  return [
    `export const pageScript =\n  ${JSON.stringify(script)};\n`,
    `export const pageStyle =\n  ${JSON.stringify(style)};\n`,
  ].join('');
}

/** Without minified names: users read the page's code. */
async function built(file: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [`${folder}${file}`],
    bundle: true,
    write: false,
    format: 'iife',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    charset: 'utf8',
    minifySyntax: true,
    minifyWhitespace: true,
    // Otherwise the generated text contains this folder.
    absWorkingDir: folder,
  });
  const text = outputFiles[0]?.text.trim() ?? '';
  if (/<\/(?:script|style)|<!--/i.test(text)) throw new Error(`${file} would end its element`);
  return text;
}
