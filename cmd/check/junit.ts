/**
 * The results of `check` as JUnit XML, as Jenkins and GitLab read it. The elements and attributes are those
 * of Jenkins' `junit-10.xsd`, which has no place for a line: it is in the message. Findings are failures,
 * images without an answer are errors, allowed ones are skipped.
 */
import { placeOf, workloadOf, type Checked } from './write.ts';
import { classes, type Result } from './verdict.ts';

export function asJunit({ results }: Checked): string {
  const suites = [...Map.groupBy(results, ({ file }) => file)].map(([file, all]) => suite(file, all));
  const head = element('testsuites', { name: 'archwright check', ...counts(results) });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${head}>\n${suites.join('')}</testsuites>\n`;
}

function suite(file: string, results: readonly Result[]): string {
  const skipped = String(results.filter(({ verdict }) => verdict === 'allowed').length);
  const head = element('testsuite', { name: file, ...counts(results), skipped, file });
  return `  <${head}>\n${results.map(testCase).join('')}  </testsuite>\n`;
}

function counts(results: readonly Result[]) {
  const count = (name: string): string =>
    String(results.filter(({ verdict }) => classes[verdict] === name).length);
  return { tests: String(results.length), failures: count('finding'), errors: count('unknown') };
}

function testCase(result: Result): string {
  const { image, usedBy, architecture } = result;
  const head = element('testcase', {
    classname: workloadOf(result),
    name: `${usedBy}: ${image} for ${architecture}`,
  });
  const outcome = outcomeOf(result);
  return outcome === undefined ? `    <${head}/>\n` : `    <${head}>\n      <${outcome}/>\n    </testcase>\n`;
}

function outcomeOf(result: Result): string | undefined {
  const { verdict, why } = result;
  if (verdict === 'ok') return undefined;
  const message = `${placeOf(result)}: ${verdict}: ${why}`;
  if (verdict === 'allowed') return element('skipped', { message });
  return element(classes[verdict] === 'finding' ? 'failure' : 'error', { type: verdict, message });
}

function element(name: string, attributes: Readonly<Record<string, string>>): string {
  return [name, ...Object.entries(attributes).map(([key, value]) => `${key}="${escaped(value)}"`)].join(' ');
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Names are untrusted, and XML 1.0 has no way to write most control characters. */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u{fffe}\u{ffff}]/gu, '?')
    .replaceAll(/[&<>"]/g, (letter) => entities[letter] ?? letter);
}
