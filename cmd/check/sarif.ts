/** The results of `check` as SARIF 2.1.0, without images that are ok; allowed ones are suppressed. */
import { relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { standardInput } from '../objects/documents.ts';
import { programVersion } from '../program/version.ts';
import { classes, type Result, type Verdict } from './verdict.ts';
import { workloadOf, type Checked } from './write.ts';
import { jsonText } from '../program/table.ts';

/** Rules by verdict, and what they say in general. `allowed` results keep no rule of their own. */
const rules: Readonly<Record<Exclude<Verdict, 'ok'>, string>> = {
  missing: 'The image has no platform of the required architecture.',
  pinned: 'The pod chooses other architectures by node selector or affinity.',
  'not-found': 'The registry does not have the image.',
  'not-an-image': 'The reference names an artifact that no container can run.',
  invalid: 'The image is not a valid reference.',
  unauthorized: 'The registry refuses access, so the architectures are not known.',
  'rate-limited': 'The registry limits requests, so the architectures are not known.',
  unreachable: 'The registry does not answer, so the architectures are not known.',
  unusable: 'The answer of the registry cannot be used, so the architectures are not known.',
  'never-pulled': 'The image is never pulled, so no registry knows its architectures.',
  allowed: 'The allow-list has the image.',
};
const ids = Object.keys(rules);

const levels = { finding: 'error', unknown: 'warning', fine: 'note' } as const;

/** @param directory that relative paths are relative to, such as the root of a repository */
export function asSarif({ results }: Checked, directory: string): string {
  const log = {
    $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'archwright check',
            version: programVersion.version,
            rules: Object.entries(rules).map(([id, text]) => ({
              id,
              shortDescription: { text },
              defaultConfiguration: { level: levels[classes[id as Verdict]] },
            })),
          },
        },
        columnKind: 'utf16CodeUnits',
        results: results.filter(({ verdict }) => verdict !== 'ok').map((each) => resultOf(each, directory)),
      },
    ],
  };
  return jsonText(log);
}

function resultOf(result: Result, directory: string) {
  const { file, line, image, architecture, verdict, why, usedBy } = result;
  const workload = workloadOf(result);
  return {
    ruleId: verdict,
    ruleIndex: ids.indexOf(verdict),
    level: levels[classes[verdict]],
    message: { text: plainText(`${image} for ${architecture}: ${verdict}: ${why}`) },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: uriOf(file, directory) },
          region: { startLine: line },
        },
        logicalLocations: [{ fullyQualifiedName: `${workload}/${usedBy}`, kind: 'resource' }],
      },
    ],
    // Stays the same if lines are added above.
    partialFingerprints: { 'image/v1': `${workload}/${usedBy} ${image} ${architecture}` },
    ...(verdict === 'allowed' && { suppressions: [{ kind: 'external', justification: why }] }),
  };
}

/** Escapes placeholders (SARIF 2.1.0, section 3.11.5) and embedded links (3.11.6): names are untrusted. */
function plainText(text: string): string {
  return text.replaceAll(/[[\]\\]/g, String.raw`\$&`).replaceAll(/[{}]/g, '$&$&');
}

function uriOf(file: string, directory: string): string {
  if (file === standardInput) return 'stdin';
  const path = relative(directory, resolve(directory, file));
  const isBelow = path !== '..' && !path.startsWith(`..${sep}`);
  return isBelow
    ? path.split(sep).map(encodeURIComponent).join('/')
    : pathToFileURL(resolve(directory, file)).href;
}
